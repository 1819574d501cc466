#include <algorithm>
#include <cmath>
#include <cstdint>

#include "host/base/json.h"
#include "host/show/picture.h"

namespace fovea {
namespace {

// One canvas shows every head of every pattern, a second the chosen one with its tokens on both axes. Colours are mixed from
// two variables, so that both follow the viewer's light or dark.
constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Attention</title><style>
:root{--paper:255,255,255;--ink:28,28,30;--line:#c8c8cc;--weight:10,79,163;--mark:214,84,0}
@media (prefers-color-scheme:dark){:root{--paper:22,24,28;--ink:230,230,234;--line:#44474e;--weight:125,184,255;--mark:255,158,77}}
body{background:rgb(var(--paper));color:rgb(var(--ink));font:14px/1.5 system-ui,sans-serif;margin:2em;max-width:90em}
h1{font-size:1.25em;margin:0 0 .6em}h2{font-size:1em;margin:1.4em 0 .4em}
select{font:inherit;color:inherit;background:rgb(var(--paper));border:1px solid var(--line);margin:0 1em .4em 0}
canvas{max-width:100%;cursor:pointer}#map{cursor:crosshair}.wide{overflow-x:auto}
#note{min-height:3em}#bar{display:inline-block;width:10em;height:.8em;margin:0 .5em;border:1px solid var(--line);
background:linear-gradient(90deg,rgb(var(--paper)),rgb(var(--weight)))}
#tokens{line-height:1.9}#tokens button{font:12px/1.4 ui-monospace,monospace;color:inherit;background:none;padding:.1em .2em;
border:1px solid var(--line);border-radius:3px;margin:1px;white-space:pre;cursor:pointer}
#tokens .on{outline:2px solid rgb(var(--mark))}:focus-visible{outline:2px solid rgb(var(--mark))}
</style></head><body>
<h1 id="name"></h1>
<label>Layer <select id="pattern"></select></label><label>Head <select id="head"></select></label>
<label>Colours <select id="scale"><option value="row">of each query's largest</option><option value="whole">of 1</option></select></label>
<span>0<span id="bar"></span><span id="most"></span></span>
<h2>Every head: one row a layer, one column a head</h2>
<div class="wide"><canvas id="all" tabindex="0" role="img" aria-label="Every head of every layer; arrow keys choose one"></canvas></div>
<h2 id="title"></h2><p id="note" aria-live="polite"></p>
<div class="wide"><canvas id="map" tabindex="0" role="img" aria-label="Queries down, keys across; arrow keys choose a cell"></canvas></div>
<h2>What the chosen query looks at</h2><div id="tokens"></div>
<script>
const data=)";

constexpr std::string_view kTail = R"(;
const get=id=>document.getElementById(id),all=get('all'),map=get('map'),kFont='11px ui-monospace,monospace';
const at={pattern:data.first,head:0,query:-1,key:-1},level={};
[...data.digits].forEach((digit,i)=>level[digit]=i);
const run=data.digits.length-1;
/* [heads][queries][keys], the mean of all heads behind them */
function weights(p){if(p.all)return p.all;
 const t=data.tokens[p.tokens],n=t.queries.length*t.keys.length,w=p.all=new Float32Array(n*(p.heads+1)),text=p.weights;
 for(let i=0,to=0;i<text.length;){const d=level[text[i++]];
  if(d==run)to+=level[text[i++]]*data.digits.length+level[text[i++]];else w[to++]=(d/data.top)**2}
 for(let h=0;h<p.heads;h++)for(let i=0;i<n;i++)w[p.heads*n+i]+=w[h*n+i]/p.heads;
 return w}
function head(p,h){const t=data.tokens[p.tokens],n=t.queries.length*t.keys.length;
 return{w:weights(p).subarray(h*n,(h+1)*n),nq:t.queries.length,nk:t.keys.length,queries:t.queries,keys:t.keys}}
const colour=name=>getComputedStyle(document.documentElement).getPropertyValue(name).split(',').map(Number);
const rowMost=(m,i)=>{let most=0;for(let j=0;j<m.nk;j++)most=Math.max(most,m.w[i*m.nk+j]);return most};
/* A picture of one head of that size: each pixel has the largest weight that falls on it. */
function image(m,width,height){const canvas=document.createElement('canvas');canvas.width=width;canvas.height=height;
 const pen=canvas.getContext('2d'),pixels=pen.createImageData(width,height),paper=colour('--paper'),ink=colour('--weight');
 const shade=new Float32Array(width*height),byRow=get('scale').value=='row';
 for(let i=0;i<m.nq;i++){const most=byRow?rowMost(m,i):1;
  const y0=Math.floor(i*height/m.nq),y1=Math.max(y0+1,Math.floor((i+1)*height/m.nq));
  for(let j=0;j<m.nk;j++){const s=most?m.w[i*m.nk+j]/most:0;if(!s)continue;
   const x0=Math.floor(j*width/m.nk),x1=Math.max(x0+1,Math.floor((j+1)*width/m.nk));
   for(let y=y0;y<y1;y++)for(let x=x0;x<x1;x++)if(s>shade[y*width+x])shade[y*width+x]=s}}
 shade.forEach((s,i)=>{for(let c=0;c<3;c++)pixels.data[i*4+c]=paper[c]+(ink[c]-paper[c])*s;pixels.data[i*4+3]=255});
 pen.putImageData(pixels,0,0);return canvas}
const text=(pen,words,x,y,align)=>{pen.textAlign=align;pen.fillText(words,x,y)};
function prepared(canvas,width,height){canvas.width=width;canvas.height=height;const pen=canvas.getContext('2d');
 pen.font=kFont;pen.fillStyle=`rgb(${colour('--ink')})`;pen.textBaseline='middle';pen.lineWidth=2;
 pen.strokeStyle=`rgb(${colour('--mark')})`;return pen}
const widest=labels=>{const pen=map.getContext('2d');pen.font=kFont;return Math.max(8,...labels.map(l=>pen.measureText(l).width))};
/* sizes of the overview */
const n_heads=Math.max(1,...data.patterns.map(p=>p.heads)),rows=data.patterns.length;
const thumb=Math.max(12,Math.min(56,Math.floor(1100/(n_heads+1)),Math.floor(1e7/Math.max(1,rows)/(n_heads+1)))),gap=4,step=thumb+gap;
let side=0,thumbs=new Map();
const thumbOf=(i,h)=>{const key=i*(n_heads+1)+h;
 if(!thumbs.has(key))thumbs.set(key,image(head(data.patterns[i],h),thumb,thumb));return thumbs.get(key)};
function drawAll(){side=widest(data.patterns.map(p=>p.title))+10;
 const pen=prepared(all,side+(n_heads+1)*step,18+rows*step);
 for(let h=0;h<n_heads;h++)if(thumb>=18||h%2==0)text(pen,h,side+h*step+thumb/2,9,'center');
 if(data.patterns.some(p=>p.heads>1))text(pen,thumb>=30?'mean':'m',side+n_heads*step+thumb/2,9,'center');
 data.patterns.forEach((p,i)=>{text(pen,p.title,side-8,18+i*step+thumb/2,'right');
  for(let h=0;h<=p.heads;h++)if(h<p.heads||p.heads>1)
   pen.drawImage(thumbOf(i,h),side+(h<p.heads?h:n_heads)*step,18+i*step)});
 const h=at.head<data.patterns[at.pattern].heads?at.head:n_heads;
 pen.strokeRect(side+h*step-1,18+at.pattern*step-1,thumb+2,thumb+2)}
let cell=0,left=0,top_=0;
function drawMap(){const m=head(data.patterns[at.pattern],at.head);
 cell=Math.max(2,Math.min(24,Math.floor(720/Math.max(m.nq,m.nk,1))));
 left=widest(m.queries)+24;top_=widest(m.keys)+24;
 const pen=prepared(map,left+m.nk*cell+8,top_+m.nq*cell+8),every=Math.ceil(12/cell);
 pen.drawImage(image(m,m.nk*cell,m.nq*cell),left,top_);
 m.queries.forEach((label,i)=>{if(i%every==0)text(pen,label,left-5,top_+(i+.5)*cell,'right')});
 pen.save();pen.rotate(-Math.PI/2);
 m.keys.forEach((label,j)=>{if(j%every==0)text(pen,label,5-top_,left+(j+.5)*cell,'left')});
 text(pen,'queries',-top_-m.nq*cell/2,8,'center');pen.restore();
 text(pen,'keys',left+m.nk*cell/2,8,'center');
 pen.lineWidth=1;pen.strokeRect(left,top_+at.query*cell,m.nk*cell,cell);
 if(at.key>=0){pen.lineWidth=2;pen.strokeRect(left+at.key*cell,top_+at.query*cell,cell,cell)}}
const name=(labels,i)=>labels[i]==i?`number ${i}`:`“${labels[i]}” (${i})`,percent=w=>`${(100*w).toFixed(w<.1?1:0)} %`;
function say(){const m=head(data.patterns[at.pattern],at.head),row=at.query*m.nk;
 if(!m.nq||!m.nk)return get('note').textContent='';
 let best=0;for(let j=1;j<m.nk;j++)if(m.w[row+j]>m.w[row+best])best=j;
 get('note').textContent=(at.key>=0?`${name(m.queries,at.query)} gives ${name(m.keys,at.key)} ${percent(m.w[row+at.key])}. `:'')+
  `${name(m.queries,at.query)} looks most at ${name(m.keys,best)}: ${percent(m.w[row+best])}.`;
 const most=rowMost(m,at.query),ofRow=get('scale').value=='row';
 get('most').textContent=ofRow?`largest of the query (here ${percent(most)})`:'1';
 [...get('tokens').children].forEach((button,j)=>{const w=m.w[row+j]/(ofRow?most||1:1);
  button.style.background=`rgba(var(--weight),${w})`;button.style.color=w>.55?'rgb(var(--paper))':'';
  button.title=percent(m.w[row+j]);button.classList.toggle('on',j==at.key)})}
function choose(change){const p=data.patterns[change.pattern??at.pattern],before=data.patterns[at.pattern];
 const moved='pattern'in change||'head'in change||!cell;Object.assign(at,change);
 at.head=Math.max(0,Math.min(at.head,p.heads-(p.heads<2)));
 const t=data.tokens[p.tokens];if(at.query<0||p.tokens!=before.tokens)at.query=t.queries.length-1;
 at.query=Math.max(0,Math.min(at.query,t.queries.length-1));at.key=Math.min(at.key,t.keys.length-1);
 if(moved){get('pattern').value=at.pattern;
  get('head').replaceChildren(...[...Array(p.heads).keys()].concat(p.heads>1?['mean']:[]).map((h,i)=>new Option(h,i)));
  get('head').value=at.head;get('title').textContent=`${p.title}, ${at.head<p.heads?`head ${at.head}`:'mean of all heads'}`;
  get('tokens').replaceChildren(...t.keys.map((label,j)=>{const button=document.createElement('button');
   button.textContent=label;button.onclick=button.onfocus=()=>choose({key:j});return button}));drawAll()}
 drawMap();say()}
const inMap=e=>{const scale=map.width/map.clientWidth;
 return{query:Math.floor((e.offsetY*scale-top_)/cell),key:Math.floor((e.offsetX*scale-left)/cell)}};
map.onmousemove=map.onclick=e=>{const{query,key}=inMap(e),m=head(data.patterns[at.pattern],at.head);
 if(query>=0&&query<m.nq)choose({query,key:key>=0&&key<m.nk?key:-1})};
all.onclick=e=>{const scale=all.width/all.clientWidth,pattern=Math.floor((e.offsetY*scale-18)/step);
 let h=Math.floor((e.offsetX*scale-side)/step);if(pattern<0||pattern>=rows||h<0)return;
 const p=data.patterns[pattern];if(h==n_heads)h=p.heads;if(h<p.heads+(p.heads>1))choose({pattern,head:h})};
const arrows={ArrowLeft:[0,-1],ArrowRight:[0,1],ArrowUp:[-1,0],ArrowDown:[1,0]};
const keys=(canvas,move)=>canvas.onkeydown=e=>{const by=arrows[e.key];if(by){e.preventDefault();move(...by)}};
keys(all,(down,right)=>choose({pattern:Math.max(0,Math.min(rows-1,at.pattern+down)),head:Math.max(0,at.head+right)}));
keys(map,(down,right)=>choose({query:Math.max(0,at.query+down),key:Math.max(0,at.key+right)}));
get('pattern').replaceChildren(...data.patterns.map((p,i)=>new Option(p.title,i)));
get('pattern').onchange=e=>choose({pattern:+e.target.value});get('head').onchange=e=>choose({head:+e.target.value});
const anew=()=>{thumbs=new Map();choose({head:at.head})};
get('scale').onchange=anew;
get('name').textContent=document.title=data.name?`Attention of ${data.name}`:'Attention';
matchMedia('(prefers-color-scheme:dark)').onchange=anew;
if(rows)choose({pattern:at.pattern});
</script></body></html>
)";

// Characters that neither JSON nor HTML writes in a longer way. The last one begins a run of zeros.
constexpr std::string_view kDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%()*+,-./:;=?@[]^_`{|}~";
constexpr std::size_t kRun = kDigits.size() - 1, kTop = kRun - 1;

/// Weights in [0, 1] as a digit each, kTop times their square root, so that diffuse attention is seen; four zeros or more are
/// the last digit and their number in two.
std::string encoded(const std::vector<float>& weights) {
    constexpr std::size_t kLeastRun = 4, kMostRun = kDigits.size() * kDigits.size() - 1;
    std::string text;
    const auto digit_at = [&](std::size_t i) {
        const float w = weights[i];
        return w > 0 ? static_cast<std::size_t>(std::lround(std::sqrt(std::min(w, 1.0f)) * float{kTop}))
                     : 0;  // NaN: none
    };
    for (std::size_t i = 0; i < weights.size();) {
        std::size_t n = 0;
        while (i + n < weights.size() && n < kMostRun && digit_at(i + n) == 0) ++n;
        if (n >= kLeastRun)
            for (const std::size_t d : {kRun, n / kDigits.size(), n % kDigits.size()}) text += kDigits[d];
        else
            text.append(n, kDigits[0]);
        i += n;
        if (n < kMostRun && i < weights.size()) text += kDigits[digit_at(i++)];
    }
    return text;
}

}  // namespace

std::string draw_html(std::span<const AttentionPattern> patterns, std::size_t first, std::string_view name) {
    SortedJson data = {{"first", first},
                       {"name", name},
                       {"digits", kDigits},
                       {"top", kTop},
                       {"patterns", SortedJson::array()},
                       {"tokens", SortedJson::array()}};
    const auto labels = [](const std::vector<std::string>& tokens) {
        SortedJson list = SortedJson::array();
        for (const std::string& token : tokens) list.push_back(token_label(token));
        return list;
    };
    for (const AttentionPattern& pattern : patterns) {
        const SortedJson tokens = {{"queries", labels(pattern.queries)}, {"keys", labels(pattern.keys)}};
        std::size_t at = 0;  // layers share their tokens
        while (at < data["tokens"].size() && data["tokens"][at] != tokens) ++at;
        if (at == data["tokens"].size()) data["tokens"].push_back(tokens);
        data["patterns"].push_back({{"title", pattern.title},
                                    {"heads", pattern.n_heads},
                                    {"tokens", at},
                                    {"weights", encoded(pattern.weights)}});
    }
    std::string text = json_text(data, true);
    // It is ASCII, so no character ends the script but "<".
    for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at)) text.replace(at, 1, "\\u003c");
    return std::string(kHead) + text + std::string(kTail);
}

}  // namespace fovea

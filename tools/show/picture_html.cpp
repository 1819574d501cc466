#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "show/picture.h"

namespace fovea {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Attention</title><style>
:root{--paper:#fff;--ink:#1c1c1e;--line:#c8c8cc;--weight:10,79,163}
@media (prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#e6e6ea;--line:#44474e;--weight:125,184,255}}
body{background:var(--paper);color:var(--ink);font:14px system-ui,sans-serif;margin:2em;max-width:75em}
select{font:inherit;color:inherit;background:var(--paper);border:1px solid var(--line);margin-right:1em}
h3{font-size:1em;margin:1.2em 0 .4em}.tokens{line-height:1.9}
.tokens span{display:inline-block;font:12px/1.4 ui-monospace,monospace;padding:.1em .2em;border:1px solid var(--line);
border-radius:3px;margin:1px;white-space:pre}#queries span{cursor:pointer}
.on{outline:2px solid rgb(var(--weight))}canvas{border:1px solid var(--line);cursor:crosshair;max-width:100%}
main{display:flex;flex-wrap:wrap;gap:2em}main>div{flex:1 1 24em}
</style></head><body>
<label>Layer <select id="pattern"></select></label><label>Head <select id="head"></select></label>
<span id="note"></span>
<main><div><h3>Point at a token …</h3><div class="tokens" id="queries"></div>
<h3>… to see what it looks at</h3><div class="tokens" id="keys"></div></div>
<div><h3>All at once: queries down, keys across</h3><canvas id="map"></canvas></div></main>
<script>
const data=)";

constexpr std::string_view kTail = R"(;
const get=id=>document.getElementById(id),map=get('map'),pen=map.getContext('2d');
let p,bytes,nq,nk,query,q=[],k=[];
const fill=(box,names)=>{box.replaceChildren(...names.map((name,i)=>new Option(name,i)))};
const spans=(box,labels)=>{const all=labels.map(label=>{const s=document.createElement('span');s.textContent=label;return s});
 box.replaceChildren(...all);return all};
const name=(all,i)=>all[i].textContent==i?`number ${i}`:`${all[i].textContent} (${i})`;
function weight(i,key){const h=+get('head').value,at=head=>bytes[(head*nq+i)*nk+key]/255;
 if(h<p.heads)return at(h);let sum=0;for(let j=0;j<p.heads;j++)sum+=at(j);return sum/p.heads}
function pick(){const before=get('head').value;p=data.patterns[get('pattern').value];
 bytes=Uint8Array.from(atob(p.weights),c=>c.charCodeAt(0));const t=data.tokens[p.tokens];
 nq=t.queries.length;nk=t.keys.length;query=Math.min(query??nq-1,nq-1);
 fill(get('head'),[...Array(p.heads).keys()].concat(p.heads>1?['mean']:[]));
 get('head').value=before&&before<=p.heads-(p.heads<2)?before:0;
 q=spans(get('queries'),t.queries);k=spans(get('keys'),t.keys);
 q.forEach((s,i)=>s.onmouseover=s.onclick=()=>{query=i;show()});draw()}
function draw(){const cell=Math.max(2,Math.min(24,Math.floor(480/Math.max(nq,nk,1))));
 map.width=nk*cell;map.height=nq*cell;map.cell=cell;
 const ink=getComputedStyle(document.documentElement).getPropertyValue('--weight');
 for(let i=0;i<nq;i++)for(let j=0;j<nk;j++){const w=weight(i,j);
 if(w){pen.fillStyle=`rgba(${ink},${w})`;pen.fillRect(j*cell,i*cell,cell,cell)}}show()}
function show(){let best=0;q.forEach((s,i)=>s.classList.toggle('on',i==query));
 k.forEach((s,i)=>{const w=weight(query,i);s.style.background=`rgba(var(--weight),${w})`;
 s.style.color=w>.55?'var(--paper)':'';s.title=(100*w).toFixed(1)+' %';if(w>weight(query,best))best=i});
 get('note').textContent=nq&&nk?`${name(q,query)} looks most at ${name(k,best)}: `+
 (100*weight(query,best)).toFixed(1)+' %':''}
map.onmousemove=e=>{const i=Math.floor(e.offsetY*map.height/map.clientHeight/map.cell);if(i>=0&&i<nq){query=i;show()}};
fill(get('pattern'),data.patterns.map(one=>one.title));get('pattern').value=data.first;
get('pattern').onchange=pick;get('head').onchange=draw;
matchMedia('(prefers-color-scheme:dark)').onchange=draw;if(data.patterns.length)pick();
</script></body></html>
)";

std::string base64(const std::vector<std::uint8_t>& bytes) {
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const auto at = [&](std::size_t k) { return i + k < bytes.size() ? std::uint32_t{bytes[i + k]} : 0u; };
        const std::uint32_t three = at(0) << 16 | at(1) << 8 | at(2);
        for (std::size_t k = 0; k < 4; ++k)
            text += k == 0 || i + k - 1 < bytes.size() ? kDigits[three >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

}  // namespace

std::string draw_html(std::span<const Pattern> patterns, std::size_t first) {
    using Json = nlohmann::json;
    Json data = {{"first", first}, {"patterns", Json::array()}, {"tokens", Json::array()}};
    const auto labels = [](const std::vector<std::string>& tokens) {
        Json list = Json::array();
        for (const std::string& token : tokens) list.push_back(token_label(token));
        return list;
    };
    for (const Pattern& pattern : patterns) {
        const Json tokens = {{"queries", labels(pattern.queries)}, {"keys", labels(pattern.keys)}};
        std::size_t at = 0;  // layers share their tokens
        while (at < data["tokens"].size() && data["tokens"][at] != tokens) ++at;
        if (at == data["tokens"].size()) data["tokens"].push_back(tokens);
        std::vector<std::uint8_t> bytes;
        for (const float w : pattern.weights)
            bytes.push_back(w > 0 ? static_cast<std::uint8_t>(std::lround(std::min(w, 1.0f) * 255)) : 0);
        data["patterns"].push_back(
            {{"title", pattern.title}, {"heads", pattern.n_heads}, {"tokens", at}, {"weights", base64(bytes)}});
    }
    std::string text = data.dump(-1, ' ', true);  // in ASCII, so no character ends the script but "<"
    for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at)) text.replace(at, 1, "\\u003c");
    return std::string(kHead) + text + std::string(kTail);
}

}  // namespace fovea

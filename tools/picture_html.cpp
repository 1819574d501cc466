#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "picture.h"

namespace fovea {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Attention</title><style>
:root{--paper:#fff;--ink:#1c1c1e;--line:#c8c8cc;--weight:10,79,163}
@media (prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#e6e6ea;--line:#44474e;--weight:125,184,255}}
body{background:var(--paper);color:var(--ink);font:14px system-ui,sans-serif;margin:2em;max-width:70em}
select{font:inherit;margin-right:1em}.tokens{margin:1em 0;line-height:2.2}
.tokens span{font-family:ui-monospace,monospace;padding:.3em .2em;border:1px solid var(--line);border-radius:3px;margin:1px;
white-space:pre}#queries span{cursor:pointer}.on{outline:2px solid rgb(var(--weight))}small{opacity:.7}
</style></head><body>
<label>Layer <select id="pattern"></select></label><label>Head <select id="head"></select></label>
<h3>Point at a token …</h3><div class="tokens" id="queries"></div>
<h3>… to see what it looks at</h3><div class="tokens" id="keys"></div><small id="note"></small>
<script>
const data=)";

constexpr std::string_view kTail = R"(;
const get=id=>document.getElementById(id),bytes=data.weights.map(w=>Uint8Array.from(atob(w),c=>c.charCodeAt(0)));
const nq=data.queries.length,nk=data.keys.length;let query=nq-1;
const fill=(box,names)=>names.forEach((name,i)=>box.add(new Option(name,i)));
fill(get('pattern'),data.titles);fill(get('head'),[...Array(data.heads).keys()].concat(data.heads>1?['mean']:[]));
const spans=(box,labels)=>labels.map(label=>{const s=document.createElement('span');s.textContent=label;box.append(s);return s});
const q=spans(get('queries'),data.queries),k=spans(get('keys'),data.keys);
function weight(key){const w=bytes[get('pattern').value],h=+get('head').value;
 const at=head=>w[(head*nq+query)*nk+key]/255;
 if(h<data.heads)return at(h);let sum=0;for(let i=0;i<data.heads;i++)sum+=at(i);return sum/data.heads}
function show(){let best=0;q.forEach((s,i)=>s.classList.toggle('on',i==query));
 k.forEach((s,i)=>{const w=weight(i);s.style.background=`rgba(var(--weight),${w})`;s.title=(100*w).toFixed(1)+' %';
 if(w>weight(best))best=i});
 get('note').textContent=nk?`most on number ${best}: ${(100*weight(best)).toFixed(1)} %`:''}
q.forEach((s,i)=>s.onmouseover=s.onclick=()=>{query=i;show()});
get('pattern').onchange=get('head').onchange=show;show();
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

std::string draw_html(std::span<const Pattern> patterns) {
    nlohmann::json data = {{"titles", nlohmann::json::array()},
                           {"weights", nlohmann::json::array()},
                           {"queries", nlohmann::json::array()},
                           {"keys", nlohmann::json::array()},
                           {"heads", 0}};
    for (const Pattern& pattern : patterns) {
        std::vector<std::uint8_t> bytes;
        for (const float w : pattern.weights)
            bytes.push_back(w > 0 ? static_cast<std::uint8_t>(std::lround(std::min(w, 1.0f) * 255)) : 0);
        data["titles"].push_back(token_label(pattern.title));
        data["weights"].push_back(base64(bytes));
    }
    if (!patterns.empty()) {
        data["heads"] = patterns[0].n_heads;
        for (const std::string& token : patterns[0].queries) data["queries"].push_back(token_label(token));
        for (const std::string& token : patterns[0].keys) data["keys"].push_back(token_label(token));
    }
    std::string text = data.dump(-1, ' ', true);  // in ASCII, so no character ends the script but "<"
    for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at)) text.replace(at, 1, "\\u003c");
    return std::string(kHead) + text + std::string(kTail);
}

}  // namespace fovea

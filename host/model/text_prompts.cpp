#include "host/model/text_prompts.h"

#include <algorithm>
#include <cstdlib>

#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {

Prompts prompts_of(const Model& model, const std::string& model_name) {
    Prompts prompts;
    const std::string_view text = find_info(model, "prompts");
    if (text.empty()) return prompts;
    check_json_depth(text, model_name);
    const auto object = read_json(text);
    for (const auto& [name, prompt] : object.items())
        if (object.is_object() && prompt.is_string()) prompts.texts.emplace_back(name, prompt.get<std::string>());
    prompts.chosen = find_info(model, "default_prompt");
    return prompts;
}

std::string prompt_before(const Prompts& prompts, const std::optional<std::string>& name) {
    const std::string& wanted = name ? *name : prompts.chosen;
    if (wanted.empty()) return {};
    std::string names;
    for (const auto& [known, text] : prompts.texts) {
        if (known == wanted) return text;
        names += (names.empty() ? "" : ", ") + known;
    }
    throw host::Error("prompt's name: expected " +
                      (names.empty() ? "none, for the model has no prompts" : "one of " + names) + ", got " +
                      wanted.substr(0, 100));
}

bool pools_prompts(const Model& model) { return find_info(model, "include_prompt") != "false"; }

std::uint32_t most_tokens(const Model& model) {
    const std::uint32_t positions = model.config().encoder.max_positions;
    const std::string said(find_info(model, "max_seq_length"));
    const unsigned long n = std::strtoul(said.c_str(), nullptr, 10);
    return n && n < positions ? static_cast<std::uint32_t>(n) : positions;
}

CutAt cut_at(const Model& model) { return find_info(model, "truncation_side") == "left" ? CutAt::front : CutAt::end; }

void drop_pads(const Model& model, std::vector<Token>& ids) {
    const std::string pad(find_info(model, "unpooled"));
    if (pad.empty()) return;
    const unsigned long id = std::strtoul(pad.c_str(), nullptr, 10);
    std::size_t n = ids.size();
    while (n && ids[n - 1] == id) --n;
    ids.resize(n ? n : std::min<std::size_t>(ids.size(), 1));
}

}  // namespace fovea

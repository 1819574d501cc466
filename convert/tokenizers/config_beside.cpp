#include "convert/tokenizers/config_beside.h"

#include <map>
#include <set>
#include <utility>

#include "convert/formats/text_file.h"
#include "convert/tokenizers/json_field.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

constexpr const char* kFlags[] = {"single_word", "lstrip", "rstrip", "normalized", "special"};
constexpr const char* kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};
constexpr const char* kMoreRoles[] = {"additional_special_tokens", "extra_special_tokens"};
constexpr const char* kDecoder = "added_tokens_decoder";

SortedJson member_of(const SortedJson& object, const char* name) {
    return object.is_object() ? object.value(name, SortedJson()) : SortedJson();
}

/// An added token with all its flags, as transformers makes it of an object, or of a text alone.
SortedJson added_token(const SortedJson& token, bool special) {
    const SortedJson said = member_of(token, "special");
    special = special || said == true;
    SortedJson all = {{"content", token_text(token)}};
    for (const char* flag : kFlags) all[flag] = false;
    all["normalized"] = !special;
    if (token.is_object())
        for (const char* flag : kFlags)
            if (token.contains(flag)) all[flag] = token[flag];
    all["special"] = special;
    return all;
}

/// Tokens that have a role, as texts or objects.
std::vector<SortedJson> tokens_of_roles(const SortedJson& config) {
    std::vector<SortedJson> tokens;
    for (const char* role : kRoles) tokens.push_back(member_of(config, role));
    for (const char* role : kMoreRoles) {
        const SortedJson several = member_of(config, role);
        if (several.is_array() || several.is_object()) tokens.insert(tokens.end(), several.begin(), several.end());
    }
    return tokens;
}

/// The objects of added_tokens_decoder in the order of their numbers.
std::vector<SortedJson> tokens_of_decoder(const SortedJson& config) {
    std::map<std::pair<std::size_t, std::string>, SortedJson> by_number;
    if (const SortedJson decoder = member_of(config, kDecoder); decoder.is_object())
        for (const auto& [number, token] : decoder.items())
            if (token.is_object()) by_number[{number.size(), number}] = token;
    std::vector<SortedJson> tokens;
    for (const auto& [number, token] : by_number) tokens.push_back(token);
    return tokens;
}

/// Whether the steps put a space before a text, where one of them can; else nothing.
SortedJson first_space_of(const SortedJson& step) {
    const SortedJson type = member_of(step, "type"), steps = member_of(step, "pretokenizers");
    if (type == "ByteLevel") return member_of(step, "add_prefix_space") != false;
    if (type == "Metaspace")
        return member_of(step, "prepend_scheme") != "never" && member_of(step, "add_prefix_space") != false;
    if (steps.is_array())
        for (const SortedJson& one : steps)
            if (SortedJson first = first_space_of(one); !first.is_null()) return first;
    return {};
}

}  // namespace

SortedJson config_beside(const std::filesystem::path& folder) {
    const auto read = [](const std::filesystem::path& path) {
        return is_there(path) ? Fields::read(path).json() : SortedJson::object();
    };
    SortedJson config = read(folder / "tokenizer_config.json");
    if (!config.contains(kDecoder)) config.update(read(folder / "special_tokens_map.json"));
    return config;
}

void heed_config(const SortedJson& config, const std::string& file_name, SortedJson& parts,
                 std::vector<std::string>& notes) {
    const std::vector<SortedJson> roles = tokens_of_roles(config);
    std::set<std::string> known, with_role;
    for (const SortedJson& token : roles) with_role.insert(token_text(token));
    SortedJson& list = parts["added_tokens"];
    std::map<std::string, SortedJson*> listed;
    if (list.is_array())
        for (SortedJson& token : list) listed.emplace(token_text(token), &token);
    SortedJson& beside = parts["added_tokens_beside"] = SortedJson::array();
    const auto add = [&](const SortedJson& token, bool is_last_word) {
        const std::string text = token_text(token);
        const auto in_file = listed.find(text);
        if (text.empty() || !known.insert(text).second || (in_file != listed.end() && !is_last_word)) return;
        const SortedJson whole = added_token(token, with_role.contains(text));
        in_file != listed.end() ? in_file->second->update(whole) : beside.push_back(whole);
    };
    for (const SortedJson& token : tokens_of_decoder(config)) add(token, true);
    for (const SortedJson& token : roles) add(token, false);
    const SortedJson first = member_of(config, "add_prefix_space"),
                     in_file = first_space_of(member_of(parts, "pre_tokenizer"));
    if (first.is_boolean() && in_file.is_boolean() && first != in_file)
        notes.push_back(file_name + ": counts more than tokenizer_config.json, whose add_prefix_space is " +
                        first.dump());
}

}  // namespace fovea

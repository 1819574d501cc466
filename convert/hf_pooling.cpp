// What sentence-transformers puts behind an encoder.
#include <algorithm>
#include <string>

#include "convert/hf_config.h"
#include "convert/refusal.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// Older files have a flag for each kind, newer ones a name.
Pooling read_pooling(const fs::path& path) {
    const Fields fields = Fields::read(path);
    struct Kind {
        const char* flag;
        const char* name;
        Pooling pooling;
    };
    static constexpr Kind kKinds[] = {{"pooling_mode_mean_tokens", "mean", Pooling::mean},
                                      {"pooling_mode_cls_token", "cls", Pooling::first},
                                      {"pooling_mode_lasttoken", "lasttoken", Pooling::last}};
    Pooling found = Pooling::none;
    if (fields.has("pooling_mode")) {
        const std::string name = fields.text("pooling_mode");
        for (const Kind& kind : kKinds)
            if (name == kind.name) found = kind.pooling;
        if (found == Pooling::none) fields.refuse("pooling_mode", "mean, cls or lasttoken");
        return found;
    }
    for (const auto& [key, value] : fields.json().items()) {
        if (!key.starts_with("pooling_mode_") || value != true) continue;
        const auto kind =
            std::find_if(std::begin(kKinds), std::end(kKinds), [&name = key](const Kind& k) { return name == k.flag; });
        if (kind == std::end(kKinds) || found != Pooling::none)
            fields.refuse(key, "one of the mean, the first and the last token alone");
        found = kind->pooling;
    }
    if (found == Pooling::none) fields.refuse("pooling_mode_mean_tokens", "a pooling mode that is true");
    return found;
}

}  // namespace

fs::path read_sentence_modules(const fs::path& modules, Stack& stack) {
    const Mapping mapping = map_source(modules, 1u << 20);
    const auto* text = reinterpret_cast<const char*>(mapping.bytes().data());
    const nlohmann::json list = nlohmann::json::parse(text, text + mapping.bytes().size(), nullptr, false);
    const auto refuse = [&](const std::string& had) {
        throw Refusal(modules.string() + ": expected a Transformer, then a Pooling, then a Normalize or nothing, got " +
                      had);
    };
    if (!list.is_array() || list.empty()) refuse("no list of modules");
    static constexpr const char* kOrder[] = {"Transformer", "Pooling", "Normalize"};
    fs::path encoder;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto text_of = [&](const char* key) {
            const bool has = list[i].is_object() && list[i].contains(key) && list[i][key].is_string();
            if (!has) refuse("a module without a " + std::string(key));
            return list[i][key].get<std::string>();
        };
        const std::string type = text_of("type"), path = text_of("path");
        const fs::path inner = path;
        if (inner.is_absolute() || std::find(inner.begin(), inner.end(), "..") != inner.end())
            refuse("a path out of the folder, " + path);
        if (i >= std::size(kOrder) || type.substr(type.find_last_of('.') + 1) != kOrder[i]) refuse(type);
        if (i == 0) encoder = path;
        if (i == 1) stack.pooling = read_pooling(modules.parent_path() / path / "config.json");
        if (i == 2) stack.normalize_pooled = true;
    }
    return encoder;
}

}  // namespace fovea

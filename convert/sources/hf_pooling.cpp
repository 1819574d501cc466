// What sentence-transformers puts behind an encoder.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/formats/text_file.h"
#include "convert/formats/torch_pickle.h"
#include "convert/sources/hf_config.h"
#include "host/base/error.h"

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
    static constexpr Kind kKinds[] = {
        {"pooling_mode_mean_tokens", "mean", Pooling::mean},
        {"pooling_mode_cls_token", "cls", Pooling::first},
        {"pooling_mode_max_tokens", "max", Pooling::max},
        {"pooling_mode_lasttoken", "lasttoken", Pooling::last},
        {"pooling_mode_weightedmean_tokens", "weightedmean", Pooling::weighted_mean},
        {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::mean_sqrt_len}};
    Pooling found = Pooling::none;
    if (fields.has("pooling_mode")) {
        const SortedJson& mode = fields.json()["pooling_mode"];
        const bool is_list_of_one = mode.is_array() && mode.size() == 1;
        const std::string name = is_list_of_one ? fields.texts("pooling_mode").front() : fields.text("pooling_mode");
        for (const Kind& kind : kKinds)
            if (name == kind.name) found = kind.pooling;
        if (found == Pooling::none)
            fields.refuse("pooling_mode", "mean, cls, max, lasttoken, weightedmean or mean_sqrt_len_tokens, one alone");
        return found;
    }
    for (const auto& [key, value] : fields.json().items()) {
        if (!key.starts_with("pooling_mode_") || value != true) continue;
        const auto kind =
            std::find_if(std::begin(kKinds), std::end(kKinds), [&name = key](const Kind& k) { return name == k.flag; });
        if (kind == std::end(kKinds) || found != Pooling::none)
            fields.refuse(key, "one way of pooling that is true, none beside it");
        found = kind->pooling;
    }
    return found == Pooling::none ? Pooling::mean : found;
}

/// A Dense module: a matrix, maybe a bias, and an activation by the name of PyTorch's class. `of`: what it reads and makes.
HeadMap read_dense(const fs::path& path, std::uint32_t width, const char* of) {
    const Fields fields = Fields::read(path);
    if (const std::uint32_t in = fields.count("in_features"); width && in != width)
        fields.refuse("in_features", std::to_string(width) + ", as the module before it gives");
    HeadMap map;
    if (fields.flag_or("use_residual", false)) fields.refuse("use_residual", "false");
    for (const char* name : {"module_input_name", "module_output_name"})
        if (fields.text_or(name, of) != of) fields.refuse(name, of);
    map.width = fields.count("out_features", 1, kMaxWidth);
    map.bias = fields.flag_or("bias", true);
    const std::string spelled = fields.text_or("activation_function", "torch.nn.modules.activation.Tanh");
    const std::string name = spelled.substr(spelled.find_last_of('.') + 1);
    struct Known {
        const char* name;
        Activation activation;
    };
    static constexpr Known kKnown[] = {{"Identity", Activation::none},
                                       {"Tanh", Activation::tanh},
                                       {"ReLU", Activation::relu},
                                       {"GELU", Activation::gelu},
                                       {"SiLU", Activation::silu}};
    const auto known =
        std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return name == k.name; });
    const bool is_of_torch = spelled == name || spelled.starts_with("torch.");
    if (known == std::end(kKnown) || !is_of_torch)
        fields.refuse("activation_function", "Identity, Tanh, ReLU, GELU or SiLU of torch");
    map.activation = known->activation;
    return map;
}

/// A CrossEncoder's LogitScore: of the last row the logit of a token, maybe less that of another.
ScoredTokens read_logit_score(const fs::path& path) {
    const Fields fields = Fields::read(path);
    if (fields.text_or("module_input_name", "causal_logits") != "causal_logits")
        fields.refuse("module_input_name", "causal_logits");
    ScoredTokens tokens{fields.count("true_token_id", 0)};
    if (fields.has("false_token_id")) tokens.no = fields.count("false_token_id", 0);
    return tokens;
}

/// A SparseEncoder's SpladePooling: what becomes of the largest logit of each token.
const char* read_splade(const fs::path& path) {
    const Fields fields = Fields::read(path);
    if (fields.text_or("pooling_strategy", "max") != "max") fields.refuse("pooling_strategy", "max");
    const std::string function = fields.text_or("activation_function", "relu");
    if (function != "relu" && function != "log1p_relu") fields.refuse("activation_function", "relu or log1p_relu");
    return function == "relu" ? "log1p" : "log1p twice";
}

[[noreturn]] void refuse_modules(const fs::path& modules, const std::string& had) {
    throw host::Error(modules.string() + ": expected a Transformer, a Pooling, at most " +
                      std::to_string(kMaxHeadMaps) +
                      " Dense and a Normalize or nothing, in this order, or a Transformer and a LogitScore or a "
                      "SpladePooling, or a Transformer, Dense, a MultiVectorMask and a Normalize, got " +
                      had);
}

struct SentenceModule {
    std::string type, path, name;
};

std::vector<SentenceModule> listed_modules(const fs::path& modules) {
    const Mapping mapping = map_source(modules, 1u << 20);
    check_json_depth(text_of(mapping), modules.string());
    const SortedJson list = read_sorted_json(text_of(mapping));
    if (!list.is_array() || list.empty()) refuse_modules(modules, "no list of modules");
    std::vector<SentenceModule> result;
    for (const SortedJson& one : list) {
        const auto text_of = [&](const char* key) {
            const bool has = one.is_object() && one.contains(key) && one[key].is_string();
            if (!has) refuse_modules(modules, "a module without a " + std::string(key));
            return one[key].get<std::string>();
        };
        SentenceModule module{text_of("type"), text_of("path"), {}};
        const fs::path inner = module.path;
        if (inner.is_absolute() || std::find(inner.begin(), inner.end(), "..") != inner.end())
            refuse_modules(modules, "a path out of the folder, " + module.path);
        module.name = module.type.substr(module.type.find_last_of('.') + 1);
        if (module.name == "MLMTransformer") module.name = "Transformer";   // an older name
        if (module.name != "Dropout") result.push_back(std::move(module));  // which is of training
    }
    return result;
}

void add_dense(const fs::path& folder, SentenceModules& result) {
    const std::uint32_t before = result.maps.empty() ? 0 : result.maps.back().width;
    result.maps.push_back(
        read_dense(folder / "config.json", before, result.is_late ? "token_embeddings" : "sentence_embedding"));
    result.map_files.push_back(read_weights_folder(folder));
    for (const auto& [tensor, is] : result.map_files.back().tensors)
        if (tensor != "linear.weight" && tensor != "linear.bias")
            throw host::Error(result.map_files.back().files.front().string() + ": tensor " + tensor +
                              ": expected linear.weight and linear.bias alone");
}

}  // namespace

SentenceModules read_sentence_modules(const fs::path& modules) {
    const std::vector<SentenceModule> list = listed_modules(modules);
    const auto has = [&](std::string_view name) {
        return std::any_of(list.begin(), list.end(), [&](const SentenceModule& one) { return one.name == name; });
    };
    SentenceModules result;
    result.is_late = has("MultiVectorMask") || (has("Dense") && !has("Pooling"));
    static constexpr std::string_view kPooled[] = {"Transformer", "Pooling", "Dense", "Normalize"},
                                      kLate[] = {"Transformer", "Dense", "MultiVectorMask", "Normalize"};
    const std::span<const std::string_view> order = result.is_late ? kLate : kPooled;
    std::size_t next = 0;  // the first that may come
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto& [type, path, name] = list[i];
        const fs::path folder = modules.parent_path() / path;
        if (i == 1 && list.size() == 2 && name == "LogitScore") {
            result.scored = read_logit_score(folder / "config.json");
        } else if (i == 1 && list.size() == 2 && name == "SpladePooling") {
            result.sparse = read_splade(folder / "config.json");
        } else {
            const auto found = static_cast<std::size_t>(std::find(order.begin(), order.end(), name) - order.begin());
            if (found == order.size() || found < next || (i < 2 && found < i) || result.normalize ||
                (i == 0 && found != 0) || (i == 1 && !result.is_late && found != 1) ||
                (name == "Dense" && result.maps.size() == kMaxHeadMaps) ||
                (name == "MultiVectorMask" && !result.late_mask.empty()))
                refuse_modules(modules, type);
            next = name == "Dense" ? found : found + 1;
        }
        if (name == "Transformer") result.encoder = path;
        if (name == "Pooling") result.pooling = read_pooling(folder / "config.json");
        if (name == "Dense") add_dense(folder, result);
        if (name == "MultiVectorMask") result.late_mask = path;
        if (name == "Normalize") result.normalize = true;
    }
    return result;
}

}  // namespace fovea

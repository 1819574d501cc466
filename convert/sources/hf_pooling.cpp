// What sentence-transformers puts behind an encoder.
#include <algorithm>
#include <string>

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

/// A Dense module: a matrix, maybe a bias, and an activation by the name of PyTorch's class.
HeadMap read_dense(const fs::path& path, std::uint32_t width) {
    const Fields fields = Fields::read(path);
    if (const std::uint32_t in = fields.count("in_features"); width && in != width)
        fields.refuse("in_features", std::to_string(width) + ", as the module before it gives");
    HeadMap map;
    if (fields.flag_or("use_residual", false)) fields.refuse("use_residual", "false");
    for (const char* name : {"module_input_name", "module_output_name"})
        if (fields.text_or(name, "sentence_embedding") != "sentence_embedding")
            fields.refuse(name, "sentence_embedding");
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

}  // namespace

SentenceModules read_sentence_modules(const fs::path& modules) {
    const Mapping mapping = map_source(modules, 1u << 20);
    check_json_depth(text_of(mapping), modules.string());
    const SortedJson list = read_sorted_json(text_of(mapping));
    const auto refuse = [&](const std::string& had) {
        throw host::Error(modules.string() + ": expected a Transformer, a Pooling, at most " +
                          std::to_string(kMaxHeadMaps) +
                          " Dense and a Normalize or nothing, in this order, or a Transformer and a LogitScore or a "
                          "SpladePooling, got " +
                          had);
    };
    if (!list.is_array() || list.empty()) refuse("no list of modules");
    SentenceModules result;
    static constexpr const char* kOrder[] = {"Transformer", "Pooling", "Dense", "Normalize"};
    std::size_t next = 0, n_read = 0;  // the first of kOrder that may come
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
        std::string name = type.substr(type.find_last_of('.') + 1);
        if (name == "MLMTransformer") name = "Transformer";  // an older name
        if (name == "Dropout") continue;                     // of training
        const fs::path config = modules.parent_path() / path / "config.json";
        if (n_read == 1 && i + 1 == list.size() && (name == "LogitScore" || name == "SpladePooling")) {
            if (name == "LogitScore")
                result.scored = read_logit_score(config);
            else
                result.sparse = read_splade(config);
            break;
        }
        const auto found =
            static_cast<std::size_t>(std::find(std::begin(kOrder), std::end(kOrder), name) - std::begin(kOrder));
        const bool in_order = n_read < 2 ? found == n_read : found >= next;
        ++n_read;
        if (found == std::size(kOrder) || !in_order || result.normalize ||
            result.maps.size() + (found == 2) > kMaxHeadMaps)
            refuse(type);
        next = found;
        const fs::path folder = modules.parent_path() / path;
        if (found == 0) result.encoder = path;
        if (found == 1) result.pooling = read_pooling(folder / "config.json");
        if (found == 2) {
            const std::uint32_t before = result.maps.empty() ? 0 : result.maps.back().width;
            result.maps.push_back(read_dense(folder / "config.json", before));
            result.map_files.push_back(read_weights_folder(folder));
            for (const auto& [tensor, is] : result.map_files.back().tensors)
                if (tensor != "linear.weight" && tensor != "linear.bias")
                    throw host::Error(result.map_files.back().files.front().string() + ": tensor " + tensor +
                                      ": expected linear.weight and linear.bias alone");
        }
        if (found == 3) result.normalize = true;
    }
    return result;
}

}  // namespace fovea

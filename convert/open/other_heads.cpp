#include "convert/open/other_heads.h"

#include <algorithm>

#include "convert/families/heads.h"
#include "convert/formats/text_file.h"
#include "convert/formats/torch_pickle.h"
#include "convert/sources/hf_prompts.h"
#include "fovea/host/tokens.h"
#include "host/base/error.h"

namespace fovea {

namespace fs = std::filesystem;

void add_reranker(const fs::path& config_path, const std::vector<std::byte>& tokenizer, HfConfig& config) {
    const Fields fields = Fields::read(config_path);
    Tokenizer reader;
    if (tokenizer.empty()) throw host::Error("--reranker: expected a tokenizer beside the model, got none");
    require(open_tokenizer(tokenizer, reader), "tokenizer");
    const auto token = [&](const char* word) {
        const std::vector<Token> ids = host::tokenize(reader, word, {.add_special = false});
        if (ids.size() != 1)
            throw host::Error(std::string("--reranker: expected \"") + word + "\" to be one token, got " +
                              std::to_string(ids.size()));
        return ids[0];
    };
    if (config.stack().head[0].width == 0) score_tokens(fields, {token("yes"), token("no")}, config);
    if (config.stack().result_width() != 1) fields.refuse("num_labels", "1 with --reranker");
}

Safetensors read_linear(const fs::path& path) {
    Safetensors weights = read_torch_file(path), named;
    named.files = weights.files;
    for (const char* name : {"weight", "bias"}) {
        const auto found = weights.tensors.find(name);
        if (found == weights.tensors.end() || weights.tensors.size() != 2)
            throw host::Error(path.string() + ": expected a weight and a bias alone, got others");
        named.tensors[std::string("linear.") + name] = found->second;
    }
    named.mappings = std::move(weights.mappings);
    named.copies = std::move(weights.copies);
    return named;
}

void add_sparse_head(const fs::path& folder, HfConfig& config) {
    Stack& stack = config.stack();
    if (config.stack_index() != StackIndex::encoder || config.names.count({Role::head_map, 0}) || stack.has_output_head)
        throw host::Error(folder.string() + ": --sparse: expected an encoder without a head, got another model");
    config.map_files.clear();  // those of what the folder's modules pool
    config.map_files.push_back(read_linear(folder / "sparse_linear.pt"));
    stack.pooling = Pooling::none;
    stack.normalize_pooled = false;
    stack.head = {};
    stack.head[0] = {.width = 1, .activation = Activation::relu, .bias = true};
    config.source.info.insert(config.source.info.end(), {{"task", "sparse"}, {"scores", "none"}});
}

void use_as_sparse(const std::string& scores, const fs::path& folder, HfConfig& config) {
    auto& info = config.source.info;
    const auto task = std::find(info.begin(), info.end(), std::pair<std::string, std::string>{"task", "fill-mask"});
    if (task == info.end())
        throw host::Error((folder / "modules.json").string() +
                          ": expected a model for masked words before a SpladePooling, got another");
    task->second = "sparse";
    info.emplace_back("scores", scores);
    add_prompts(folder, "SparseEncoder", config.source);
}

}  // namespace fovea

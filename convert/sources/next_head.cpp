#include "convert/sources/next_head.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/base/error.h"

namespace fovea {
namespace {

/// Qwen's names, and what follows the layer's prefix in their place.
constexpr std::pair<std::string_view, std::string_view> kQwenNames[] = {
    {"mtp.layers.0.", ""},
    {"mtp.fc.", "eh_proj."},
    {"mtp.pre_fc_norm_embedding.", "enorm."},
    {"mtp.pre_fc_norm_hidden.", "hnorm."},
    {"mtp.norm.", "shared_head.norm."},
};

std::string prefix_of(const HfConfig& config) { return "layers." + std::to_string(config.stack().n_layers) + "."; }

/// What a name is behind the layer's prefix; empty: it is no tensor of the layer.
std::string_view behind(std::string_view name, std::string_view prefix) {
    const std::size_t at = name.find(prefix);
    return at == name.npos || (at && name[at - 1] != '.') ? "" : name.substr(at + prefix.size());
}

/// The last layer that attends.
std::uint32_t last_attending(const Stack& stack) {
    std::uint32_t layer = stack.n_layers - 1;
    while (layer && (stack.block(layer).recurrent || !stack.block(layer).attention.n_heads)) --layer;
    return layer;
}

/// That block becomes the only one, of one layer. What belongs to blocks, `ropes` and maybe more, moves with it.
void keep_block(Stack& stack, std::size_t block, auto&... of_blocks) {
    stack.blocks[0] = stack.blocks[block];
    for (std::size_t i = 1; i < kMaxBlocks; ++i) stack.blocks[i] = {};
    ((of_blocks[0] = of_blocks[block]), ...);
    stack.n_layers = stack.n_blocks = 1;
    stack.layer_blocks = {};
    stack.recurrent = {};
    stack.joins_rows = true;
    stack.embedding_norm = Norm::rms;
}

std::size_t block_of(const Stack& stack, std::uint32_t layer) {
    return stack.layer_blocks.empty() ? 0 : stack.layer_blocks[layer];
}

/// The last layer's block becomes the stack's only one.
void keep_last_block(HfConfig& config) {
    Stack& stack = config.stack();
    const std::uint32_t layer = last_attending(stack);
    decltype(config.names) names;
    for (const auto& [place, name] : config.names)
        if (place.first < Role::attention_norm)
            names.insert({place, name});
        else if (place.second == layer)
            names.insert({{place.first, 0}, name});
    config.names = std::move(names);
    keep_block(stack, block_of(stack, layer), config.ropes, config.slopes);
    config.n_skipped_layers = 0;
}

/// The layer's tensor of that name. Throws host::Error where there is none.
SourceTensor& own_tensor(const std::string& prefix, std::string_view name, Safetensors& weights) {
    for (auto& [full, tensor] : weights.tensors)
        if (behind(full, prefix) == name) return tensor;
    throw host::Error(weights.files.front().string() + ": " + prefix + std::string(name) +
                      ": expected a tensor, got none");
}

/// The norm of rows goes behind that of embeddings, as one tensor.
void join_norms(const std::string& prefix, Safetensors& weights) {
    SourceTensor& first = own_tensor(prefix, "enorm.weight", weights);
    SourceTensor& second = own_tensor(prefix, "hnorm.weight", weights);
    const bool plain = !first.packed && !second.packed && first.shape.size() == 1;
    if (!plain || first.dtype != second.dtype || first.shape != second.shape)
        throw host::Error(weights.files.front().string() + ": " + prefix +
                          "hnorm.weight: expected the shape and type of enorm.weight, got another");
    std::vector<std::byte> both(first.data, first.data + first.bytes);
    both.insert(both.end(), second.data, second.data + second.bytes);
    first.data = weights.copies.emplace_back(std::move(both)).data();
    first.bytes *= 2, first.shape[0] *= 2;
    std::erase_if(weights.tensors, [&](const auto& each) { return behind(each.first, prefix) == "hnorm.weight"; });
}

}  // namespace

void name_next_head(const HfConfig& config, Safetensors& weights) {
    const std::string prefix = prefix_of(config);
    decltype(weights.tensors) named;
    bool found = false;
    for (auto& [name, tensor] : weights.tensors) {
        std::string now = name;
        for (const auto& [qwen, instead] : kQwenNames)
            if (name.starts_with(qwen))
                now = ("model." + prefix).append(instead).append(std::string_view(name).substr(qwen.size()));
        found |= behind(now, prefix) == "eh_proj.weight";
        if (const auto [place, is_new] = named.emplace(now, std::move(tensor)); !is_new)
            throw host::Error("tensor " + name + ": expected one tensor of the next-token head's " + now + ", got two");
    }
    weights.tensors = std::move(named);
    if (found) return;
    // MiMo's layers have windows and a feed-forward part that no layer of the model has.
    const auto other = std::find_if(weights.tensors.begin(), weights.tensors.end(),
                                    [](const auto& each) { return each.first.find("mtp") != std::string::npos; });
    throw host::Error(weights.files.front().string() + ": --mtp: expected a next-token head (mtp.fc or " + prefix +
                      "eh_proj), got " +
                      (other == weights.tensors.end() ? "none" : "one of another kind (" + other->first + ")"));
}

void keep_next_head(HfConfig& config, Safetensors& weights) {
    Stack& stack = config.stack();
    const std::string prefix = prefix_of(config);
    if (config.encodes || !stack.has_output_head || config.output_from_embedding || stack.embedding_width)
        throw host::Error(weights.files.front().string() +
                          ": --mtp: expected a decoder with logits, got another model");
    const std::string table = place_of(config.family->names, Role::token_embedding).name,
                      head = place_of(config.family->names, Role::output).name.substr(1);
    decltype(weights.tensors) kept;
    for (auto& [name, tensor] : weights.tensors) {
        const std::string_view own = behind(name, prefix);
        if (own.empty() ? name.ends_with(table) && name.find("layers.") == name.npos : own != table)
            kept.insert_or_assign(own == "shared_head.head.weight" ? head : name, tensor);
        else if (name == head)
            kept.emplace(name, tensor);  // unless the layer has its own
    }
    for (const auto& [name, tensor] : weights.tensors)
        if (behind(name, prefix) == table)
            for (auto& [other, its] : kept)
                if (behind(other, prefix).empty() && other.ends_with(table)) its = tensor;
    weights.tensors = std::move(kept);
    join_norms(prefix, weights);
    config.layer_prefixes = {prefix};
    keep_last_block(config);
    config.names[{Role::embedding_map, 0}] = "#eh_proj.weight";
    config.names[{Role::embedding_norm, 0}] = "#enorm.weight";
    config.names[{Role::final_norm, 0}] = "#shared_head.norm.weight";
    require(check(config.source.config), weights.files.front().string());
}

void keep_next_head(const Gguf& file, GgufConfig& config) {
    Stack& stack = config.stack;
    const std::string place = file.path().string(), prefix = "blk." + std::to_string(stack.n_layers) + ".";
    const auto has = [&](const char* name) { return file.tensors().count(prefix + name) != 0; };
    if (config.is_encoder) throw host::Error(place + ": --mtp: expected a decoder with logits, got another model");
    if (config.n_skipped_layers == 0 || !has("nextn.eh_proj.weight"))
        throw host::Error(place + ": --mtp: expected a next-token head (" + prefix + "nextn.eh_proj), got none");
    config.next_head = {{Role::embedding_map, "#nextn.eh_proj.weight"},
                        {Role::final_norm, "#nextn.shared_head_norm.weight"}};
    const bool has_table = has("nextn.embed_tokens.weight"), has_output = has("nextn.shared_head_head.weight");
    if (has_table) config.next_head.push_back({Role::token_embedding, "#nextn.embed_tokens.weight"});
    if (has_output)
        config.next_head.push_back({Role::output, "#nextn.shared_head_head.weight"});
    else if (has_table && stack.tied_output)
        config.next_head.push_back({Role::output, "token_embd.weight"});
    stack.tied_output &= !has_table && !has_output;
    config.layer_numbers = {stack.n_layers};
    keep_block(stack, block_of(stack, last_attending(stack)), config.ropes);
    config.layer_blocks = {};
    config.n_skipped_layers = 0;
    Config whole;
    whole.decoder = stack;
    require(check(whole), place);
}

}  // namespace fovea

#include "convert/sources/tied_output.h"

#include <cstring>

namespace fovea {
namespace {

/// The head by which name, where the family has none for it.
constexpr const char* kHead = "lm_head.weight";

void untie(const std::string& head, HfConfig& config) {
    config.stack().tied_output = config.output_from_embedding = false;
    config.names[{Role::output, 0}] = "/" + head;
}

/// The model's own table, as the head is where it alone is trained.
SourceTensor plain(const SourceTensor& table) {
    SourceTensor plain = table.in_model ? *table.in_model : table;
    plain.added.clear();
    return plain;
}

/// An adapter may call the head as today's classes do, where the family's files have an older name for it.
void use_own_name(const std::string& head, Safetensors& weights) {
    const auto newer = weights.tensors.find(kHead);
    if (head == kHead || newer == weights.tensors.end()) return;
    if (newer->second.added.empty() && !newer->second.in_model) return;
    SourceTensor& own = weights.tensors[head];
    if (is_tied_head(newer->second))
        own.added.insert(own.added.end(), newer->second.added.begin(), newer->second.added.end());
    else
        own = std::move(newer->second);
    weights.tensors.erase(newer);
}

}  // namespace

bool are_equal(const SourceTensor& a, const SourceTensor& b) {
    return !a.packed && !b.packed && a.added.empty() && b.added.empty() && a.dtype == b.dtype && a.shape == b.shape &&
           a.bytes == b.bytes && std::memcmp(a.data, b.data, a.bytes) == 0;
}

std::string note_of_own_head(const std::string& head) {
    return head + ": the configuration ties it to the embeddings, but it differs from them; it is the output head";
}

void settle_tied_output(const std::string& table, const std::string& head, HfConfig& config, Safetensors& weights) {
    Stack& stack = config.stack();
    if (config.scored && !stack.has_output_head) {  // of the head a row or two are left
        stack.has_output_head = true, stack.tied_output = config.left_out.tied;
        settle_tied_output(table, head, config, weights);
        config.names[{Role::head_map, 0}] = "/" + (stack.tied_output ? table : head.empty() ? kHead : head);
        stack.has_output_head = stack.tied_output = false;
    }
    if (!stack.has_output_head) return;
    const bool ties = stack.tied_output || config.output_from_embedding;
    const std::string own_name = head.empty() ? kHead : head;
    use_own_name(own_name, weights);
    const auto found = weights.tensors.find(table), own = weights.tensors.find(own_name);
    const bool has_table = found != weights.tensors.end(), has_own = own != weights.tensors.end();
    const bool of_adapter = has_own && is_tied_head(own->second);
    const bool differ = ties && has_table && !(has_own && are_equal(found->second, own->second));
    if (differ && (of_adapter || !found->second.added.empty() || found->second.in_model)) {
        untie(own_name, config);
        SourceTensor plain_head = plain(found->second);
        if (of_adapter) plain_head.added = own->second.added;
        if (of_adapter || !has_own) weights.tensors.insert_or_assign(own_name, std::move(plain_head));
    } else if (ties && has_own && !has_table) {
        weights.tensors.emplace(table, own->second);
    } else if (differ && has_own) {
        untie(own_name, config);
        if (own->second.added.empty()) config.source.notes.push_back(note_of_own_head(own_name));
    }
    if (!stack.output_bias || config.stack_index() != StackIndex::encoder || !head.ends_with(".weight")) return;
    const std::string bias = head.substr(0, head.size() - 6) + "bias";
    if (weights.tensors.count(bias)) config.names[{Role::output_bias, 0}] = "/" + bias;
}

}  // namespace fovea

#include "convert/sources/tied_output.h"

#include <cstring>

namespace fovea {
namespace {

/// Where an adapter changes the table: PEFT adds its products to what is looked up alone.
void keep_plain_head(const SourceTensor& table, const std::string& head, HfConfig& config, Safetensors& weights) {
    config.stack().tied_output = false;
    if (weights.tensors.count(head)) return;
    SourceTensor plain = table;
    plain.added.clear();
    weights.tensors.emplace("lm_head.weight", std::move(plain));
    config.names[{Role::output, 0}] = "/lm_head.weight";
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
    if (!stack.has_output_head) return;
    const bool ties = stack.tied_output || config.output_from_embedding;
    const auto found = weights.tensors.find(table), own = weights.tensors.find(head);
    const bool has_table = found != weights.tensors.end(), has_own = own != weights.tensors.end();
    if (stack.tied_output && has_table && !found->second.added.empty()) {
        keep_plain_head(found->second, head, config, weights);
    } else if (ties && has_own && !has_table) {
        weights.tensors.emplace(table, own->second);
    } else if (ties && has_own && !are_equal(found->second, own->second)) {
        stack.tied_output = config.output_from_embedding = false;
        if (own->second.added.empty()) config.source.notes.push_back(note_of_own_head(head));
    }
    if (!stack.output_bias || config.stack_index() != StackIndex::encoder || !head.ends_with(".weight")) return;
    const std::string bias = head.substr(0, head.size() - 6) + "bias";
    if (weights.tensors.count(bias)) config.names[{Role::output_bias, 0}] = "/" + bias;
}

}  // namespace fovea

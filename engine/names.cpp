// The words for the numbers in a file, for messages and listings.
#include "model.h"

namespace fovea {

const char* role_name(std::uint16_t role) noexcept {
    switch (static_cast<Role>(role)) {
        case Role::token_embedding: return "token_embedding";
        case Role::position_embedding: return "position_embedding";
        case Role::type_embedding: return "type_embedding";
        case Role::embedding_norm: return "embedding_norm";
        case Role::embedding_norm_bias: return "embedding_norm_bias";
        case Role::final_norm: return "final_norm";
        case Role::final_norm_bias: return "final_norm_bias";
        case Role::output: return "output";
        case Role::output_bias: return "output_bias";
        case Role::rope_frequencies: return "rope_frequencies";
        case Role::relative_bias: return "relative_bias";
        case Role::attention_norm: return "attention_norm";
        case Role::attention_norm_bias: return "attention_norm_bias";
        case Role::attention_post_norm: return "attention_post_norm";
        case Role::attention_post_norm_bias: return "attention_post_norm_bias";
        case Role::query: return "query";
        case Role::query_bias: return "query_bias";
        case Role::key: return "key";
        case Role::key_bias: return "key_bias";
        case Role::value: return "value";
        case Role::value_bias: return "value_bias";
        case Role::query_norm: return "query_norm";
        case Role::key_norm: return "key_norm";
        case Role::query_norm_bias: return "query_norm_bias";
        case Role::key_norm_bias: return "key_norm_bias";
        case Role::attention_output: return "attention_output";
        case Role::attention_output_bias: return "attention_output_bias";
        case Role::appended_key: return "appended_key";
        case Role::appended_value: return "appended_value";
        case Role::cross_norm: return "cross_norm";
        case Role::cross_norm_bias: return "cross_norm_bias";
        case Role::cross_post_norm: return "cross_post_norm";
        case Role::cross_post_norm_bias: return "cross_post_norm_bias";
        case Role::cross_query: return "cross_query";
        case Role::cross_query_bias: return "cross_query_bias";
        case Role::cross_key: return "cross_key";
        case Role::cross_key_bias: return "cross_key_bias";
        case Role::cross_value: return "cross_value";
        case Role::cross_value_bias: return "cross_value_bias";
        case Role::cross_output: return "cross_output";
        case Role::cross_output_bias: return "cross_output_bias";
        case Role::feed_forward_norm: return "feed_forward_norm";
        case Role::feed_forward_norm_bias: return "feed_forward_norm_bias";
        case Role::feed_forward_post_norm: return "feed_forward_post_norm";
        case Role::feed_forward_post_norm_bias: return "feed_forward_post_norm_bias";
        case Role::up: return "up";
        case Role::up_bias: return "up_bias";
        case Role::down: return "down";
        case Role::down_bias: return "down_bias";
    }
    return "unknown";
}

const char* section_name(std::uint32_t kind) noexcept {
    switch (static_cast<SectionKind>(kind)) {
        case SectionKind::config: return "config";
        case SectionKind::tensors: return "tensors";
        case SectionKind::weights: return "weights";
        case SectionKind::tokenizer: return "tokenizer";
        case SectionKind::info: return "info";
    }
    return "unknown";
}

}  // namespace fovea

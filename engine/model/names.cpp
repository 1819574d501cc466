// The words for the numbers in a file, for messages and listings.
#include "model.h"

namespace fovea {
namespace {

constexpr std::uint16_t kRow = 32;
// [role / kRow][role % kRow], as format.h numbers them; null for numbers that are no role.
constexpr const char* kRoles[][kRow] = {
    {nullptr, "token_embedding", "position_embedding", "type_embedding", "embedding_norm", "embedding_norm_bias",
     "final_norm", "final_norm_bias", "output", "output_bias", "rope_frequencies", "relative_bias"},
    {"attention_norm", "attention_norm_bias", "attention_post_norm", "attention_post_norm_bias", "query", "query_bias",
     "key", "key_bias", "value", "value_bias", "query_norm", "key_norm", "query_norm_bias", "key_norm_bias",
     "attention_output", "attention_output_bias", "appended_key", "appended_value"},
    {"cross_norm", "cross_norm_bias", "cross_post_norm", "cross_post_norm_bias", "cross_query", "cross_query_bias",
     "cross_key", "cross_key_bias", "cross_value", "cross_value_bias", "cross_output", "cross_output_bias"},
    {"feed_forward_norm", "feed_forward_norm_bias", "feed_forward_post_norm", "feed_forward_post_norm_bias", "up",
     "up_bias", "down", "down_bias"}};
static_assert(Role::relative_bias == Role{11} && Role::appended_value == Role{kRow + 17} &&
              Role::cross_output_bias == Role{2 * kRow + 11} && Role::down_bias == Role{3 * kRow + 7});
constexpr const char* kSections[] = {nullptr, "config", "tensors", "weights", "tokenizer", "info"};

[[nodiscard]] const char* find_role(std::uint16_t role) noexcept {
    return role / kRow < std::size(kRoles) ? kRoles[role / kRow][role % kRow] : nullptr;
}

}  // namespace

bool is_role(std::uint16_t role) noexcept { return find_role(role) != nullptr; }

const char* role_name(std::uint16_t role) noexcept {
    const char* name = find_role(role);
    return name ? name : "unknown";
}

const char* section_name(std::uint32_t kind) noexcept {
    return kind > 0 && kind < std::size(kSections) ? kSections[kind] : "unknown";
}

}  // namespace fovea

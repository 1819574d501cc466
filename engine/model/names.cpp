// The words for the numbers in a file, for messages and listings.
#include "engine/format/parts.h"
#include "engine/model/model.h"

namespace fovea {
namespace {

struct NamedRole {
    std::uint16_t number;
    const char* name;
};
constexpr NamedRole kAllRoles[] = {
#define FOVEA_NAMED(field, role, number, ...) {number, #role},
    FOVEA_TENSORS(FOVEA_NAMED)};
/// Whether this build computes with tensors of that role.
[[nodiscard]] consteval bool is_own(std::uint16_t number) noexcept {
    const auto role = static_cast<Role>(number);
    if (role >= Role::attention_gate) return has(Part::states);
    if (role >= Role::layer_embedding) return has(Part::layer_inputs);
    if (is_columns(role)) return has(Part::columns);
    if (role >= Role::adapter_query_in) return has(Part::adapters);
    if (role >= Role::router && role <= Role::shared_down) return has(Part::experts);
    if (role >= Role::query_down && role <= Role::latent_value) return has(Part::latent);
    return true;
}
[[nodiscard]] consteval std::size_t count_roles() noexcept {
    std::size_t n = 0;
    for (const NamedRole& role : kAllRoles) n += is_own(role.number);
    return n;
}
template<class T>
struct OwnRoles {
    T of[count_roles()];
};
template<class T>
[[nodiscard]] consteval OwnRoles<T> own_roles(T NamedRole::*member) noexcept {
    OwnRoles<T> own{};
    std::size_t n = 0;
    for (const NamedRole& role : kAllRoles)
        if (is_own(role.number)) own.of[n++] = role.*member;
    return own;
}
constexpr auto kOwnNumbers = own_roles(&NamedRole::number);
constexpr auto kOwnNames = own_roles(&NamedRole::name);
constexpr const auto& kRoles = kOwnNumbers.of;
[[nodiscard]] consteval bool in_order() noexcept {
    for (std::size_t i = 1; i < std::size(kRoles); ++i)
        if (kRoles[i - 1] >= kRoles[i]) return false;
    return true;
}
static_assert(in_order(), "roles.inc: the directory is sorted by role, and its list is walked beside the directory");

constexpr const char* kSections[] = {nullptr, "config", "tensors", "weights", "tokenizer", "info"};

/// Its place in both lists; their length where it is no role.
[[nodiscard]] std::size_t find_role(std::uint16_t role) noexcept {
    std::size_t i = 0;
    while (i < std::size(kRoles) && kRoles[i] != role) ++i;
    return i;
}

}  // namespace

bool is_role(std::uint16_t role) noexcept { return find_role(role) < std::size(kRoles); }

const char* role_name(std::uint16_t role) noexcept {
    if (!has(Part::role_names)) return "tensor";
    return is_role(role) ? kOwnNames.of[find_role(role)] : "unknown";
}

const char* section_name(std::uint32_t kind) noexcept {
    return kind > 0 && kind < std::size(kSections) ? kSections[kind] : "unknown";
}

}  // namespace fovea

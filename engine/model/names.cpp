// The words for the numbers in a file, for messages and listings.
#include "model.h"
#include "parts.h"

namespace fovea {
namespace {

constexpr std::uint16_t kAllRoles[] = {
#define FOVEA_TENSOR(field, role, number, ...) number,
#include "roles.inc"
};
/// Adapters' are the last.
[[nodiscard]] consteval std::size_t count_roles() noexcept {
    std::size_t n = 0;
    while (n < std::size(kAllRoles) &&
           (has(Part::adapters) || kAllRoles[n] < static_cast<std::uint16_t>(Role::adapter_query_in)))
        ++n;
    return n;
}
struct Roles {
    std::uint16_t numbers[count_roles()];
};
[[nodiscard]] consteval Roles roles() noexcept {
    Roles result{};
    for (std::size_t i = 0; i < count_roles(); ++i) result.numbers[i] = kAllRoles[i];
    return result;
}
constexpr Roles kOwnRoles = roles();
constexpr const auto& kRoles = kOwnRoles.numbers;
constexpr const char* kRoleNames[] = {
#define FOVEA_TENSOR(field, role, ...) #role,
#include "roles.inc"
};
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
    return is_role(role) ? kRoleNames[find_role(role)] : "unknown";
}

const char* section_name(std::uint32_t kind) noexcept {
    return kind > 0 && kind < std::size(kSections) ? kSections[kind] : "unknown";
}

}  // namespace fovea

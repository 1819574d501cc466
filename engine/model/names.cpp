// The words for the numbers in a file, for messages and listings.
#include "model.h"

namespace fovea {
namespace {

struct RoleName {
    std::uint16_t role;
    const char* name;
};
constexpr RoleName kRoles[] = {
#define FOVEA_TENSOR(field, role, number, ...) {number, #role},
#include "roles.inc"
};
[[nodiscard]] consteval bool in_order() noexcept {
    for (std::size_t i = 1; i < std::size(kRoles); ++i)
        if (kRoles[i - 1].role >= kRoles[i].role) return false;
    return true;
}
static_assert(in_order(), "roles.inc: the directory is sorted by role, and its list is walked beside the directory");

constexpr const char* kSections[] = {nullptr, "config", "tensors", "weights", "tokenizer", "info"};

[[nodiscard]] const char* find_role(std::uint16_t role) noexcept {
    for (const RoleName& known : kRoles)
        if (known.role == role) return known.name;
    return nullptr;
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

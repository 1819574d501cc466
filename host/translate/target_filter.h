// Keeps a text that is written from a source within its rules.
#pragma once
#include <cstdint>
#include <span>

#include "fovea/generator.h"
#include "host/model/target_rules.h"

namespace fovea {

/// A generator's filter by those rules. It, the rules and the source must outlive the text.
class TargetFilter {
public:
    TargetFilter(const TargetRules& rules, std::span<const Token> source) : rules_(rules), source_(source) {}
    [[nodiscard]] TokenFilter filter();

private:
    void forbid(std::span<const Token> text, std::span<std::uint32_t> mask) const;

    const TargetRules& rules_;
    std::span<const Token> source_;
};

}  // namespace fovea

// Steps that rewrite a text.
#pragma once
#include <string_view>

#include "engine/tokenizer/text.h"

namespace fovea {

[[nodiscard]] constexpr bool rewrites(const TokenizerStep& step) noexcept {
    switch (static_cast<StepKind>(step.kind)) {
        case StepKind::normal_form:
        case StepKind::replace:
        case StepKind::prepend:
        case StepKind::characters:
        case StepKind::replace_pattern:
        case StepKind::map:
        case StepKind::strip: return true;
        default: return false;
    }
}

/// Writes the result of `step`, one of those, for `text`; `characters` are the tables'; `at_start`: `text` begins where
/// the whole text does. False if there is no room. Linear time.
[[nodiscard]] bool rewrite(const Tables& tables, const Classes& characters, const TokenizerStep& step,
                           std::string_view text, bool at_start, TextSink& out) noexcept;

}  // namespace fovea

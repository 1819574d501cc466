#include "engine/tokenizer/rewrite.h"

#include "engine/format/parts.h"
#include "engine/tokenizer/automaton.h"
#include "engine/tokenizer/text.h"

namespace fovea {
namespace {

std::string_view from_of(const TokenizerStep& step) noexcept {
    return {reinterpret_cast<const char*>(step.from), step.n_from};
}
std::string_view to_of(const TokenizerStep& step) noexcept {
    return {reinterpret_cast<const char*>(step.to), step.n_to};
}

bool starts_with(std::string_view text, std::string_view prefix) noexcept {
    return text.size() >= prefix.size() && std::string_view{text.data(), prefix.size()} == prefix;
}

bool replace(const TokenizerStep& step, std::string_view text, TextSink& out) noexcept {
    const std::string_view from = from_of(step);
    for (std::size_t pos = 0;;) {
        const std::size_t next = text.find(from, pos);
        if (next == std::string_view::npos) return out.put(tail(text, pos));
        if (!out.put({text.data() + pos, next - pos}) || !out.put(to_of(step))) return false;
        pos = next + from.size();
    }
}

bool prepend(const TokenizerStep& step, std::string_view text, bool at_start, TextSink& out) noexcept {
    const std::string_view to = to_of(step);
    const bool wanted = step.mode == 0 || (!starts_with(text, to) && (step.mode == 1 || at_start));
    return (!wanted || out.put(to)) && out.put(text);
}

bool rewrite_characters(const Tables& tables, const Classes& characters, const TokenizerStep& step,
                        std::string_view text, TextSink& out) noexcept {
    for (std::size_t pos = 0; pos < text.size();) {
        const auto c = characters.at(text, pos);
        std::string_view spelled{text.data() + pos, c.bytes};
        pos += c.bytes;
        if (step.mode & kClean) {
            if ((c.bits & kDropped) || c.code == kNotACharacter) continue;
            if (c.bits & kBlank) spelled = " ";
        }
        char lower[8];
        if (const Change change = step.mode & kLowerCase ? change_of(tables.lower_case, c.code) : Change{};
            change.entry) {
            std::uint32_t n_lower = put_character(change.first(), lower);
            if (change.second()) n_lower += put_character(change.second(), lower + n_lower);
            spelled = {lower, n_lower};
        }
        const std::string_view space(" ", (step.mode & kApart) && (c.bits & kIdeograph) ? 1 : 0);
        if (!out.put(space) || !out.put(spelled) || !out.put(space)) return false;
    }
    return true;
}

bool strip(const Tables& tables, const TokenizerStep& step, std::string_view text, TextSink& out) noexcept {
    const auto is_space = [&](const Character& c) {
        return step.mode & kStripBlanks ? c.code == ' '
                                        : c.code != kNotACharacter && (value_at(tables.classes, c.code) & kSpace);
    };
    while ((step.mode & kStripLeft) && !text.empty() && is_space(first_character(text)))
        text.remove_prefix(first_character(text).bytes);
    while ((step.mode & kStripRight) && !text.empty() && is_space(last_character(text)))
        text.remove_suffix(last_character(text).bytes);
    return out.put(text);
}

}  // namespace

bool rewrite(const Tables& tables, const Classes& characters, const TokenizerStep& step, std::string_view text,
             bool at_start, TextSink& out) noexcept {
    switch (static_cast<StepKind>(step.kind)) {
        case StepKind::normal_form:
            return has(Part::normal_forms) && normalize(tables, static_cast<NormalForm>(step.mode), text, out);
        case StepKind::characters:
            return has(Part::word_piece) && rewrite_characters(tables, characters, step, text, out);
        case StepKind::replace: return replace(step, text, out);
        case StepKind::prepend: return prepend(step, text, at_start, out);
        case StepKind::replace_pattern:
            return has(Part::patterns) && Pattern(tables, step.limit).replace(text, to_of(step), out);
        case StepKind::map: return has(Part::patterns) && map_characters(tables, step, text, out);
        case StepKind::strip: return has(Part::patterns) && strip(tables, step, text, out);
        default: return false;
    }
}

}  // namespace fovea

#include "host/chat/dialect.h"

#include <algorithm>
#include <initializer_list>

namespace fovea {
namespace {

constexpr Dialect kDialects[] = {
#include "host/chat/dialects.inc"
};

constexpr ReasoningMarks kReasoning[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|channel|>analysis<|message|>", "<|end|>"},
    {"<|channel>thought\n", "<channel|>"},
    {"<seed:think>", "</seed:think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
};

[[nodiscard]] bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
[[nodiscard]] std::string_view without_end_space(std::string_view text) {
    return text.substr(0, text.find_last_not_of(kMarkSpace) + 1);
}

/// The first row that a template shows; a row with the same mark and a second text that is shown comes before it.
[[nodiscard]] const Dialect* shown_by(std::string_view chat_template) {
    const Dialect* best = nullptr;
    for (const Dialect& row : kDialects) {
        if (!has(chat_template, row.shown[0]) || !has(chat_template, row.shown[1])) continue;
        if (!best || (row.open == best->open && !row.shown[1].empty() && best->shown[1].empty())) best = &row;
    }
    return best;
}

}  // namespace

std::span<const Dialect> all_dialects() { return kDialects; }

const Dialect* find_dialect(std::string_view name) {
    const auto row = std::find_if(std::begin(kDialects), std::end(kDialects), [&](auto& d) { return d.name == name; });
    return row == std::end(kDialects) ? nullptr : row;
}

AnswerDialect dialect_of(std::string_view chat_template, const std::function<bool(std::string_view)>& is_special) {
    AnswerDialect dialect{shown_by(chat_template), &kReasoning[0]};
    if (!dialect.calls && is_special)
        for (const Dialect& row : kDialects)
            if (!dialect.calls && !row.open.empty() && is_special(row.open) &&
                (row.shown[1].empty() || is_special(row.shown[1])))
                dialect.calls = &row;
    if (!dialect.calls) dialect.calls = &kDialects[0];
    const auto by_template = [&](const ReasoningMarks& marks) {
        return has(chat_template, without_end_space(marks.open));
    };
    const auto by_token = [&](const ReasoningMarks& marks) { return is_special && is_special(marks.open); };
    const bool in_channels = dialect.calls->syntax == CallSyntax::channels;
    for (const ReasoningMarks& marks : kReasoning)
        if (in_channels && marks.close == kMessageEnds[0]) dialect.reasoning = &marks;
    if (in_channels) return dialect;
    auto found = std::find_if(std::begin(kReasoning), std::end(kReasoning), by_template);
    if (found == std::end(kReasoning)) found = std::find_if(std::begin(kReasoning), std::end(kReasoning), by_token);
    if (found != std::end(kReasoning)) dialect.reasoning = found;
    return dialect;
}

CallWords call_words(const Dialect& d, bool plain_names) {
    const std::string space = d.lead.starts_with('\n') ? "\n" : "", close = space + std::string(d.close);
    if (d.syntax == CallSyntax::channels)
        return {std::string(kHeaderBegins[1]) + "commentary to=functions.",
                " " + std::string(d.beside) + "json" + std::string(kHeaderEnd), "", ""};
    const bool has_mark = d.bare != "{";
    const std::string open(has_mark ? d.open : std::string_view{});
    if (d.syntax == CallSyntax::named && plain_names)
        return {open + std::string(d.call_open) + std::string(d.name_open), std::string(d.name_close), "",
                std::string(d.call_close) + std::string(d.close)};
    return {open + std::string(d.lead) + "{" + std::string(d.first) + "\"" + std::string(d.name_key) + "\": \"",
            "\", \"" + std::string(d.arguments_key) + "\": ", d.lead.ends_with('[') ? "}]" : "}",
            has_mark && !d.close.empty() ? close : ""};
}

CallWords own_call_words(const Dialect& d) {
    const std::string open = std::string(d.open) + std::string(d.lead);
    const std::string end = (d.lead == "\n" ? "\n" : "") + std::string(d.close);
    if (d.syntax == CallSyntax::tagged)
        return {open + std::string(d.call_open), std::string(d.name_close), std::string(d.call_close), end};
    if (d.syntax == CallSyntax::python) return {open, "(", d.lead.ends_with('[') ? ")]" : ")", end};
    return {open + std::string(kMembersCall), "", "", end};
}

bool has_in_marks(const AnswerDialect& dialect, std::string_view text) {
    const Dialect& d = *dialect.calls;
    const auto is_in = [&](std::string_view mark) { return has(mark, text); };
    const auto any_of = [&](const auto& marks) { return std::any_of(std::begin(marks), std::end(marks), is_in); };
    if (text.empty()) return false;
    if (d.syntax == CallSyntax::channels)
        return any_of(kHeaderBegins) || any_of(kMessageEnds) || is_in(kHeaderEnd) || is_in(d.beside);
    return any_of(std::initializer_list<std::string_view>{
        d.open, d.close, d.call_open, d.call_close, d.name_open, d.name_close, d.key_open, d.key_close, d.value_open,
        d.value_close, d.quote, d.beside, dialect.reasoning->open, dialect.reasoning->close});
}

std::string_view begun_answer(const AnswerDialect& dialect, std::string_view prompt) {
    if (dialect.calls->syntax == CallSyntax::channels) {
        const std::size_t begin = prompt.rfind(kHeaderBegins[0]);
        return begin == prompt.npos ? std::string_view{} : prompt.substr(begin);
    }
    const std::string_view mark = dialect.reasoning->open;
    return without_end_space(prompt).ends_with(without_end_space(mark)) ? mark : std::string_view{};
}

}  // namespace fovea

// What `fovea run` was asked for, and what answers many prompts, or answers by a model of two stacks.
#pragma once
#include <algorithm>
#include <memory>
#include <string_view>

#include "fovea/host/generation.h"
#include "fovea/host/translator.h"
#include "tools/options/answer_form.h"
#include "tools/show/view.h"
#include "tools/verbs/chat.h"

namespace fovea {

struct RunOptions : TextOptions {
    ViewOptions view;
    FormOptions form;
    std::string prompt_file, draft, batch, output;
    std::vector<Token> tokens;                 // of --tokens
    std::size_t n_prompts = 0, n_others = 0;   // times that -p was given, and PROMPT, -f and --tokens
    std::vector<std::string_view> stop_views;  // of stop
    bool echo = false, special = false;
    std::optional<std::uint32_t> speculate;
    std::uint32_t n_sequences = 16;
    std::uint32_t n_beams = 0;  // 0: what the model says
    Languages languages;

    /// Tokens that are proposed in each pass.
    [[nodiscard]] std::uint32_t n_proposed() const { return speculate.value_or(draft.empty() ? 0 : 8); }
    [[nodiscard]] GenerateOptions generate(std::uint32_t most_new) const {
        GenerateOptions made{.n_new = most_new,
                             .stop = stop_views,
                             .show_special = special,
                             .speculation = {.n_proposed = n_proposed()}};
        sampling.apply(made);
        return made;
    }
    [[nodiscard]] GeneratorLimits limits() const {
        return {.max_stop_bytes = n_stop_bytes(),
                .max_proposed = form.wanted() ? std::max(n_proposed(), host::kForced) : n_proposed()};
    }
};

/// Writes text as it is made, or ids where the model has no text, parted by commas as --tokens reads them.
class PieceWriter {
public:
    explicit PieceWriter(const host::Opened& opened) : has_text_(opened.tokenizer.valid()) {}
    void write(const Piece& piece) { has_text_ ? write(piece.text) : write(piece.tokens); }
    void write(std::span<const Token> ids);
    static void write(std::string_view text);

private:
    bool has_text_, first_ = true;
};

/// Answers every request of --batch that the output does not hold yet. Throws host::Error: before anything is computed where a line is
/// not what it must be, and later where an answer cannot be made or written; the output keeps what is done.
void run_batch(const RunOptions& options, const host::Opened& opened);

/// Writes a text from the prompt by a model of host::Kind::translation.
void write_target(const RunOptions& options, const host::Opened& opened);

}  // namespace fovea

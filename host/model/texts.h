// Texts and pairs of texts on their way through an encoder: read, cut to what the model takes, computed in batches.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/encode.h"
#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "fovea/host/texts.h"
#include "host/model/text_pairs.h"
#include "host/model/text_prompts.h"

namespace fovea {

/// A file's lines, of "-" standard input's. A line that is a JSON object has a "text", and maybe a "pair". Throws host::Error where it
/// has not, or where there are no lines.
[[nodiscard]] std::vector<Text> read_text_lines(const std::string& path);

/// A text's tokens.
struct TextTokens {
    std::vector<Token> ids, types;                 ///< types may be empty: all are 0
    std::size_t second_begin = 0, second_end = 0;  ///< of a pair: where its second text's tokens are
    std::size_t n_whole = 0;                       ///< how many there were before the text was cut
    std::vector<std::uint32_t> rows;               ///< whose results are wanted; empty: all
    [[nodiscard]] bool is_cut() const { return n_whole > ids.size(); }
};

/// Tokens with the model's template around them, cut where they are more than most_tokens: the template's own stay.
/// Throws host::Error where nothing is left, or where the model has no types for a pair's.
[[nodiscard]] TextTokens tokens_of(const host::Opened& opened, const Text& text, bool parse_special = false,
                                   CutOf cut = CutOf::longer);

/// Says on standard error how many texts were cut, if any was.
void note_cut(const host::Opened& opened, std::span<const TextTokens> texts);

/// How much an encoder takes at once: rows of all texts together, and texts.
struct BatchRoom {
    std::size_t n_rows = 0, n_texts = 0;
};
/// Computes one batch: the encoder's results for `input` go to `out`.
using ComputeBatch = std::function<void(const EncodeInput& input, std::span<float> out)>;
/// Takes the results of text i: [rows or 1][result width].
using TakeResults = std::function<void(std::size_t i, std::span<const float> results)>;

/// Puts texts together, the longest first and as many as there is room for, and has each batch computed. A text that is longer
/// than the room is a batch of its own. Calls take once for every text, in any order.
///
///   stack        the encoder's
///   before_head  as EncodeInput has it
void encode_in_batches(const Stack& stack, bool before_head, std::span<const TextTokens> texts, BatchRoom room,
                       const ComputeBatch& compute, const TakeResults& take);

struct TextBatchOptions {
    std::uint32_t n_threads = 1;
    const char* isa = nullptr;
    Type kv_type = Type::f32;
    bool before_head = false;  ///< as EncodeInput has it
};

/// An encoder with the memory of one batch, for any number of texts. `texts` must outlive it.
class TextBatches {
public:
    TextBatches(const host::Opened& opened, std::span<const TextTokens> texts, const TextBatchOptions& options);

    /// Calls take once for every text, in any order.
    void run(const TakeResults& take);

    host::Runtime<Session> running;

private:
    const host::Opened& opened_;
    const bool before_head_;
    std::span<const TextTokens> texts_;
};

}  // namespace fovea

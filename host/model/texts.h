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
#include "host/model/pair_template.h"
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
    std::size_t n_before = 0;  ///< of those of the text, of a pair of its second text, how many were cut at its front
    std::uint32_t n_unpooled = 0;     ///< first ones, of a prompt, that pooling leaves out
    std::uint32_t n_unseen = 0;       ///< last ones, which no other attends to
    std::vector<std::uint32_t> rows;  ///< whose results are wanted; empty: all
    [[nodiscard]] bool is_cut() const { return n_whole > ids.size(); }
};

struct ReadOptions {
    bool parse_special = false;  ///< "[SEP]" in a text is that token
    CutOf cut = CutOf::longer;
    std::uint32_t n_most = 0;  ///< tokens; 0: most_tokens
};

/// Tokens with the model's template around them, cut where they are too many: the template's own stay. Throws host::Error where
/// nothing is left, or where the model has no types for a pair's.
[[nodiscard]] TextTokens tokens_of(const host::Opened& opened, const Text& text, const ReadOptions& options = {});

/// The same of two texts, by the model's pair_template if it has one.
[[nodiscard]] TextTokens tokens_of_pair(const host::Opened& opened, const std::string& first, const std::string& second,
                                        const ReadOptions& options, const PairReader& reader);

/// How many tokens of a text of n_tokens, which begins with the prompt, are not pooled: none, or those of the prompt.
[[nodiscard]] std::uint32_t n_unpooled(const host::Opened& opened, const std::string& prompt, std::size_t n_tokens,
                                       bool parse_special = false);
/// The tokens of a text behind a prompt.
[[nodiscard]] TextTokens tokens_behind(const host::Opened& opened, const std::string& prompt, std::string_view text,
                                       const ReadOptions& options = {});

/// Says on standard error how many texts were cut, if any was, to `most` tokens; 0: the model's.
void note_cut(const host::Opened& opened, std::span<const TextTokens> texts, std::uint32_t most = 0);

/// Hides the last n_unseen[i] rows of sequence i from the others, where there are any: `hidden` has the mask's elements.
[[nodiscard]] Mask mask_of_unseen(std::span<const std::uint32_t> lengths, std::span<const std::uint32_t> n_unseen,
                                  std::vector<std::uint8_t>& hidden);

/// How much an encoder takes at once: rows of all texts together, and texts.
struct BatchRoom {
    std::size_t n_rows = 0, n_texts = 0;
};
/// Computes one batch: the encoder's results for `input` go to `out`.
using ComputeBatch = std::function<void(const EncodeInput& input, std::span<float> out)>;
/// Which of an encoder's results are wanted.
struct WantedRows {
    bool before_head = false;             ///< as EncodeInput has it
    std::optional<Pooling> pooling = {};  ///< none: of all rows; nullopt: as the model pools
    std::uint32_t width = 0;              ///< values of each pooled vector, the first; 0: all
};
/// What of an encoder makes a vector of a text. One that does not pool gives the mean of its rows, as sentence-transformers does
/// with a checkpoint that says nothing of pooling. Nothing for other models.
[[nodiscard]] std::optional<WantedRows> vector_of_text(const host::Opened& opened);
/// What of it gives rows that nothing pools, or the logits of its head. Throws host::Error for a model that has none.
[[nodiscard]] WantedRows rows_wanted(const host::Opened& opened, bool of_head);
/// Takes the results of text i: [rows or 1][result width].
using TakeResults = std::function<void(std::size_t i, std::span<const float> results)>;

/// Puts texts together, the longest first and as many as there is room for, and has each batch computed. A text that is longer
/// than the room is a batch of its own. Calls take once for every text, in any order.
///
void encode_in_batches(const Stack& encoder, const WantedRows& wanted, std::span<const TextTokens> texts,
                       BatchRoom room, const ComputeBatch& compute, const TakeResults& take);

struct TextBatchOptions {
    std::uint32_t n_threads = 1;
    const char* isa = nullptr;
    Type kv_type = Type::f32;
    WantedRows wanted = {};
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
    const WantedRows wanted_;
    std::span<const TextTokens> texts_;
};

}  // namespace fovea

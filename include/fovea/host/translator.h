// One text after another from sources, by one beam or several: translations, summaries, answers. `fovea run` prints
// them, and Python's `translate` returns them.
//
//     Translator translator(opened, {.n_beams = 4});
//     std::puts(translator.translate("The lamp is on.", {.from = "en", .to = "fr"}).text.c_str());
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/generator.h"
#include "fovea/host/opened.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {
struct TargetPlan;  // host/translate/source_memory.h

/// Languages by the names of their tokens; fr may stand for >>fr<< or __fr__, as the model spells it; empty: the
/// tokenizer's own.
struct Languages {
    std::string from, to;
    const char *from_name = "--from", *to_name = "--to";  ///< what a refusal calls them
};

struct TargetLimits {
    std::uint32_t n_threads = 1;
    const char* isa = nullptr;  ///< nullptr: the best of this CPU
    Type kv_type = Type::f32;
    std::uint32_t max_source = 0, max_target = 0;  ///< tokens; 0: the model's positions
    const std::atomic<bool>* cancel = nullptr;
};

/// All memory is taken by the constructor, exactly what the plans say.
class Translator {
public:
    struct Options {
        TargetLimits limits = {};
        GeneratorLimits generator = {};  ///< of one beam's texts
        std::uint32_t n_beams = 0;       ///< up to 64; 0: as many as the model says
    };
    /// `opened` must outlive this; it may have no tokenizer. Throws host::Error.
    Translator(const host::Opened& opened, const Options& options);
    ~Translator();
    /// What the constructor takes, for programs in the tree. Throws host::Error.
    [[nodiscard]] static TargetPlan plan(const host::Opened& opened, const Options& options);

    /// Reads a source's ids, as the tokenizer made them, and begins a text. Data that `how` views must outlive the
    /// text. Several beams read only its n_new and show_special. Throws host::Error.
    void start(std::vector<Token> source, const Languages& languages, const GenerateOptions& how);

    struct Text {
        std::string text = {};  ///< empty without a tokenizer
        std::vector<Token> tokens = {};
        FinishReason finish = FinishReason::none;
        std::optional<float> score =
            {};  ///< of several beams, the log of its probability, divided by its length as the model says
        std::uint32_t n_parts = 1;  ///< that the source was read in; of several there is no score
        double source_seconds = 0;  ///< in which it was read
    };
    /// Writes it to its end. Pieces go to `on_piece` as they come; beams give one, for a text's beginning may change. Throws
    /// host::Error.
    [[nodiscard]] Text write(const std::function<void(const Piece&)>& on_piece = {});

    /// Both for a text. One that is longer than the model reads at once is read in parts, split where sentences end or, within
    /// longer ones, words; what is written from them is joined by spaces, of at most how.n_new tokens in all. Throws host::Error.
    [[nodiscard]] Text translate(std::string_view source, const Languages& languages = {},
                                 const GenerateOptions& how = {}, const TokenizeOptions& read = {},
                                 const std::function<void(const Piece&)>& on_piece = {});

    [[nodiscard]] std::size_t n_source() const;      ///< ids of the last text, those of languages too
    [[nodiscard]] std::uint32_t max_source() const;  ///< ids that the model reads at once
    [[nodiscard]] std::uint64_t n_bytes() const;

private:
    struct Parts;
    const std::unique_ptr<Parts> parts_;
};

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif

// One text after another from sources, by one beam or several: translations, summaries, answers. `fovea run` prints
// them, and Python's `translate` returns them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/translate/beam_translation.h"
#include "host/translate/translation.h"

namespace fovea {

/// All memory is taken by the constructor, exactly what the plans say.
class Translator {
public:
    struct Options {
        TargetLimits limits = {};
        GeneratorLimits generator = {};  ///< of one beam's texts
        std::uint32_t n_beams = 0;       ///< up to kMostBeams; 0: as many as the model says
    };
    /// `opened` must outlive this; it may have no tokenizer. Throws host::Error.
    Translator(const host::Opened& opened, const Options& options);
    /// What the constructor takes. Throws host::Error.
    [[nodiscard]] static TargetPlan plan(const host::Opened& opened, const Options& options);

    /// Reads a source's ids, as the tokenizer made them, and begins a text. Data that `how` views must outlive the
    /// text. Several beams read only its n_new and show_special. Throws host::Error.
    void start(std::vector<Token> source, const Languages& languages, const GenerateOptions& how);

    struct Text {
        std::string text = {};  ///< empty without a tokenizer
        std::vector<Token> tokens = {};
        FinishReason finish = FinishReason::none;
        std::optional<float> score = {};  ///< of several beams, see BeamTranslation::Text
    };
    /// Writes it to its end. Pieces go to `on_piece` as they come; beams give one, for a text's beginning may change. Throws host::Error.
    [[nodiscard]] Text write(const std::function<void(const Piece&)>& on_piece = {});

    [[nodiscard]] std::size_t n_source() const { return source_.size(); }  ///< ids, those of languages too
    [[nodiscard]] std::uint64_t n_bytes() const { return beams_ ? beams_->n_bytes() : writer_->n_bytes(); }

private:
    [[nodiscard]] Text follow(const std::function<void(const Piece&)>& on_piece);
    [[nodiscard]] Text search();
    [[nodiscard]] std::string text_of(std::span<const Token> tokens) const;

    const host::Opened& opened_;
    TargetRules said_, rules_;           // of the file, and with this text's languages
    std::optional<Translation> writer_;  // or, with several beams,
    std::optional<BeamTranslation> beams_;
    std::vector<Token> source_;
    bool shows_special_ = false;
};

}  // namespace fovea

// A text written from another by a model of two stacks: translations, summaries, answers. The encoder reads the source once, the
// decoder writes token by token.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/generator.h"
#include "fovea/host/translator.h"
#include "fovea/tokenizer.h"
#include "host/translate/source_memory.h"
#include "host/translate/target_filter.h"

namespace fovea {

/// The tokens and rules that languages change, found once for many sources.
struct ToldLanguages {
    std::optional<Token> from;    ///< in place of the source's language
    std::optional<Token> before;  ///< the target's, before the source
    TargetRules rules;            ///< with the target's, if it stands at the target's start
};
/// Throws host::Error, which names the language that the model does not know.
[[nodiscard]] ToldLanguages find_languages(const Languages& languages, const Tokenizer& tokenizer, TargetRules rules);
/// A source's ids, as the tokenizer made them, with the tokens of those languages. Throws host::Error.
[[nodiscard]] std::vector<Token> with_languages(std::vector<Token> source, const ToldLanguages& told,
                                                const Languages& languages, const Tokenizer& tokenizer);

/// Both at once: `rules` become what was told.
[[nodiscard]] std::vector<Token> with_languages(std::vector<Token> source, const Languages& languages,
                                                const Tokenizer& tokenizer, TargetRules& rules);

/// All memory is taken by the constructor, exactly what the plans say.
class Translation {
public:
    /// `opened` must outlive this. Throws host::Error.
    Translation(const host::Opened& opened, const TargetLimits& limits, const GeneratorLimits& generator = {});
    [[nodiscard]] static TargetPlan plan(const host::Opened& opened, const TargetLimits& limits,
                                         GeneratorLimits generator = {});

    /// Reads the source and begins a text as `rules` say; both, and what `how` views, must outlive the text. Throws host::Error.
    void start(std::span<const Token> source, const TargetRules& rules, GenerateOptions how);
    /// The next piece of the text, as `generate` of generator.h makes it.
    [[nodiscard]] Status next(Piece& piece) { return generate(*generator_, source_.workspace(), piece); }

    [[nodiscard]] const Generator& generator() const { return *generator_; }
    [[nodiscard]] std::uint32_t max_source() const { return source_.max_source(); }
    [[nodiscard]] std::uint64_t n_bytes() const { return plan_.n_bytes(); }

private:
    const host::Opened& opened_;
    TargetPlan plan_;
    SourceMemory source_;
    Cache text_;
    host::Runtime<Generator> generator_;
    std::optional<TargetFilter> filter_;
};

}  // namespace fovea

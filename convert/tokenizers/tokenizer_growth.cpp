#include <algorithm>
#include <cmath>
#include <cstring>

#include "convert/tokenizers/tokenizer_section.h"
#include "convert/tokenizers/tokenizer_spelling.h"
#include "convert/tokenizers/trie.h"
#include "engine/tokenizer/rewrite.h"
#include "host/base/error.h"

namespace fovea {
namespace {

constexpr std::size_t kMostBytes = 1u << 16;

StepKind kind_of(const TokenizerStep& step) { return static_cast<StepKind>(step.kind); }

/// Growth by the steps up to each that look characters up: the largest factor of all texts that they may change. The
/// next map seldom changes one map's results, so the product of their factors would be far too large.
class Changes {
public:
    explicit Changes(const TokenizerSource& source) : source_(source) {
        if (source.maps.empty()) return;
        // Ideographs do not change, all Hangul syllables like the first, and what is beyond the last stretch is itself.
        static constexpr std::pair<std::uint32_t, std::uint32_t> kChanging[] = {
            {1, 0x3400}, {0xa000, 0xac40}, {0xe000, 0x20000}, {0x2f800, 0x2fa1e}};
        for (const auto& [first, end] : kChanging)
            for (std::uint32_t code = first; code < end; ++code) texts_.push_back(spelled(code));
        bytes_.reserve(texts_.size());
        for (const std::string& text : texts_) bytes_.push_back(text.size());
        // Keys of several characters, if they are looked up first.
        for (const auto& [value, n_key] : trie_values(source.maps[0].units))
            if (value < source.maps[0].text.size())
                keys_ = std::max(keys_, static_cast<double>(std::strlen(source.maps[0].text.c_str() + value)) / n_key);
    }

    [[nodiscard]] bool apply() const { return !texts_.empty(); }

    double factor_after(std::size_t step) {
        const Rewriter rewriter({source_.steps[step]}, source_.patterns, source_.maps);
        double factor = std::max(1.0, keys_);
        for (std::size_t i = 0; i < texts_.size(); ++i) {
            texts_[i] = rewriter.rewritten(texts_[i], 1);
            factor = std::max(factor, static_cast<double>(texts_[i].size()) / static_cast<double>(bytes_[i]));
        }
        return factor;
    }

private:
    const TokenizerSource& source_;
    std::vector<std::string> texts_;
    std::vector<std::size_t> bytes_;
    double keys_ = 1;
};

/// The most that a step without a map makes a text longer, as a factor.
double growth_of(const TokenizerSource& source, const TokenizerStep& step) {
    switch (kind_of(step)) {
        case StepKind::normal_form: return 3;  // Unicode Standard Annex 15, table 10
        case StepKind::characters: return 2;   // an ideograph of 3 bytes gets two spaces
        case StepKind::replace: return std::max(1.0, static_cast<double>(step.n_to) / step.n_from);
        case StepKind::replace_pattern:
            return std::max(1.0, static_cast<double>(step.n_to) / source.patterns.at(step.limit).least_bytes);
        default: return 1;
    }
}

bool looks_up(const TokenizerStep& step) {
    return kind_of(step) == StepKind::map || kind_of(step) == StepKind::normal_form ||
           (kind_of(step) == StepKind::characters && !(step.mode & kApart));
}

}  // namespace

Rewriter::Rewriter(const std::vector<TokenizerStep>& steps, const std::vector<PatternStates>& patterns,
                   const std::vector<MapSource>& maps) {
    TokenizerSource source;
    source.steps = steps;
    source.patterns = patterns;
    source.maps = maps;
    const std::vector<std::byte> bytes = write_steps_section(source);
    section_.resize((bytes.size() + 7) / 8);
    std::memcpy(section_.data(), bytes.data(), bytes.size());
    n_bytes_ = bytes.size();
}

std::string Rewriter::rewritten(std::string_view text, std::size_t n_steps) const {
    Tables tables;
    const Status status = read_tables({reinterpret_cast<const std::byte*>(section_.data()), n_bytes_}, tables);
    require(status, "tokenizer");
    const Classes characters(tables.characters);
    room_.resize(kMostBytes);
    std::string result(text);
    for (std::size_t i = 0; i < n_steps && !result.empty(); ++i) {
        if (!rewrites(tables.steps[i])) continue;
        TextSink out(room_);
        if (!rewrite(tables, characters, tables.steps[i], result, true, out))
            throw host::Error("tokenizer: expected steps that make at most 64 KB of a token, got more");
        result = out.text();
    }
    return result;
}

void set_growth(const TokenizerSource& source, TokenizerHeader& header) {
    // A piece of one byte is the worst, since what is put before a piece then weighs most. Steps in a row keep the last
    // two texts at a time; once a text is cut, it stays while its pieces are made.
    double looked_up = 1, bytes = 1, most = 0, kept = 0;
    bool is_ours = false;
    Changes changes(source);
    for (std::size_t i = 0; i < source.steps.size(); ++i) {
        const TokenizerStep& step = source.steps[i];
        if (!rewrites(step)) {
            if (is_ours) kept += bytes;
            is_ours = false;
            continue;
        }
        const double before = is_ours ? bytes : 0;
        if (changes.apply() && looks_up(step)) {
            const double factor = std::max(looked_up, changes.factor_after(i));
            bytes *= factor / looked_up;
            looked_up = factor;
        } else {
            bytes *= growth_of(source, step);
        }
        if (kind_of(step) == StepKind::prepend) bytes += step.n_to;
        most = std::max(most, kept + before + bytes);
        if (bytes > kMaxTokenGrowth || most > kMaxTextGrowth)
            throw host::Error("tokenizer: expected steps that grow a text at most " + std::to_string(kMaxTokenGrowth) +
                              " times, got more");
        is_ours = true;
    }
    header.text_growth = static_cast<std::uint32_t>(std::ceil(most));
    // A piece of a word has a character at least, and no character becomes more of them than it has bytes, marks apart.
    header.token_growth = source.model == TokenizerModel::word_piece ? 1 : static_cast<std::uint32_t>(std::ceil(bytes));
}

}  // namespace fovea

#include "convert/tokenizers/tokenizer_steps.h"

#include <algorithm>

namespace fovea {
namespace {

/// The regular expressions that StepKind::words can stand for, as files spell them, with its settings for the same
/// result: it is faster than a pattern's states, and smaller.
struct KnownPattern {
    const char* pattern;
    std::uint8_t mode;
    std::uint32_t limit;
};
constexpr KnownPattern kPatterns[] = {
    // GPT-2, and ByteLevel's own
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", 0, 0},
    // Llama 3
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kWordFlags, 3},
    // Qwen 2
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kWordFlags, 1},
};

constexpr std::uint32_t kMetaspaceCode = 0x2581;

RefusePattern refusal_of(const JsonField& field) {
    return [field](const std::string& wanted) { field.refuse(wanted); };
}

TokenizerStep string_step(const JsonField& field, StepKind kind, std::uint8_t mode, const std::string& from,
                          const std::string& to) {
    if (from.size() > sizeof TokenizerStep::from || to.size() > sizeof TokenizerStep::to)
        field.refuse("at most " + std::to_string(sizeof TokenizerStep::from) + " bytes");
    return make_step(kind, mode, from, to);
}

/// A step with a pattern. Normalizers come before any step of bytes.
TokenizerStep checked_step(const JsonField& field, const PatternNodes& nodes, StepKind kind, std::uint8_t mode,
                           std::string_view to, TextSteps& steps) {
    const TokenizerStep step = pattern_step(steps.patterns, nodes, steps.bytes, kind, mode, to, refusal_of(field));
    if (steps.spaces && !steps.patterns[step.limit].same_class(' ', kMetaspaceCode))
        field.refuse("a pattern to which a space is as " + std::string(kMetaspace) + ", which it became");
    return step;
}

// ---- normalizers ---------------------------------------------------------------------------------------------------

class Normalizers {
public:
    Normalizers(TextSteps& steps, const std::optional<BertSettings>& bert) : steps_(steps), bert_(bert) {}

    void add(const JsonField& field) {
        if (field.is_null()) return;
        const std::string type = field["type"].text();
        if (type == "Sequence") {
            for (const JsonField& part : field["normalizers"].elements()) add(part);
        } else if (type == "Prepend") {
            const JsonField content = field["prepend"];
            std::string to = content.text();
            if (steps_.spaces) to = replaced(to, kMetaspace, " ");
            put(string_step(content, StepKind::prepend, 0, "", to));
        } else if (type == "Replace") {
            add_replace(field);
        } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
            if (type[2] == 'K') put_map(compatibility_map(), 0);
            put(make_step(StepKind::normal_form, type.back() == 'C' ? 0 : 2));
        } else if (type == "Lowercase") {
            put(make_step(StepKind::characters, kLowerCase));
        } else if (type == "StripAccents") {
            put_replace(field, set_pattern(accent_set(), true), "");
        } else {
            add_blank(field, type);
        }
    }

private:
    /// Steps after the one that makes a space of "▁": they see a space where the text has "▁".
    void add_blank(const JsonField& field, const std::string& type) {
        if (steps_.spaces && (type == "BertNormalizer" || type == "Nmt" || type == "Strip" || type == "Precompiled"))
            field.refuse("no such step after spaces became " + std::string(kMetaspace));
        if (type == "BertNormalizer") {
            BertSettings by = bert_.value_or(BertSettings{field["lowercase"].flag_or(true), {}, true});
            if (!bert_) {
                by.strip_accents = field["strip_accents"].flag_or(by.lower_case);
                by.chinese_apart = field["handle_chinese_chars"].flag_or(true);
            }
            const auto mode = (field["clean_text"].flag_or(true) ? kClean : 0) | (by.chinese_apart ? kApart : 0) |
                              (by.lower_case ? kLowerCase : 0);
            put(make_step(StepKind::characters, static_cast<std::uint8_t>(mode)));
            if (by.strip_accents.value_or(by.lower_case)) put(make_step(StepKind::normal_form, 1));
        } else if (type == "Nmt") {
            const RefusePattern refuse = refusal_of(field);
            put_replace(field, parse_pattern(R"([\x01-\x08\x0B\x0E-\x1F\x7F\x{8F}\x{9F}])", refuse), "");
            put_replace(field, parse_pattern(R"([\t\n\f\r\u1680\u200B-\u200F\u2028\u2029\u2581\uFEFF\uFFFD])", refuse),
                        " ");
        } else if (type == "Strip") {
            const auto mode = (field["strip_left"].flag_or(true) ? kStripLeft : 0) |
                              (field["strip_right"].flag_or(true) ? kStripRight : 0);
            put(make_step(StepKind::strip, static_cast<std::uint8_t>(mode)));
        } else if (type == "Precompiled") {
            add_precompiled(field["precompiled_charsmap"]);
        } else {
            field["type"].refuse(
                "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, "
                "Strip, StripAccents or a Sequence of them");
        }
    }

    void add_replace(const JsonField& field) {
        const JsonField pattern = field["pattern"]["String"], regex = field["pattern"]["Regex"];
        std::string to = field["content"].text();
        if (steps_.spaces) to = replaced(to, kMetaspace, " ");
        if (!regex.is_null()) return put_replace(regex, parse_pattern(regex.text(), refusal_of(regex)), to);
        std::string from = pattern.text();
        if (from.empty()) pattern.refuse("some text");
        if (from == " " && to == kMetaspace) {
            steps_.spaces = steps_.normalizes_spaces = true;
            for (TokenizerStep& step : steps_.normalizer) spell_space(step);
            return put(make_step(StepKind::replace, 0, kMetaspace, " "));
        }
        if (steps_.spaces) {
            if (from.find(' ') != std::string::npos) return;  // there are none any more
            from = replaced(from, kMetaspace, " ");
        }
        put(string_step(field, StepKind::replace, 0, from, to));
    }

    /// A prefix put before a text spells spaces as the steps after it do.
    static void spell_space(TokenizerStep& step) {
        if (step.kind != static_cast<std::uint8_t>(StepKind::prepend)) return;
        const std::string_view to(reinterpret_cast<const char*>(step.to), step.n_to);
        step = make_step(StepKind::prepend, step.mode, {}, replaced(to, kMetaspace, " "));
    }

    void add_precompiled(const JsonField& field) {
        if (field.is_null()) return;
        std::string bytes;
        std::uint32_t held = 0, n_bits = 0;
        for (const char c : field.text()) {
            static constexpr std::string_view kDigits =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            if (c == '=') break;
            const std::size_t digit = kDigits.find(c);
            if (digit == std::string_view::npos) field.refuse("base64");
            held = held << 6 | static_cast<std::uint32_t>(digit);
            n_bits += 6;
            if (n_bits < 8) continue;
            n_bits -= 8;
            bytes += static_cast<char>(held >> n_bits & 0xff);
        }
        if (!bytes.empty()) put_map(read_charsmap(bytes, field.place()), kMapClusters);
    }

    void put(const TokenizerStep& step) { steps_.normalizer.push_back(step); }
    void put_map(MapSource map, std::uint8_t mode) {
        put(make_step(StepKind::map, mode, {}, {}, index_in(steps_.maps, std::move(map))));
    }
    void put_replace(const JsonField& field, const PatternNodes& nodes, const std::string& to) {
        if (to.size() > sizeof TokenizerStep::to)
            field.refuse("at most " + std::to_string(sizeof TokenizerStep::to) + " bytes in the place of a match");
        put(checked_step(field, nodes, StepKind::replace_pattern, 0, to, steps_));
    }

    TextSteps& steps_;
    const std::optional<BertSettings>& bert_;
};

// ---- pre-tokenizers ------------------------------------------------------------------------------------------------

class PreTokenizers {
public:
    explicit PreTokenizers(TextSteps& steps) : steps_(steps) {}

    void add(const JsonField& field) {
        if (field.is_null()) return;
        const std::string type = field["type"].text();
        if (type == "Sequence") {
            for (const JsonField& part : field["pretokenizers"].elements()) add(part);
        } else if (type == "ByteLevel") {
            if (steps_.bytes || steps_.spaces || steps_.bert)
                field.refuse("no ByteLevel after another, nor after Metaspace or BertPreTokenizer");
            if (field["add_prefix_space"].flag_or(true)) put(make_step(StepKind::prepend, 1, {}, " "));
            if (field["use_regex"].flag_or(true)) put(make_step(StepKind::words));
            steps_.bytes = true;
        } else if (type == "BertPreTokenizer") {
            if (steps_.bytes || steps_.spaces) field.refuse("no BertPreTokenizer after ByteLevel or Metaspace");
            put(make_step(StepKind::bert_words));
            steps_.bert = steps_.leaves_out_spaces = true;
        } else if (type == "Digits") {
            const bool each = field["individual_digits"].flag_or(false);
            if (steps_.bytes)
                put_pattern(field, set_pattern(class_set(kNumeric), !each), mode_of(SplitMode::isolated));
            else
                put(make_step(StepKind::digits, each));
        } else if (type == "Split") {
            add_split(field);
        } else if (type == "Metaspace") {
            add_metaspace(field);
        } else {
            add_characters(field, type);
        }
    }

private:
    static constexpr std::uint8_t mode_of(SplitMode behavior, bool inverts = false) {
        return static_cast<std::uint8_t>(static_cast<std::uint8_t>(behavior) | (inverts ? kSplitInverts : 0));
    }

    static SplitMode behavior_of(const JsonField& field) {
        static constexpr std::pair<const char*, SplitMode> kBehaviors[] = {
            {"Isolated", SplitMode::isolated},        {"Removed", SplitMode::removed},
            {"Contiguous", SplitMode::contiguous},    {"MergedWithPrevious", SplitMode::with_previous},
            {"MergedWithNext", SplitMode::with_next},
        };
        const std::string name = field.text_or("Isolated");
        for (const auto& [known, mode] : kBehaviors)
            if (name == known) return mode;
        field.refuse("Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext");
    }

    /// Steps that cut at characters of one kind.
    void add_characters(const JsonField& field, const std::string& type) {
        if (type == "Punctuation") {
            put_pattern(field, set_pattern(character_set(kPunctuation), false),
                        mode_of(behavior_of(field["behavior"])));
        } else if (type == "WhitespaceSplit") {
            put_pattern(field, set_pattern(class_set(kSpace), true), mode_of(SplitMode::removed));
            steps_.leaves_out_spaces = true;
        } else if (type == "Whitespace") {  // words, and runs of what is neither word nor space; space goes
            CodeSet others = class_set(kWord);
            others |= class_set(kSpace);
            put_pattern(field, either_runs(class_set(kWord), others.inverse()), mode_of(SplitMode::removed, true));
            steps_.leaves_out_spaces = true;
        } else if (type == "CharDelimiterSplit") {
            const std::string delimiter = field["delimiter"].text();
            put_pattern(field, literal(field["delimiter"], delimiter), mode_of(SplitMode::removed));
        } else if (type == "FixedLength") {
            const std::string length = std::to_string(field["length"].id_or(5));
            put_pattern(field, parse_pattern("[\\s\\S]{1," + length + "}", refusal_of(field["length"])),
                        mode_of(SplitMode::isolated));
        } else {
            field["type"].refuse(
                "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, FixedLength, Metaspace, Punctuation, "
                "Split, Whitespace, WhitespaceSplit or a Sequence of them");
        }
    }

    static PatternNodes either_runs(const CodeSet& first, const CodeSet& second) {
        using enum PatternNode::Kind;
        PatternNodes result;
        result.sets = {first, second};
        result.nodes = {{fork, 0, false, 1, 3}, {take, 0, false, 2, 0}, {fork, 0, false, 1, 5},
                        {take, 1, false, 4, 0}, {fork, 0, false, 3, 5}, {match, 0, false, 0, 0}};
        return result;
    }

    static PatternNodes literal(const JsonField& field, const std::string& text) {
        if (text.empty()) field.refuse("some text");
        std::string escaped;
        for (const char c : text) {
            const bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                 static_cast<std::uint8_t>(c) >= 128 || c < ' ';
            if (!is_word) escaped += '\\';
            escaped += c;
        }
        return parse_pattern(escaped, refusal_of(field));
    }

    void add_split(const JsonField& field) {
        const JsonField regex = field["pattern"]["Regex"], text = field["pattern"]["String"];
        const SplitMode behavior = behavior_of(field["behavior"]);
        const bool inverts = field["invert"].flag_or(false);
        if (regex.is_null()) {
            if (steps_.spaces && text.text().find(' ') != std::string::npos) return;  // there are none any more
            return put_pattern(text, literal(text, text.text()), mode_of(behavior, inverts));
        }
        const std::string pattern = regex.text();
        const auto known = std::find_if(std::begin(kPatterns), std::end(kPatterns),
                                        [&](const KnownPattern& k) { return pattern == k.pattern; });
        // These leave nothing between their matches, so both of these behaviors give the matches.
        const bool gives_matches = behavior == SplitMode::isolated || (behavior == SplitMode::removed && inverts);
        if (known != std::end(kPatterns) && gives_matches && !steps_.bytes && !steps_.spaces)
            return put(make_step(StepKind::words, known->mode, {}, {}, known->limit));
        put_pattern(regex, parse_pattern(pattern, refusal_of(regex)), mode_of(behavior, inverts));
    }

    void add_metaspace(const JsonField& field) {
        if (steps_.bytes || steps_.bert) field.refuse("no Metaspace after ByteLevel or BertPreTokenizer");
        if (field["replacement"].text() != kMetaspace) field["replacement"].refuse(std::string(kMetaspace));
        const bool never = !field["add_prefix_space"].flag_or(true);
        const std::string scheme = never ? "never" : field["prepend_scheme"].text_or("always");
        steps_.spaces = true;
        put(make_step(StepKind::replace, 0, kMetaspace, " "));
        if (scheme == "always" || scheme == "first")
            put(make_step(StepKind::prepend, scheme == "first" ? 2 : 1, {}, " "));
        else if (scheme != "never")
            field["prepend_scheme"].refuse("\"always\", \"first\" or \"never\"");
        if (field["split"].flag_or(true)) put(make_step(StepKind::split_before, 0, " "));
    }

    void put(const TokenizerStep& step) { steps_.pre_tokenizer.push_back(step); }
    void put_pattern(const JsonField& field, const PatternNodes& nodes, std::uint8_t mode) {
        put(checked_step(field, nodes, StepKind::pattern, mode, {}, steps_));
    }

    TextSteps& steps_;
};

}  // namespace

TokenizerStep pattern_step(std::vector<PatternStates>& patterns, const PatternNodes& nodes, bool of_bytes,
                           StepKind kind, std::uint8_t mode, std::string_view to, const RefusePattern& refuse) {
    return make_step(kind, mode, {}, to, index_in(patterns, compile_pattern(nodes, of_bytes, refuse)));
}

TextSteps read_steps(const JsonField& normalizer, const JsonField& pre_tokenizer,
                     const std::optional<BertSettings>& bert) {
    TextSteps steps;
    Normalizers(steps, bert).add(normalizer);
    PreTokenizers(steps).add(pre_tokenizer);
    return steps;
}

void make_word_pieces(const JsonField& pre_tokenizer, TextSteps& steps) {
    if (steps.bytes || steps.spaces || !steps.leaves_out_spaces)
        pre_tokenizer.refuse("BertPreTokenizer, Whitespace or WhitespaceSplit, as the model is WordPiece");
    steps.pre_tokenizer.push_back(make_step(StepKind::prepend, 0, {}, " "));
    steps.word_piece = true;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string result;
    for (;;) {
        const std::size_t pos = text.find(from);
        result += text.substr(0, pos);
        if (pos == std::string_view::npos) return result;
        result += to;
        text.remove_prefix(pos + from.size());
    }
}

}  // namespace fovea

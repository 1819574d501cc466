#include "convert/tokenizer_steps.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "convert/refusal.h"

namespace fovea {
namespace {

using nlohmann::json;

/// The regular expressions this project knows, as files spell them, with what StepKind::words needs to act the same.
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

TokenizerStep string_step(const JsonField& field, StepKind kind, std::uint8_t mode, const std::string& from,
                          const std::string& to) {
    if (from.size() > sizeof TokenizerStep::from || to.size() > sizeof TokenizerStep::to)
        field.refuse("at most " + std::to_string(sizeof TokenizerStep::from) + " bytes");
    return make_step(kind, mode, from, to);
}

void add_normalizer(const JsonField& field, TextSteps& steps) {
    if (field.is_null()) return;
    const std::string type = field["type"].text();
    if (type == "Sequence") {
        for (const JsonField& part : field["normalizers"].elements()) add_normalizer(part, steps);
    } else if (type == "NFC") {
        steps.normalizer.push_back(make_step(StepKind::normal_form));
    } else if (type == "BertNormalizer") {
        const bool lower = field["lowercase"].flag_or(true);
        const auto mode = (field["clean_text"].flag_or(true) ? kClean : 0) |
                          (field["handle_chinese_chars"].flag_or(true) ? kApart : 0) | (lower ? kLowerCase : 0);
        steps.normalizer.push_back(make_step(StepKind::characters, static_cast<std::uint8_t>(mode)));
        if (field["strip_accents"].flag_or(lower)) steps.normalizer.push_back(make_step(StepKind::normal_form, 1));
    } else if (type == "Lowercase") {
        steps.normalizer.push_back(make_step(StepKind::characters, kLowerCase));
    } else if (type == "Prepend") {
        const JsonField content = field["prepend"];
        steps.normalizer.push_back(string_step(content, StepKind::prepend, 0, "", content.text()));
    } else if (type == "Replace") {
        const JsonField pattern = field["pattern"]["String"];
        const std::string from = pattern.text(), to = field["content"].text();
        if (from.empty()) pattern.refuse("some text");
        if (from == " " && to == kMetaspace) {
            steps.spaces = true;
            steps.normalizer.push_back(make_step(StepKind::replace, 0, kMetaspace, " "));
        } else {
            steps.normalizer.push_back(string_step(field, StepKind::replace, 0, from, to));
        }
    } else {
        field["type"].refuse("BertNormalizer, Lowercase, NFC, Prepend, Replace or a Sequence of them");
    }
}

void add_split(const JsonField& field, TextSteps& steps) {
    const JsonField regex = field["pattern"]["Regex"];
    if (regex.is_null()) field["pattern"].refuse("a Regex");
    const std::string pattern = regex.text();
    const auto known = std::find_if(std::begin(kPatterns), std::end(kPatterns),
                                    [&](const KnownPattern& k) { return pattern == k.pattern; });
    if (known == std::end(kPatterns)) regex.refuse("the pattern of GPT-2, Llama 3 or Qwen 2");
    // These patterns leave nothing between their matches, so both of these give the matches.
    const std::string behavior = field["behavior"].text();
    const bool invert = field["invert"].flag_or(false);
    if (!(behavior == "Isolated" || (behavior == "Removed" && invert)))
        field["behavior"].refuse("\"Isolated\", or \"Removed\" with invert");
    steps.pre_tokenizer.push_back(make_step(StepKind::words, known->mode, {}, {}, known->limit));
}

void add_metaspace(const JsonField& field, TextSteps& steps) {
    if (field["replacement"].text() != kMetaspace) field["replacement"].refuse(std::string(kMetaspace));
    const bool never = !field["add_prefix_space"].flag_or(true);
    const std::string scheme = never ? "never" : field["prepend_scheme"].text_or("always");
    steps.spaces = true;
    steps.pre_tokenizer.push_back(make_step(StepKind::replace, 0, kMetaspace, " "));
    if (scheme == "always" || scheme == "first")
        steps.pre_tokenizer.push_back(make_step(StepKind::prepend, scheme == "first" ? 2 : 1, {}, " "));
    else if (scheme != "never")
        field["prepend_scheme"].refuse("\"always\", \"first\" or \"never\"");
    if (field["split"].flag_or(true)) steps.pre_tokenizer.push_back(make_step(StepKind::split_before, 0, " "));
}

void add_pre_tokenizer(const JsonField& field, TextSteps& steps) {
    if (field.is_null()) return;
    if (steps.bytes || steps.bert) field.refuse("nothing after ByteLevel or BertPreTokenizer");
    const std::string type = field["type"].text();
    if (type == "Sequence") {
        for (const JsonField& part : field["pretokenizers"].elements()) add_pre_tokenizer(part, steps);
    } else if (type == "ByteLevel") {
        if (field["add_prefix_space"].flag_or(true))
            steps.pre_tokenizer.push_back(make_step(StepKind::prepend, 1, {}, " "));
        if (field["use_regex"].flag_or(true)) steps.pre_tokenizer.push_back(make_step(StepKind::words));
        steps.bytes = true;
    } else if (type == "BertPreTokenizer") {
        steps.pre_tokenizer.push_back(make_step(StepKind::bert_words));
        steps.pre_tokenizer.push_back(make_step(StepKind::prepend, 0, {}, " "));
        steps.bert = true;
    } else if (type == "Digits") {
        const std::uint8_t each = field["individual_digits"].flag_or(false);
        steps.pre_tokenizer.push_back(make_step(StepKind::digits, each));
    } else if (type == "Split") {
        add_split(field, steps);
    } else if (type == "Metaspace") {
        add_metaspace(field, steps);
    } else {
        field["type"].refuse("BertPreTokenizer, ByteLevel, Digits, Metaspace, Split or a Sequence of them");
    }
}

void add_decoder(const JsonField& field, TextDecoding& decoding, bool& puts_spaces_back) {
    const std::string type = field["type"].text();
    if (type == "Sequence") {
        for (const JsonField& part : field["decoders"].elements()) add_decoder(part, decoding, puts_spaces_back);
    } else if (type == "Replace") {
        if (field["pattern"]["String"].text() != kMetaspace || field["content"].text() != " ")
            field.refuse("\"" + std::string(kMetaspace) + "\" replaced by \" \"");
        puts_spaces_back = true;
    } else if (type == "ByteFallback") {
        decoding.byte_tokens = true;
    } else if (type == "Strip") {
        if (field["content"].text() != " " || field["start"].id() > 1 || field["stop"].id() != 0)
            field.refuse("content \" \", start 0 or 1, stop 0");
        if (field["start"].id() == 1) decoding.flags |= kDropFirstSpace;
    } else if (type == "Metaspace") {
        const bool never = !field["add_prefix_space"].flag_or(true) || field["prepend_scheme"].text_or("") == "never";
        if (!never) decoding.flags |= kDropFirstSpaces;
        puts_spaces_back = true;
    } else if (type != "Fuse") {
        field["type"].refuse("ByteFallback, Fuse, Metaspace, Replace, Strip or a Sequence of them");
    }
}

}  // namespace

bool JsonField::is_null() const { return value_->is_null(); }

bool JsonField::is_zero() const { return value_->is_number() && value_->get<double>() == 0; }

JsonField JsonField::operator[](const std::string& key) const {
    static const json null;
    if (!value_->is_object()) refuse("an object");
    const auto found = value_->find(key);
    return {found == value_->end() ? null : *found, *file_name_, path_.empty() ? key : path_ + "." + key};
}

std::vector<JsonField> JsonField::elements() const {
    if (!value_->is_array()) refuse("an array");
    std::vector<JsonField> result;
    for (const json& element : *value_)
        result.emplace_back(element, *file_name_, path_ + "[" + std::to_string(result.size()) + "]");
    return result;
}

std::string JsonField::text() const {
    if (!value_->is_string()) refuse("a string");
    return value_->get<std::string>();
}

std::string JsonField::text_or(const std::string& otherwise) const { return is_null() ? otherwise : text(); }

bool JsonField::flag_or(bool otherwise) const {
    if (is_null()) return otherwise;
    if (!value_->is_boolean()) refuse("true or false");
    return value_->get<bool>();
}

std::uint32_t JsonField::id() const {
    if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() >= kNoId) refuse("a number below 2^32 - 1");
    return value_->get<std::uint32_t>();
}

void JsonField::refuse(const std::string& wanted) const {
    constexpr std::size_t kMostShown = 300;
    std::string had = value_->dump();
    if (had.size() > kMostShown) had = "a value of " + std::to_string(had.size()) + " characters";
    throw Refusal(*file_name_ + ": " + path_ + ": expected " + wanted + ", got " + had);
}

TextSteps read_steps(const JsonField& normalizer, const JsonField& pre_tokenizer) {
    TextSteps steps;
    add_normalizer(normalizer, steps);
    add_pre_tokenizer(pre_tokenizer, steps);
    if (!steps.spaces) return steps;
    const auto is_words = [](const TokenizerStep& s) { return s.kind == static_cast<std::uint8_t>(StepKind::words); };
    if (steps.bytes || steps.bert || std::any_of(steps.pre_tokenizer.begin(), steps.pre_tokenizer.end(), is_words))
        pre_tokenizer.refuse("no BertPreTokenizer, ByteLevel or Split where spaces are spelled " +
                             std::string(kMetaspace));
    for (TokenizerStep& step : steps.normalizer)
        if (step.kind == static_cast<std::uint8_t>(StepKind::prepend)) {
            const std::string_view to(reinterpret_cast<const char*>(step.to), step.n_to);
            step = make_step(StepKind::prepend, step.mode, {}, replaced(to, kMetaspace, " "));
        }
    return steps;
}

TextDecoding read_decoding(const JsonField& decoder, const TextSteps& steps) {
    TextDecoding decoding;
    if (steps.bytes) {
        const bool byte_level = decoder.is_null() || decoder["type"].text() == "ByteLevel";
        if (!byte_level) decoder["type"].refuse("ByteLevel, as the pre_tokenizer has it");
        return decoding;
    }
    if (steps.bert) {
        if (decoder["type"].text() != "WordPiece") decoder["type"].refuse("WordPiece");
        if (decoder["prefix"].text_or(std::string(kContinues)) != kContinues) decoder["prefix"].refuse("##");
        decoding.flags = kDropFirstSpace;
        decoding.clean_up = decoder["cleanup"].flag_or(true);
        return decoding;
    }
    if (decoder.is_null()) decoder.refuse("a decoder, as the pre_tokenizer has no ByteLevel");
    bool puts_spaces_back = false;
    add_decoder(decoder, decoding, puts_spaces_back);
    if (puts_spaces_back != steps.spaces)
        decoder.refuse(std::string(kMetaspace) + " made a space where the normalizer or pre_tokenizer did the reverse");
    return decoding;
}

void read_template(const JsonField& post_processor, std::vector<std::uint32_t>& prefix,
                   std::vector<std::uint32_t>& suffix) {
    if (post_processor.is_null()) return;
    const std::string type = post_processor["type"].text();
    if (type == "Sequence") {
        for (const JsonField& part : post_processor["processors"].elements()) read_template(part, prefix, suffix);
    } else if (type == "TemplateProcessing") {
        bool after_text = false;
        for (const JsonField& part : post_processor["single"].elements()) {
            const JsonField special = part["SpecialToken"];
            if (special.is_null()) {
                if (after_text || part["Sequence"]["id"].text() != "A") part.refuse("a special token or the one text");
                after_text = true;
                continue;
            }
            const JsonField token = post_processor["special_tokens"][special["id"].text()];
            for (const JsonField& id : token["ids"].elements()) (after_text ? suffix : prefix).push_back(id.id());
        }
        if (!after_text) post_processor["single"].refuse("a template with the text in it");
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
        const auto second = [&](const char* key) {
            const std::vector<JsonField> pair = post_processor[key].elements();
            if (pair.size() != 2) post_processor[key].refuse("a token and its id");
            return pair[1].id();
        };
        prefix.push_back(second("cls"));
        suffix.push_back(second("sep"));
    } else if (type != "ByteLevel") {
        post_processor["type"].refuse(
            "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing or a Sequence of them");
    }
}

std::string normalized(const JsonField& content, const TextSteps& steps) {
    constexpr std::size_t kMostBytes = 1u << 16;  // on the way, where each step may make it longer
    std::string text = content.text();
    for (const TokenizerStep& step : steps.normalizer) {
        if (text.size() > kMostBytes) content.refuse("at most " + std::to_string(kMostBytes) + " bytes in each step");
        const std::string_view from(reinterpret_cast<const char*>(step.from), step.n_from);
        const std::string_view to(reinterpret_cast<const char*>(step.to), step.n_to);
        switch (static_cast<StepKind>(step.kind)) {
            case StepKind::prepend: text.insert(0, to); break;
            case StepKind::replace: text = replaced(text, from, to); break;
            case StepKind::characters:
                if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }))
                    content.refuse("visible ASCII, where BertNormalizer or Lowercase applies to an added token");
                if (step.mode & kLowerCase)
                    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
                break;
            default:
                // In UTF-8 every character that NFC may touch, U+0300 or above, starts with a byte of 0xcc or above.
                if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<std::uint8_t>(c) >= 0xcc; }))
                    content.refuse("characters below U+0300, where NFC applies to an added token");
        }
    }
    return text;
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

// Decoders and templates: what happens to ids after the words.
#include <algorithm>

#include "convert/tokenizers/tokenizer_steps.h"

namespace fovea {
namespace {

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

/// The single text's ids.
void add_single(const JsonField& processor, TokenizerSource& source) {
    bool after_text = false;
    for (const JsonField& part : processor["single"].elements()) {
        const JsonField special = part["SpecialToken"];
        if (special.is_null()) {
            if (after_text || part["Sequence"]["id"].text() != "A") part.refuse("a special token or the one text");
            after_text = true;
            continue;
        }
        const JsonField token = processor["special_tokens"][special["id"].text()];
        for (const JsonField& id : token["ids"].elements())
            (after_text ? source.suffix_ids : source.prefix_ids).push_back(id.id());
    }
    if (!after_text) processor["single"].refuse("a template with the text in it");
}

void add_pair(const JsonField& processor, TokenizerSource& source) {
    if (processor["pair"].is_null() || processor["pair"].elements().empty()) return;
    std::vector<TokenizerPart> parts;
    int n_first = 0, n_second = 0;
    for (const JsonField& part : processor["pair"].elements()) {
        const JsonField special = part["SpecialToken"], sequence = part["Sequence"];
        const JsonField& given = special.is_null() ? sequence : special;
        const std::uint32_t type = given["type_id"].id_or(0);
        if (special.is_null()) {
            const std::string which = sequence["id"].text();
            if (which != "A" && which != "B") sequence["id"].refuse("A or B");
            ++(which == "A" ? n_first : n_second);
            parts.push_back({which == "A" ? kFirstText : kSecondText, type});
        } else {
            const JsonField token = processor["special_tokens"][special["id"].text()];
            for (const JsonField& id : token["ids"].elements()) parts.push_back({id.id(), type});
        }
    }
    if (n_first != 1 || n_second != 1) processor["pair"].refuse("a template with each text once");
    source.pair = std::move(parts);
}

void add_template(const JsonField& processor, TokenizerSource& source) {
    if (processor.is_null()) return;
    const std::string type = processor["type"].text();
    if (type == "Sequence") {
        for (const JsonField& part : processor["processors"].elements()) add_template(part, source);
    } else if (type == "TemplateProcessing") {
        add_single(processor, source);
        add_pair(processor, source);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
        const auto second = [&](const char* key) {
            const std::vector<JsonField> pair = processor[key].elements();
            if (pair.size() != 2) processor[key].refuse("a token and its id");
            return pair[1].id();
        };
        const std::uint32_t cls = second("cls"), sep = second("sep");
        source.prefix_ids.push_back(cls);
        source.suffix_ids.push_back(sep);
        if (type == "BertProcessing")
            source.pair = {{cls, 0}, {kFirstText, 0}, {sep, 0}, {kSecondText, 1}, {sep, 1}};
        else
            source.pair = {{cls, 0}, {kFirstText, 0}, {sep, 0}, {sep, 0}, {kSecondText, 0}, {sep, 0}};
    } else if (type != "ByteLevel") {
        processor["type"].refuse(
            "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing or a Sequence of them");
    }
}

}  // namespace

TextDecoding read_decoding(const JsonField& decoder, const TextSteps& steps) {
    TextDecoding decoding;
    if (steps.bytes) {
        const bool byte_level = decoder.is_null() || decoder["type"].text() == "ByteLevel";
        if (!byte_level) decoder["type"].refuse("ByteLevel, as the pre_tokenizer has it");
        return decoding;
    }
    if (steps.word_piece) {
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

void read_template(const JsonField& post_processor, TokenizerSource& source) {
    source.pair = {{kFirstText, 0}, {kSecondText, 1}};
    add_template(post_processor, source);
}

}  // namespace fovea

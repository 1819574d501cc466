#include "convert/tokenizers/tokenizer_json.h"

#include <algorithm>
#include <memory>

#include "convert/formats/text_file.h"
#include "convert/tokenizers/tokenizer_section.h"
#include "convert/tokenizers/tokenizer_spelling.h"
#include "convert/tokenizers/tokenizer_steps.h"
#include "convert/tokenizers/tokenizer_vocabulary.h"
#include "engine/format/utf8.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"

namespace fovea {
namespace {

/// The file's parts that are read here, without the two large ones. Whenever an object ends, the parser looks through
/// the list or object that holds it. So added tokens, which may be many, are taken out of their list one by one, and
/// other objects must be few.
SortedJson parse_small_parts(std::span<const char> text, const std::string& file_name) {
    static constexpr const char* kParts[] = {"normalizer", "pre_tokenizer", "model",
                                             "decoder",    "added_tokens",  "post_processor"};
    constexpr int kMostObjects = 4096;
    bool in_added = false, in_part = true;
    int n_objects = 0;
    SortedJson added = SortedJson::array();
    const auto keep = [&](int depth, SortedJson::parse_event_t event, SortedJson& parsed) {
        const bool is_added = in_added && depth == 2;
        if (event == SortedJson::parse_event_t::key && depth == 1) {
            in_added = parsed == "added_tokens";
            in_part =
                std::any_of(std::begin(kParts), std::end(kParts), [&](const char* part) { return parsed == part; });
            return in_part;
        }
        if (event == SortedJson::parse_event_t::key && depth == 2) return parsed != "vocab" && parsed != "merges";
        if (event == SortedJson::parse_event_t::object_start && in_part && !is_added && ++n_objects > kMostObjects)
            throw host::Error(file_name + ": expected at most " + std::to_string(kMostObjects) +
                              " objects beside added tokens, got more");
        if (event != SortedJson::parse_event_t::object_end || !is_added) return true;
        added.push_back(std::move(parsed));
        return false;
    };
    check_json_depth(text, file_name);
    JsonFault fault;
    SortedJson parts = read_sorted_json({text.data(), text.size()}, &fault, keep);
    if (!fault.words.empty()) throw host::Error(file_name + ": " + fault.words);
    if (!parts.is_object()) throw host::Error(file_name + ": expected a JSON object, got " + parts.type_name());
    if (const auto list = parts.find("added_tokens"); list != parts.end() && list->is_array() && list->empty())
        *list = std::move(added);
    return parts;
}

/// Whether WordPiece's clean-up takes the space away that `bytes` starts with.
bool joins(std::string_view bytes) {
    static constexpr std::string_view kStarts[] = {" .", " ?", " !", " ,", " n't", " 'm", " 's", " 've", " 're"};
    return std::any_of(std::begin(kStarts), std::end(kStarts), [&](auto start) { return bytes.starts_with(start); });
}

/// Puts a tokenizer.json together as a section's source.
class JsonConversion {
public:
    JsonConversion(const JsonField& file, std::span<const char> text, const std::string& file_name,
                   const TokenizerFacts& facts, std::vector<std::string>& notes)
        : file_(file),
          facts_(facts),
          notes_(notes),
          steps_(read_steps(file["normalizer"], file["pre_tokenizer"], facts.bert)) {
        if (facts.lower_case)
            steps_.normalizer.insert(steps_.normalizer.begin(), make_step(StepKind::characters, kLowerCase));
        check_model(file["model"]);
        decoding_ = read_decoding(file["decoder"], steps_);
        vocabulary_ = read_vocabulary(text, file_name, facts.vocab_size);
    }

    TokenizerSource run() {
        set_model(file_["model"]);
        set_tokens();
        set_added();
        read_template(file_["post_processor"], source_);
        if (facts_.bert && steps_.word_piece) check_bert(*facts_.bert);
        set_roles();
        source_.merges = std::move(vocabulary_.merges);
        return std::move(source_);
    }

private:
    [[nodiscard]] bool is_unigram() const { return file_["model"]["type"].text_or("") == "Unigram"; }

    void check_model(const JsonField& model) {
        const std::string type = model["type"].text_or(steps_.bert ? "WordPiece" : "BPE");
        if (type == "WordPiece") {
            make_word_pieces(file_["pre_tokenizer"], steps_);
            const JsonField prefix = model["continuing_subword_prefix"], unknown = model["unk_token"];
            if (prefix.text_or(std::string(kContinues)) != kContinues) prefix.refuse(std::string(kContinues));
            if (unknown.is_null()) unknown.refuse("a token");
            return;
        }
        if (steps_.bert) model["type"].refuse("WordPiece, as the pre_tokenizer is BertPreTokenizer");
        if (is_unigram()) {
            if (steps_.bytes) model["type"].refuse("BPE, as the pre_tokenizer has ByteLevel");
            return;
        }
        if (type != "BPE") model["type"].refuse("BPE, Unigram or WordPiece");
        for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
            if (!model[key].text_or("").empty()) model[key].refuse("none");
        if (const JsonField dropout = model["dropout"]; !dropout.is_null() && !dropout.is_zero())
            dropout.refuse("none");
        if (steps_.bytes && model["byte_fallback"].flag_or(false))
            model["byte_fallback"].refuse("false, as the pre_tokenizer has ByteLevel");
    }

    /// The class puts its own tokens around a text.
    void check_bert(const BertSettings& wanted) const {
        const auto has = [&](const std::vector<std::uint32_t>& ids, const std::string& token) {
            return token.empty() || ids.empty() ||
                   std::find(ids.begin(), ids.end(), vocabulary_.find(token)) != ids.end();
        };
        if (!has(source_.prefix_ids, wanted.cls) || !has(source_.suffix_ids, wanted.sep))
            file_["post_processor"].refuse("tokenizer_config.json's cls_token and sep_token around a text");
        if (!has({source_.unknown}, wanted.unknown))
            file_["model"]["unk_token"].refuse("tokenizer_config.json's " + wanted.unknown);
    }

    void set_model(const JsonField& model) {
        source_.flags = decoding_.flags;
        if (steps_.bytes) source_.flags |= kSymbolsAreBytes;
        if (model["ignore_merges"].flag_or(false)) source_.flags |= kWholeWords;
        if (model["fuse_unk"].flag_or(false)) source_.flags |= kFuseUnknown;
        if (model["byte_fallback"].flag_or(false)) source_.flags |= kByteFallback;
        if (is_unigram()) {
            set_unigram(model);
        } else if (const JsonField unknown = model["unk_token"]; !unknown.is_null()) {
            source_.unknown = vocabulary_.find(unknown.text());
            if (source_.unknown == kNoId) unknown.refuse("a token of the vocabulary");
        }
        if (steps_.word_piece) {
            const JsonField most = model["max_input_chars_per_word"];
            const std::uint32_t n = most.is_null() ? 100 : most.id();
            if (n >= kMaxWordCharacters) most.refuse("a number below " + std::to_string(kMaxWordCharacters));
            source_.model = TokenizerModel::word_piece;
            source_.max_word_characters = n + 1;  // and the space before it
            return;
        }
        for (std::uint32_t byte = 0; byte < 256; ++byte)
            source_.byte_ids[byte] = vocabulary_.find(steps_.bytes ? byte_spelling(byte) : byte_token(byte));
    }

    void set_unigram(const JsonField& model) {
        const std::vector<double>& scores = vocabulary_.scores;
        if (scores.empty()) model["vocab"].refuse("a list of tokens with scores");
        if (const JsonField unknown = model["unk_id"]; !unknown.is_null()) {
            source_.unknown = unknown.id();
            if (source_.unknown >= scores.size()) unknown.refuse("a token's number in the vocabulary");
        }
        source_.model = TokenizerModel::unigram;
        source_.scores = scores;
        source_.scores.resize(scores.size() + 1, *std::min_element(scores.begin(), scores.end()) - kUnknownPenalty);
        for (std::uint32_t id = 0; id < scores.size(); ++id) {
            std::string spelling(vocabulary_.spellings.at(id));
            if (spelling.size() > kMostPieceBytes)
                model["vocab"].refuse("pieces of at most " + std::to_string(kMostPieceBytes) + " bytes");
            if (steps_.spaces && spelling.find(' ') != std::string::npos) continue;
            source_.pieces.emplace_back(steps_.spaces ? replaced(spelling, kMetaspace, " ") : spelling, id);
        }
    }

    /// The bytes that a spelling of the file stands for in a text; whether words can be made of it.
    bool bytes_of(std::string_view spelling, std::string& bytes) const {
        if (steps_.bytes) return spelled_bytes(spelling, bytes);
        if (steps_.word_piece) {
            const bool continues = spelling.starts_with(kContinues);
            bytes = continues ? spelling.substr(kContinues.size()) : " " + std::string(spelling);
            return bytes.find(' ', continues ? 0 : 1) == std::string::npos;
        }
        if (const int byte = byte_of_token(spelling); decoding_.byte_tokens && byte >= 0) {
            bytes = static_cast<char>(byte);
            return false;
        }
        bytes = spelling;
        if (!steps_.spaces) return true;
        bytes = replaced(bytes, kMetaspace, " ");
        return spelling.find(' ') == std::string_view::npos;
    }

    void set_tokens() {
        const bool whole_words = source_.flags & kWholeWords;
        std::string bytes;
        for (std::uint32_t id = 0; id < vocabulary_.spellings.size(); ++id) {
            if (!vocabulary_.spellings.has(id)) continue;
            const bool in_words = bytes_of(vocabulary_.spellings.at(id), bytes);
            source_.tokens.set(id, bytes);
            if (decoding_.clean_up && joins(bytes)) source_.joined.push_back(id);
            const bool one_character = !bytes.empty() && first_character(bytes).bytes == bytes.size();
            if (in_words && (whole_words || steps_.word_piece || (!steps_.bytes && one_character)))
                source_.lookup.push_back(id);
        }
    }

    void set_added() {
        const JsonField list = file_["added_tokens"];
        bool any_plain = false, any_normalized = false;
        std::vector<std::string> beyond;
        if (!list.is_null())
            for (const JsonField& token : list.elements()) {
                if (token["id"].id() >= facts_.vocab_size) {
                    beyond.push_back(token["content"].text());
                    continue;
                }
                add_added(token);
                (source_.added.back().flags & kAddedNormalized ? any_normalized : any_plain) = true;
            }
        if (!beyond.empty())
            notes_.push_back(list.place() + ": left out, as the model has " + std::to_string(facts_.vocab_size) +
                             " rows and none for them: " + few_of(beyond));
        source_.patterns = steps_.patterns;
        source_.maps = steps_.maps;
        if (any_plain) source_.steps.push_back(make_step(StepKind::added_tokens, 0));
        source_.steps.insert(source_.steps.end(), steps_.normalizer.begin(), steps_.normalizer.end());
        if (any_normalized) source_.steps.push_back(make_step(StepKind::added_tokens, 1));
        source_.steps.insert(source_.steps.end(), steps_.pre_tokenizer.begin(), steps_.pre_tokenizer.end());
    }

    void add_added(const JsonField& token) {
        const JsonField content = token["content"];
        AddedTokenSource added{token["id"].id(), 0, content.text()};
        if (added.text.empty()) content.refuse("some text");
        const std::uint32_t known = vocabulary_.find(added.text);
        if (known != kNoId ? known != added.id : vocabulary_.spellings.has(added.id))
            token["id"].refuse("the vocabulary's id for " + added.text);
        const bool is_normalized = token["normalized"].flag_or(true);
        if (is_normalized) added.text = normalizer().rewritten(added.text, steps_.normalizer.size());
        if (added.text.empty()) content.refuse("some text after normalizing");
        if (added.text.size() > kMaxAddedBytes) content.refuse("at most " + std::to_string(kMaxAddedBytes) + " bytes");
        const auto flag = [&](const char* key, AddedFlag bit) {
            if (token[key].flag_or(false)) added.flags |= bit;
        };
        flag("special", kAddedSpecial);
        flag("single_word", kAddedWord);
        flag("lstrip", kAddedTakesLeft);
        flag("rstrip", kAddedTakesRight);
        if (is_normalized) added.flags |= kAddedNormalized;
        if (is_normalized && steps_.normalizes_spaces && (added.flags & (kAddedTakesLeft | kAddedTakesRight)))
            token.refuse("no lstrip or rstrip for a normalized token, as spaces are spelled " +
                         std::string(kMetaspace));
        std::string bytes;
        bytes_of(added.text, bytes);
        source_.tokens.set(added.id, bytes);
        if (decoding_.clean_up && joins(bytes)) source_.joined.push_back(added.id);
        if (added.flags & kAddedSpecial) source_.special.push_back(added.id);
        source_.added.push_back(std::move(added));
    }

    const Rewriter& normalizer() {
        if (!normalizer_) normalizer_ = std::make_unique<Rewriter>(steps_.normalizer, steps_.patterns, steps_.maps);
        return *normalizer_;
    }

    void set_roles() {
        for (const std::uint32_t id : source_.prefix_ids) check_id(file_["post_processor"], id);
        for (const std::uint32_t id : source_.suffix_ids) check_id(file_["post_processor"], id);
        for (const TokenizerPart& part : source_.pair)
            if (part.id != kFirstText && part.id != kSecondText) check_id(file_["post_processor"], part.id);
        for (TokenizerPart& part : source_.pair) part.type = facts_.has_token_types ? part.type : 0;
        while (!source_.suffix_ids.empty() && facts_.left_out_last == source_.suffix_ids.back()) {
            source_.suffix_ids.pop_back();
            if (facts_.n_left_out) ++*facts_.n_left_out;
        }
        while (!source_.pair.empty() && facts_.left_out_last == source_.pair.back().id) source_.pair.pop_back();
        if (facts_.bos) source_.bos = *facts_.bos;
        if (!source_.prefix_ids.empty())
            source_.bos = source_.prefix_ids[0];  // config.json may name another (R1 distills)
        source_.end_ids = facts_.eos;
        if (facts_.appends_eos && source_.suffix_ids.empty() && !facts_.eos.empty())
            source_.suffix_ids = {facts_.eos.front()};
    }

    void check_id(const JsonField& field, std::uint32_t id) const {
        if (id >= facts_.vocab_size)
            field.refuse("ids below the model's vocab_size " + std::to_string(facts_.vocab_size));
    }

    const JsonField& file_;
    const TokenizerFacts& facts_;
    std::vector<std::string>& notes_;
    TextSteps steps_;
    TextDecoding decoding_;
    Vocabulary vocabulary_;
    std::unique_ptr<Rewriter> normalizer_;  // the steps for added tokens that are normalized; made for the first
    TokenizerSource source_;
};

}  // namespace

std::vector<std::byte> tokenizer_section_from_json(std::span<const char> json_text, const std::string& file_name,
                                                   const TokenizerFacts& facts, std::vector<std::string>& notes) {
    const SortedJson parts = parse_small_parts(json_text, file_name);
    const JsonField file(parts, file_name, "");
    return write_tokenizer_section(JsonConversion(file, json_text, file_name, facts, notes).run());
}

}  // namespace fovea

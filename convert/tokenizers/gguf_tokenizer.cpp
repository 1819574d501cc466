#include "convert/tokenizers/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "convert/tokenizers/gguf_cuts.h"
#include "convert/tokenizers/sentence_piece.h"
#include "convert/tokenizers/tokenizer_section.h"
#include "convert/tokenizers/tokenizer_spelling.h"
#include "convert/tokenizers/tokenizer_steps.h"
#include "convert/tokenizers/word_piece.h"
#include "engine/format/utf8.h"
#include "host/base/error.h"
#include "host/base/message_end.h"

namespace fovea {
namespace {

constexpr const char* kModel = "tokenizer.ggml.model";
constexpr const char* kPre = "tokenizer.ggml.pre";
constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kKinds = "tokenizer.ggml.token_type";
constexpr const char* kMerges = "tokenizer.ggml.merges";

/// tokenizer.ggml.token_type
enum Kind : std::int32_t { kUndefined, kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };
constexpr PieceKind kPieceKinds[] = {PieceKind::unused,       PieceKind::normal, PieceKind::unknown, PieceKind::control,
                                     PieceKind::user_defined, PieceKind::unused, PieceKind::byte};

/// Tokens that end a model's turn, whatever the file says of them.
constexpr std::string_view kEnds[] = {"<|eot_id|>",
                                      "<|im_end|>",
                                      kMessageEnd,
                                      "<|endoftext|>",
                                      "<|end_of_text|>",
                                      "<|eom_id|>",
                                      "<end_of_turn>",
                                      "<EOT>",
                                      "<|return|>",
                                      "<|call|>",
                                      "<|calls|>",
                                      "<|flush|>",
                                      "<turn|>",
                                      "<end_of_utterance>",
                                      "<\xef\xbd\x9c"
                                      "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                                      "<|fim_pad|>",
                                      "<|repo_name|>",
                                      "<|file_sep|>"};

class Conversion {
public:
    Conversion(const Gguf& file, std::uint32_t vocab_size, std::vector<std::string>& notes)
        : file_(file), vocab_size_(vocab_size), notes_(notes) {
        const std::uint64_t n = file.list_size(kTokens, GgufKind::text);
        if (n < 1 || n > vocab_size)
            file.refuse(kTokens, "1 to " + std::to_string(vocab_size) + " texts, as the embedding has rows");
        file.for_each_text(kTokens, [&](std::string_view text) { texts_.push_back(text); });
        kinds_.assign(texts_.size(), kNormal);
        if (file.has(kKinds)) read_numbers(kKinds, GgufKind::i32, kinds_);
    }

    std::vector<std::byte> run() {
        const std::string model = file_.text(kModel);
        if (model == "bert") return word_piece();
        if (model == "gpt2" || model == "gemma4")
            read_merged(model == "gemma4" ? model : file_.text_or(kPre, "default"));
        else if (model == "llama")
            read_pieces();
        else if (model == "t5")
            read_unigram();
        else
            file_.refuse(kModel, "gpt2, llama, t5, gemma4 or bert");
        set_roles();
        return write_tokenizer_section(source_);
    }

private:
    template<class T>
    void read_numbers(const char* key, GgufKind kind, std::vector<T>& out) const {
        if (file_.list_size(key, kind) != texts_.size())
            file_.refuse(key, std::to_string(texts_.size()) + " numbers, one for each token");
        out.resize(texts_.size());
        std::memcpy(out.data(), file_.list_bytes(key, kind).data(), out.size() * sizeof(T));
    }

    /// BPE whose merges are listed. Most are byte-level: tokens are spelled in characters that stand for bytes.
    void read_merged(const std::string& name) {
        TokenizerSource steps;
        const GgufCut cut = add_gguf_cut(name, steps);
        if (!cut.known) file_.refuse(kPre, "one that docs/format.md lists");
        if (name == "default")
            notes_.push_back(file_.path().string() + ": " + kPre +
                             " does not say how words are cut; done as GPT-2 does");
        if (cut.bytes) source_.flags |= kSymbolsAreBytes;
        if (cut.whole_words) source_.flags |= kWholeWords;
        if (!cut.bytes) source_.flags |= kByteFallback | kFuseUnknown;
        adds_bos_ = cut.adds_bos || cut.adds_sep;
        adds_eos_ = cut.adds_sep;
        std::string bytes;
        for (std::uint32_t id = 0; id < texts_.size(); ++id) {
            const std::string text = cut.bytes ? std::string(texts_[id]) : replaced(texts_[id], kMetaspace, " ");
            if (add_special(id, text)) continue;
            if (add_byte(id)) continue;
            const bool in_words = cut.bytes ? spelled_bytes(text, bytes) : (bytes = text, true);
            source_.tokens.set(id, bytes);
            ids_.emplace(texts_[id], id);
            const bool one = !bytes.empty() && first_character(bytes).bytes == bytes.size();
            if (in_words && !bytes.empty() && (cut.whole_words || (!cut.bytes && one))) source_.lookup.push_back(id);
        }
        for (std::uint32_t byte = 0; byte < 256 && cut.bytes; ++byte) {
            const auto found = ids_.find(byte_spelling(byte));
            if (found != ids_.end()) source_.byte_ids[byte] = found->second;
        }
        read_merges();
        if (!source_.added.empty()) source_.steps.push_back(make_step(StepKind::added_tokens, 0));
        source_.steps.insert(source_.steps.end(), steps.steps.begin(), steps.steps.end());
        source_.patterns = std::move(steps.patterns);
    }

    /// Whether token `id` is of kind byte, and set.
    bool add_byte(std::uint32_t id) {
        const int byte = kinds_[id] == kByte ? byte_of_token(texts_[id]) : -1;
        if (byte < 0) return false;
        const char as_char = static_cast<char>(byte);
        source_.tokens.set(id, {&as_char, 1});
        if (source_.byte_ids[byte] == kNoId) source_.byte_ids[byte] = id;
        return true;
    }

    /// "left right", by falling rank. A byte-level spelling has no spaces.
    void read_merges() {
        std::string merged;
        std::uint32_t rank = 0;
        std::unordered_map<std::string_view, std::uint32_t> added_ids;
        for (const AddedTokenSource& added : source_.added) added_ids.emplace(texts_[added.id], added.id);
        file_.for_each_text(kMerges, [&](std::string_view pair) {
            const std::size_t space = pair.find(' ', 1);
            const std::string place = "number " + std::to_string(rank) + ": ";
            if (space == std::string_view::npos)
                refuse(kMerges, place + "expected two tokens with a space between, got " + std::string(pair));
            merged.assign(pair.substr(0, space)).append(pair.substr(space + 1));
            const auto id_of = [&](std::string_view spelling, bool may_be_added = false) {
                const auto found = ids_.find(spelling);
                if (found != ids_.end()) return found->second;
                const auto added = may_be_added ? added_ids.find(spelling) : added_ids.end();
                if (added != added_ids.end()) return added->second;
                refuse(kMerges, place + "expected tokens, got " + std::string(spelling));
            };
            source_.merges.push_back(
                {id_of(pair.substr(0, space)), id_of(pair.substr(space + 1)), rank, id_of(merged, true)});
            ++rank;
        });
    }

    /// SentencePiece's BPE: pieces with scores, a space spelled "▁".
    void read_pieces() {
        std::vector<float> scores;
        read_numbers(kScores, GgufKind::f32, scores);
        adds_bos_ = true;
        std::vector<std::uint32_t> text_ids;
        std::vector<std::string> pieces(texts_.size());
        for (std::uint32_t id = 0; id < texts_.size(); ++id) {
            const std::string place = "token " + std::to_string(id) + ": ";
            if (std::isnan(scores[id])) refuse(kScores, place + "expected a score, got NaN");
            if (texts_[id].size() > kMostPieceBytes)
                refuse(kTokens, place + "expected at most " + std::to_string(kMostPieceBytes) + " bytes, got " +
                                    std::to_string(texts_[id].size()));
            pieces[id] = replaced(texts_[id], kMetaspace, " ");
            if (add_special(id, pieces[id])) continue;
            if (add_byte(id)) continue;
            source_.tokens.set(id, pieces[id]);
            if (kinds_[id] == kUnused || pieces[id].empty()) continue;
            text_ids.push_back(id);
            if (first_character(pieces[id]).bytes == pieces[id].size()) source_.lookup.push_back(id);
        }
        const std::vector<std::string_view> views(pieces.begin(), pieces.end());
        source_.merges = piece_merges(views, scores, text_ids);
        source_.flags = kByteFallback;
        if (file_.text("general.architecture") == "phi3") take_spaces();
        if (!source_.added.empty()) source_.steps.push_back(make_step(StepKind::added_tokens, 0));
        source_.steps.push_back(make_step(StepKind::replace, 0, kMetaspace, " "));
        if (file_.flag_or("tokenizer.ggml.add_space_prefix", true)) {
            source_.flags |= kDropFirstSpace;
            source_.steps.push_back(make_step(StepKind::prepend, 0, {}, " "));
        }
    }

    /// Phi 3's own tokenizer takes the spaces after most of its special tokens with them, which no key says.
    void take_spaces() {
        for (AddedTokenSource& added : source_.added)
            if (added.text != "<unk>" && added.text != "<s>" && added.text != "<|endoftext|>")
                added.flags |= kAddedTakesRight;
    }

    /// SentencePiece's Unigram: scores, and how text is normalized.
    void read_unigram() {
        std::vector<float> scores;
        read_numbers(kScores, GgufKind::f32, scores);
        PieceModel model;
        for (std::uint32_t id = 0; id < texts_.size(); ++id) {
            if (!std::isfinite(scores[id]))
                refuse(kScores, "token " + std::to_string(id) + ": expected a finite score, got another");
            // What is of no kind is never found in a text.
            const bool named = kinds_[id] >= kNormal && kinds_[id] <= kByte;
            model.pieces.push_back(
                {std::string(texts_[id]), scores[id], named ? kPieceKinds[kinds_[id]] : PieceKind::unused});
            model.byte_fallback |= kinds_[id] == kByte;
        }
        model.puts_space_first = file_.flag_or("tokenizer.ggml.add_space_prefix", true);
        model.removes_extra_spaces = file_.flag_or("tokenizer.ggml.remove_extra_whitespaces", false);
        if (const char* key = "tokenizer.ggml.precompiled_charsmap"; file_.has(key)) {
            const std::span<const std::byte> bytes = file_.list_bytes(key, GgufKind::u8);
            model.charsmap.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
        model.unknown = role("unknown", 2);
        model.bos = role("bos");
        model.eos = role("eos", 1);
        source_ = source_of_pieces(model, file_.path().string());
        adds_eos_ = true;
    }

    /// BERT's WordPiece. What begins a word is spelled with "▁" first and what continues one as it is, "▁" alone too,
    /// so it is this kind that gets its "##" back here. Where no key says anything of case, all text is lower-cased and
    /// stripped of accents, as ggml's own tokenizer does.
    std::vector<std::byte> word_piece() {
        WordPiece result;
        const std::uint32_t cls = named_id("cls", "bos", "[CLS]"), sep = named_id("seperator", "eos", "[SEP]");
        const std::uint32_t unknown = named_id("unknown", "unknown", "[UNK]");
        const std::array<std::uint32_t, 5> named = {cls, sep, unknown, role("padding"), role("mask")};
        bool has_capitals = false;
        for (std::uint32_t id = 0; id < texts_.size(); ++id) {
            const bool is_named = std::find(named.begin(), named.end(), id) != named.end();
            if (kinds_[id] == kUnused && !is_named) continue;
            const bool special = is_named || kinds_[id] == kControl || kinds_[id] == kUnknown;
            const bool added = special || kinds_[id] == kUserDefined;
            const bool begins = texts_[id].starts_with(kMetaspace) && texts_[id] != kMetaspace;
            const std::string_view text = texts_[id].substr(begins ? kMetaspace.size() : 0);
            const std::string spelling = std::string(added || begins ? "" : kContinues).append(text);
            result.ids[spelling] = id;
            if (added) result.added.push_back({spelling, special});
            if (id == cls) result.cls = spelling;
            if (id == sep) result.sep = spelling;
            if (id == unknown) result.unknown = spelling;
            has_capitals |=
                !added && std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
        }
        constexpr const char* kLowers = "tokenizer.ggml.normalizer.lowercase";
        constexpr const char* kStrips = "tokenizer.ggml.normalizer.strip_accents";
        result.lower_case = file_.flag_or(kLowers, true);
        if (file_.has(kStrips)) result.strip_accents = file_.flag_or(kStrips, true);
        if (has_capitals && !file_.has(kLowers))
            notes_.push_back(file_.path().string() + ": " + kTokens + " has capitals, but text is lower-cased, for" +
                             " the file has no word on case; --tokenizer takes the model's own file");
        return tokenizer_section_from_word_piece(result, file_.path().string(), {vocab_size_, {}, {}});
    }

    /// The id of the first of two keys that is there, else of the token so spelled.
    std::uint32_t named_id(const char* name, const char* other, std::string_view spelling) const {
        const char* const given = file_.has(key_of(name)) ? name : other;
        const auto spelled = std::find(texts_.begin(), texts_.end(), spelling) - texts_.begin();
        const std::uint32_t id = role(given, static_cast<std::uint32_t>(spelled));
        if (id == kNoId) file_.refuse(key_of(given), "a token's id");
        return id;
    }

    /// Whether token `id` is one that is found in the text as it is, control tokens only where they are asked for.
    bool add_special(std::uint32_t id, std::string text) {
        const bool special = kinds_[id] == kControl || kinds_[id] == kUnknown;
        if (!special && kinds_[id] != kUserDefined) return false;
        if (text.size() > kMaxAddedBytes)
            refuse(kTokens, "token " + std::to_string(id) + ": expected at most " + std::to_string(kMaxAddedBytes) +
                                " bytes in a token of its kind, got " + std::to_string(text.size()));
        source_.tokens.set(id, text);
        if (special) source_.special.push_back(id);
        if (!text.empty())
            source_.added.push_back({id, static_cast<std::uint16_t>(special ? kAddedSpecial : 0), std::move(text)});
        return true;
    }

    void add_ends() {
        const auto is_named = [&](std::string_view name) {
            return std::find(texts_.begin(), texts_.end(), name) != texts_.end();
        };
        const bool has_messages = answers_in_messages(is_named);
        for (const AddedTokenSource& added : source_.added) {
            const bool ends = std::find(std::begin(kEnds), std::end(kEnds), added.text) != std::end(kEnds);
            if (ends && !(has_messages && added.text == kMessageEnd)) add_end(added.id);
        }
    }

    void add_end(std::uint32_t id) {
        std::vector<std::uint32_t>& ends = source_.end_ids;
        if (id != kNoId && std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
    }

    static std::string key_of(const std::string& name) { return "tokenizer.ggml." + name + "_token_id"; }

    /// An id of the metadata; `otherwise` where it has none, and none where it is beyond the tokens.
    std::uint32_t role(const std::string& name, std::uint32_t otherwise = kNoId) const {
        const std::string key = key_of(name);
        const std::uint32_t id = file_.has(key) ? file_.count(key, 0) : otherwise;
        return id < texts_.size() ? id : kNoId;
    }

    void set_roles() {
        const std::string model = file_.text(kModel);
        const bool pieces = model == "llama";  // SentencePiece's own: 0 unknown, 1 start, 2 end
        source_.bos = role("bos", pieces ? 1 : kNoId);
        add_ends();
        if (pieces) source_.unknown = role("unknown", 0);
        const std::uint32_t eos = role("eos", pieces ? 2 : model == "t5" ? 1 : kNoId);
        for (const std::uint32_t id : {eos, role("eot"), role("eom")}) add_end(id);
        if (file_.flag_or("tokenizer.ggml.add_bos_token", adds_bos_) && source_.bos != kNoId)
            source_.prefix_ids = {source_.bos};
        if (file_.flag_or("tokenizer.ggml.add_eos_token", adds_eos_) && eos != kNoId) source_.suffix_ids = {eos};
    }

    [[noreturn]] void refuse(const char* key, const std::string& why) const {
        throw host::Error(file_.path().string() + ": " + key + ": " + why);
    }

    const Gguf& file_;
    const std::uint32_t vocab_size_;
    std::vector<std::string>& notes_;
    std::vector<std::string_view> texts_;  // as they are spelled, in the mapping
    std::vector<std::int32_t> kinds_;
    std::unordered_map<std::string_view, std::uint32_t> ids_;  // of tokens that words are made of
    bool adds_bos_ = false, adds_eos_ = false;
    TokenizerSource source_;
};

}  // namespace

std::vector<std::byte> tokenizer_section_from_gguf(const Gguf& file, std::uint32_t vocab_size,
                                                   std::vector<std::string>& notes) {
    if (!file.has(kModel) || file.text(kModel) == "none" || file.text(kModel) == "no_vocab") return {};
    return Conversion(file, vocab_size, notes).run();
}

}  // namespace fovea

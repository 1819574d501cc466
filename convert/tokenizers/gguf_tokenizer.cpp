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
constexpr const char* kKindsKey = "tokenizer.ggml.token_type";
constexpr const char* kMerges = "tokenizer.ggml.merges";

/// tokenizer.ggml.token_type
enum GgufTokenKind : std::int32_t { kUndefined, kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };
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

/// The tokens of a file, and what their metadata says of each.
struct GgufVocabulary {
    GgufVocabulary(const Gguf& from, std::uint32_t vocab_size) : file(from) {
        const std::uint64_t n = file.list_size(kTokens, GgufKind::text);
        if (n < 1 || n > vocab_size)
            file.refuse(kTokens, "1 to " + std::to_string(vocab_size) + " texts, as the embedding has rows");
        file.for_each_text(kTokens, [&](std::string_view text) { texts.push_back(text); });
        kinds.assign(texts.size(), kNormal);
        if (file.has(kKindsKey)) kinds = numbers<std::int32_t>(kKindsKey, GgufKind::i32);
    }

    /// A number for each token.
    template<class T>
    [[nodiscard]] std::vector<T> numbers(const char* key, GgufKind kind) const {
        if (file.list_size(key, kind) != texts.size())
            file.refuse(key, std::to_string(texts.size()) + " numbers, one for each token");
        std::vector<T> out(texts.size());
        std::memcpy(out.data(), file.list_bytes(key, kind).data(), out.size() * sizeof(T));
        return out;
    }
    [[nodiscard]] std::vector<float> scores() const { return numbers<float>(kScores, GgufKind::f32); }

    static std::string key_of(const std::string& name) { return "tokenizer.ggml." + name + "_token_id"; }

    /// An id of the metadata; `otherwise` if it has none, and none if it is beyond the tokens.
    std::uint32_t role(const std::string& name, std::uint32_t otherwise = kNoId) const {
        const std::string key = key_of(name);
        const std::uint32_t id = file.has(key) ? file.count(key, 0) : otherwise;
        return id < texts.size() ? id : kNoId;
    }

    [[noreturn]] void refuse(const char* key, const std::string& why) const {
        throw host::Error(file.path().string() + ": " + key + ": " + why);
    }

    const Gguf& file;
    std::vector<std::string_view> texts;  // as they are spelled, in the mapping
    std::vector<std::int32_t> kinds;
};

/// SentencePiece's Unigram: scores, and how text is normalized.
PieceModel unigram_of(const GgufVocabulary& from) {
    const std::vector<float> scores = from.scores();
    PieceModel model;
    for (std::uint32_t id = 0; id < from.texts.size(); ++id) {
        if (!std::isfinite(scores[id]))
            from.refuse(kScores, "token " + std::to_string(id) + ": expected a finite score, got another");
        // A token without a kind is never found in a text.
        const bool named = from.kinds[id] >= kNormal && from.kinds[id] <= kByte;
        model.pieces.push_back(
            {std::string(from.texts[id]), scores[id], named ? kPieceKinds[from.kinds[id]] : PieceKind::unused});
        model.byte_fallback |= from.kinds[id] == kByte;
    }
    model.puts_space_first = from.file.flag_or("tokenizer.ggml.add_space_prefix", true);
    model.removes_extra_spaces = from.file.flag_or("tokenizer.ggml.remove_extra_whitespaces", false);
    if (const char* key = "tokenizer.ggml.precompiled_charsmap"; from.file.has(key)) {
        const std::span<const std::byte> bytes = from.file.list_bytes(key, GgufKind::u8);
        model.charsmap.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    model.unknown = from.role("unknown", 2);
    model.bos = from.role("bos");
    model.eos = from.role("eos", 1);
    return model;
}

/// The id of the first of two keys that is present, else of the token with this spelling.
std::uint32_t named_id(const GgufVocabulary& from, const char* name, const char* other, std::string_view spelling) {
    const char* const given = from.file.has(from.key_of(name)) ? name : other;
    const auto spelled = std::find(from.texts.begin(), from.texts.end(), spelling) - from.texts.begin();
    const std::uint32_t id = from.role(given, static_cast<std::uint32_t>(spelled));
    if (id == kNoId) from.file.refuse(from.key_of(given), "a token's id");
    return id;
}

/// BERT's WordPiece. Tokens that begin a word are spelled with "▁" first; tokens that continue one are spelled as
/// they are ("▁" alone, too), and get their "##" back here. If no key says anything of case, all text is
/// lower-cased and stripped of accents, as ggml's own tokenizer does.
std::vector<std::byte> word_piece(const GgufVocabulary& from, std::uint32_t vocab_size,
                                  std::vector<std::string>& notes) {
    WordPiece result;
    const std::uint32_t cls = named_id(from, "cls", "bos", "[CLS]"), sep = named_id(from, "seperator", "eos", "[SEP]");
    const std::uint32_t unknown = named_id(from, "unknown", "unknown", "[UNK]");
    const std::array<std::uint32_t, 5> named = {cls, sep, unknown, from.role("padding"), from.role("mask")};
    bool has_capitals = false;
    for (std::uint32_t id = 0; id < from.texts.size(); ++id) {
        const bool is_named = std::find(named.begin(), named.end(), id) != named.end();
        if (from.kinds[id] == kUnused && !is_named) continue;
        const bool special = is_named || from.kinds[id] == kControl || from.kinds[id] == kUnknown;
        const bool added = special || from.kinds[id] == kUserDefined;
        const bool begins = from.texts[id].starts_with(kMetaspace) && from.texts[id] != kMetaspace;
        const std::string_view text = from.texts[id].substr(begins ? kMetaspace.size() : 0);
        const std::string spelling = std::string(added || begins ? "" : kContinues).append(text);
        result.ids[spelling] = id;
        if (added) result.added.push_back({spelling, special});
        if (id == cls) result.cls = spelling;
        if (id == sep) result.sep = spelling;
        if (id == unknown) result.unknown = spelling;
        has_capitals |= !added && std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    }
    constexpr const char* kLowers = "tokenizer.ggml.normalizer.lowercase";
    constexpr const char* kStrips = "tokenizer.ggml.normalizer.strip_accents";
    result.lower_case = from.file.flag_or(kLowers, true);
    if (from.file.has(kStrips)) result.strip_accents = from.file.flag_or(kStrips, true);
    if (has_capitals && !from.file.has(kLowers))
        notes.push_back(from.file.path().string() + ": " + kTokens + " has capitals, but text is lower-cased, for" +
                        " the file has no word on case; --tokenizer takes the model's own file");
    return tokenizer_section_from_word_piece(result, from.file.path().string(), {vocab_size, {}, {}});
}

/// BPE, with merges or scores, and Unigram.
class GgufConversion {
public:
    GgufConversion(const GgufVocabulary& from, std::vector<std::string>& notes)
        : from_(from), file_(from.file), notes_(notes) {}

    std::vector<std::byte> run() {
        const std::string model = file_.text(kModel);
        if (model == "gpt2" || model == "gemma4") {
            read_merged(model == "gemma4" ? model : file_.text_or(kPre, "default"));
        } else if (model == "llama") {
            read_pieces();
        } else if (model == "t5") {
            source_ = source_of_pieces(unigram_of(from_), file_.path().string());
            adds_eos_ = true;
        } else {
            file_.refuse(kModel, "gpt2, llama, t5, gemma4 or bert");
        }
        set_roles();
        return write_tokenizer_section(source_);
    }

private:
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
        for (std::uint32_t id = 0; id < from_.texts.size(); ++id) {
            const std::string text =
                cut.bytes ? std::string(from_.texts[id]) : replaced(from_.texts[id], kMetaspace, " ");
            if (add_special(id, text)) continue;
            if (add_byte(id)) continue;
            const bool in_words = cut.bytes ? spelled_bytes(text, bytes) : (bytes = text, true);
            source_.tokens.set(id, bytes);
            ids_.emplace(from_.texts[id], id);
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
        const int byte = from_.kinds[id] == kByte ? byte_of_token(from_.texts[id]) : -1;
        if (byte < 0) return false;
        source_.add_byte(id, byte);
        return true;
    }

    /// "left right", by falling rank. A byte-level spelling has no spaces.
    void read_merges() {
        std::string merged;
        std::uint32_t rank = 0;
        std::unordered_map<std::string_view, std::uint32_t> added_ids;
        for (const AddedTokenSource& added : source_.added) added_ids.emplace(from_.texts[added.id], added.id);
        file_.for_each_text(kMerges, [&](std::string_view pair) {
            const std::size_t space = pair.find(' ', 1);
            const std::string place = "number " + std::to_string(rank) + ": ";
            if (space == std::string_view::npos)
                from_.refuse(kMerges, place + "expected two tokens with a space between, got " + std::string(pair));
            merged.assign(pair.substr(0, space)).append(pair.substr(space + 1));
            const auto id_of = [&](std::string_view spelling, bool may_be_added = false) {
                const auto found = ids_.find(spelling);
                if (found != ids_.end()) return found->second;
                const auto added = may_be_added ? added_ids.find(spelling) : added_ids.end();
                if (added != added_ids.end()) return added->second;
                from_.refuse(kMerges, place + "expected tokens, got " + std::string(spelling));
            };
            source_.merges.push_back(
                {id_of(pair.substr(0, space)), id_of(pair.substr(space + 1)), rank, id_of(merged, true)});
            ++rank;
        });
    }

    /// SentencePiece's BPE: pieces with scores, a space spelled "▁".
    void read_pieces() {
        const std::vector<float> scores = from_.scores();
        adds_bos_ = true;
        std::vector<std::uint32_t> text_ids;
        std::vector<std::string> pieces(from_.texts.size());
        for (std::uint32_t id = 0; id < from_.texts.size(); ++id) {
            const std::string place = "token " + std::to_string(id) + ": ";
            if (std::isnan(scores[id])) from_.refuse(kScores, place + "expected a score, got NaN");
            if (from_.texts[id].size() > kMostPieceBytes)
                from_.refuse(kTokens, place + "expected at most " + std::to_string(kMostPieceBytes) + " bytes, got " +
                                          std::to_string(from_.texts[id].size()));
            pieces[id] = replaced(from_.texts[id], kMetaspace, " ");
            if (add_special(id, pieces[id])) continue;
            if (add_byte(id)) continue;
            source_.tokens.set(id, pieces[id]);
            if (from_.kinds[id] == kUnused || pieces[id].empty()) continue;
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

    /// Whether token `id` is found in the text as it is; control tokens only if they are asked for.
    bool add_special(std::uint32_t id, std::string text) {
        const bool special = from_.kinds[id] == kControl || from_.kinds[id] == kUnknown;
        if (!special && from_.kinds[id] != kUserDefined) return false;
        if (text.size() > kMaxAddedBytes)
            from_.refuse(kTokens, "token " + std::to_string(id) + ": expected at most " +
                                      std::to_string(kMaxAddedBytes) + " bytes in a token of its kind, got " +
                                      std::to_string(text.size()));
        source_.tokens.set(id, text);
        if (special) source_.special.push_back(id);
        if (!text.empty())
            source_.added.push_back({id, static_cast<std::uint16_t>(special ? kAddedSpecial : 0), std::move(text)});
        return true;
    }

    void add_ends() {
        const auto is_named = [&](std::string_view name) {
            return std::find(from_.texts.begin(), from_.texts.end(), name) != from_.texts.end();
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

    void set_roles() {
        const std::string model = file_.text(kModel);
        const bool pieces = model == "llama";  // SentencePiece's own: 0 unknown, 1 start, 2 end
        source_.bos = from_.role("bos", pieces ? 1 : kNoId);
        add_ends();
        if (pieces) source_.unknown = from_.role("unknown", 0);
        const std::uint32_t eos = from_.role("eos", pieces ? 2 : model == "t5" ? 1 : kNoId);
        for (const std::uint32_t id : {eos, from_.role("eot"), from_.role("eom")}) add_end(id);
        if (file_.flag_or("tokenizer.ggml.add_bos_token", adds_bos_) && source_.bos != kNoId)
            source_.prefix_ids = {source_.bos};
        if (file_.flag_or("tokenizer.ggml.add_eos_token", adds_eos_) && eos != kNoId) source_.suffix_ids = {eos};
    }

    const GgufVocabulary& from_;
    const Gguf& file_;
    std::vector<std::string>& notes_;
    std::unordered_map<std::string_view, std::uint32_t> ids_;  // of tokens that words are made of
    bool adds_bos_ = false, adds_eos_ = false;
    TokenizerSource source_;
};

}  // namespace

std::vector<std::byte> tokenizer_section_from_gguf(const Gguf& file, std::uint32_t vocab_size,
                                                   std::vector<std::string>& notes) {
    if (!file.has(kModel) || file.text(kModel) == "none" || file.text(kModel) == "no_vocab") return {};
    const GgufVocabulary from(file, vocab_size);
    if (file.text(kModel) == "bert") return word_piece(from, vocab_size, notes);
    return GgufConversion(from, notes).run();
}

}  // namespace fovea

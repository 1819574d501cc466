#include "convert/tokenizers/numbered_pieces.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "convert/formats/text_file.h"
#include "convert/tokenizers/json_field.h"
#include "convert/tokenizers/sentence_piece.h"
#include "host/base/error.h"
#include "host/base/source_file.h"
#include "host/base/words.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostVocabularyBytes = 64u << 20, kMostModelBytes = 256u << 20;
constexpr const char *kUnknownPiece = "<unk>", *kEndPiece = "</s>";

bool is_language(std::string_view name) { return name.size() > 4 && name.starts_with("__") && name.ends_with("__"); }
bool is_target_code(std::string_view name) { return name.size() > 4 && name.starts_with(">>") && name.ends_with("<<"); }

/// vocab.json, and the languages behind its tokens, which other files list.
class Numbers {
public:
    Numbers(const fs::path& vocab_json, std::uint32_t vocab_size)
        : place_(vocab_json.string()), vocab_size_(vocab_size) {
        const Fields vocabulary = Fields::read(vocab_json, kMostVocabularyBytes);
        for (const auto& [name, id] : vocabulary.json().items()) add(name, id);
        const auto n_named = static_cast<std::uint32_t>(ids_.size());
        const fs::path folder = vocab_json.parent_path();
        for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"})
            if (is_there(folder / file)) add_languages(Fields::read(folder / file), n_named);
    }

    [[nodiscard]] const std::map<std::string, std::uint32_t>& ids() const { return ids_; }
    [[nodiscard]] std::uint32_t n_tokens() const { return static_cast<std::uint32_t>(names_.size()); }
    [[nodiscard]] std::uint32_t id_of(const std::string& name) const {
        const auto found = ids_.find(name);
        if (found == ids_.end()) throw host::Error(place_ + ": expected a token " + name + ", got none");
        return found->second;
    }

private:
    void add(const std::string& name, const SortedJson& id) {
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocab_size_)
            throw host::Error(place_ + ": " + name + ": expected an id below the model's vocab_size, " +
                              std::to_string(vocab_size_) + ", got " + id.dump().substr(0, 40));
        const auto number = id.get<std::uint32_t>();
        if (number >= names_.size()) names_.resize(number + std::size_t{1});
        if (!names_[number].empty())
            throw host::Error(place_ + ": " + name + ": expected an id of its own, got " + std::to_string(number) +
                              ", " + names_[number] + "'s");
        names_[number] = name;
        ids_.emplace(name, number);
    }

    /// Languages that added_tokens_decoder numbers, else those of additional_special_tokens, in their order behind all
    /// others.
    void add_languages(const Fields& fields, std::uint32_t n_named) {
        const bool has_languages =
            std::any_of(ids_.begin(), ids_.end(), [](const auto& t) { return is_language(t.first); });
        if (has_languages) return;
        if (fields.has("added_tokens_decoder")) {
            const Fields numbered = fields.object("added_tokens_decoder");
            for (const auto& [id, token] : numbered.json().items()) {
                const std::string name = token_text(token);
                if (!is_language(name)) continue;
                if (id.empty() || id.size() > 8 || id.find_first_not_of("0123456789") != id.npos)
                    numbered.refuse(name, "a token's id");
                add(name, static_cast<std::uint32_t>(std::stoul(id)));
            }
        } else if (fields.has("additional_special_tokens")) {
            std::uint32_t next = n_named;
            for (const SortedJson& token : fields.json()["additional_special_tokens"])
                if (const std::string name = token_text(token); is_language(name)) add(name, next++);
        }
    }

    std::string place_;
    std::uint32_t vocab_size_;
    std::map<std::string, std::uint32_t> ids_;
    std::vector<std::string> names_;
};

/// The pieces by the numbers that vocab.json gives them. A name there that the SentencePiece model lacks is never found
/// in a text.
PieceModel numbered_model(const PieceModel& model, const Numbers& numbers, std::size_t& n_left_out) {
    PieceModel result = model;
    result.pieces.assign(numbers.n_tokens(), {.text = {}, .kind = PieceKind::unused});
    for (const auto& [name, id] : numbers.ids()) {
        const bool is_control = name == kEndPiece || name == "<pad>" || name == "<s>" || is_language(name);
        result.pieces[id].text = name;
        if (is_control) result.pieces[id].kind = PieceKind::control;
    }
    n_left_out = 0;
    for (const PieceModel::Piece& piece : model.pieces) {
        const auto found = numbers.ids().find(piece.text);
        if (found != numbers.ids().end() && result.pieces[found->second].kind != PieceKind::control)
            result.pieces[found->second] = piece;
        n_left_out += found == numbers.ids().end() && piece.kind == PieceKind::normal;
    }
    result.unknown = numbers.id_of(kUnknownPiece);
    result.pieces[result.unknown].kind = PieceKind::unknown;
    result.eos = numbers.id_of(kEndPiece);
    result.bos = kNoId;
    return result;
}

/// The token of the language that sources are in unless another is asked for.
std::uint32_t source_language(const fs::path& folder, const Numbers& numbers) {
    const auto first = std::find_if(numbers.ids().begin(), numbers.ids().end(),
                                    [](const auto& token) { return is_language(token.first); });
    if (first == numbers.ids().end()) return kNoId;
    std::string language = "en";
    if (is_there(folder / "tokenizer_config.json"))
        language = Fields::read(folder / "tokenizer_config.json").text_or("src_lang", language);
    return numbers.id_of("__" + language + "__");
}

}  // namespace

fs::path numbered_pieces(const fs::path& folder) {
    for (const char* model : {"source.spm", "sentencepiece.bpe.model"})
        if (is_there(folder / "vocab.json") && is_there(folder / model)) return folder / model;
    return {};
}

std::vector<std::byte> tokenizer_section_from_numbered_pieces(const fs::path& vocab_json, const TokenizerFacts& facts,
                                                              std::vector<std::string>& notes) {
    const fs::path path = numbered_pieces(vocab_json.parent_path());
    const Mapping file = map_source(path, kMostModelBytes);
    const Numbers numbers(vocab_json, facts.vocab_size);
    std::size_t n_left_out = 0;
    const PieceModel model = numbered_model(read_sentence_piece(file.bytes(), path.string()), numbers, n_left_out);
    if (n_left_out)
        notes.push_back(path.string() + ": " + with_separators(n_left_out) +
                        " pieces are not in vocab.json; texts are cut without them");
    TokenizerSource source = source_of_pieces(model, path.string());
    for (const auto& [name, id] : numbers.ids())
        if (is_target_code(name) && name.size() <= kMaxAddedBytes) source.added.push_back({id, 0, name});
    source.end_ids = facts.eos.empty() ? std::vector<std::uint32_t>{model.eos} : facts.eos;
    source.suffix_ids = {model.eos};
    if (const std::uint32_t language = source_language(vocab_json.parent_path(), numbers); language != kNoId)
        source.prefix_ids = {language};
    return write_tokenizer_section(source);
}

}  // namespace fovea

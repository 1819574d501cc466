#include "convert/open/late_heads.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "convert/formats/text_file.h"
#include "convert/open/other_heads.h"
#include "convert/tokenizers/json_field.h"
#include "host/base/ascii.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"
#include "host/model/late_interaction.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";  // Python's
constexpr std::uint32_t kUsualQuery = 32, kMostText = 1u << 20;
constexpr std::size_t kMostWords = 1u << 12;

/// The vocabulary of a folder's tokenizer.json, or of its vocab.txt.
class Pieces {
public:
    explicit Pieces(const fs::path& folder) {
        const fs::path json = folder / "tokenizer.json", words = folder / "vocab.txt";
        if (is_there(json))
            read_json_file(json);
        else if (is_there(words))
            read_lines(words);
        else
            throw host::Error(json.string() + ": expected a tokenizer for late interaction, got none");
    }

    [[nodiscard]] std::optional<Token> find(std::string_view piece) const {
        const auto found = ids_.find(piece);
        return found == ids_.end() ? std::nullopt : std::optional(found->second);
    }
    /// The longest added token that a text begins with; "": none.
    [[nodiscard]] std::string added_before(std::string_view text) const {
        std::string longest;
        for (const std::string& token : added_)
            if (token.size() > longest.size() && text.starts_with(token)) longest = token;
        return longest;
    }

private:
    void add(const SortedJson& piece, const SortedJson& id) {
        if (piece.is_string() && id.is_number_unsigned() && id.get<std::uint64_t>() < kMostIds)
            ids_.emplace(piece.get<std::string>(), id.get<Token>());
    }
    void read_lines(const fs::path& path) {
        const Mapping mapping = map_source(path);
        std::string_view text = text_of(mapping);
        for (Token id = 0; !text.empty(); ++id) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            ids_.emplace(text.substr(0, end - (end && text[end - 1] == '\r')), id);
            text.remove_prefix(std::min(end + 1, text.size()));
        }
    }
    void read_json_file(const fs::path& path) {
        const Mapping mapping = map_source(path);
        check_json_depth(text_of(mapping), path.string());
        const SortedJson json = read_sorted_json(text_of(mapping));
        const auto member = [](const SortedJson& object, const char* name) {
            return object.is_object() ? object.value(name, SortedJson()) : SortedJson();
        };
        for (const SortedJson& token : member(json, "added_tokens")) {
            const SortedJson content = member(token, "content");
            add(content, member(token, "id"));
            if (content.is_string()) added_.push_back(content.get<std::string>());
        }
        const SortedJson words = member(member(json, "model"), "vocab");
        if (words.is_object())
            for (const auto& [piece, id] : words.items()) add(piece, id);
        for (std::size_t i = 0; words.is_array() && i < words.size(); ++i)
            if (words[i].is_array() && !words[i].empty()) add(words[i][0], i);
    }

    static constexpr std::uint64_t kMostIds = 1u << 24;
    std::map<std::string, Token, std::less<>> ids_;
    std::vector<std::string> added_;
};

/// A token's text by its role, as transformers' files beside the tokenizer have it; "": none.
std::string role_text(const fs::path& folder, const char* role) {
    for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"})
        if (is_there(folder / file))
            if (const Fields fields = Fields::read(folder / file); fields.has(role))
                return token_text(fields.json()[role]);
    return {};
}

/// What a side's prompt begins with becomes its marker, if that is a token; the rest is left of the prompt.
void take_marker(const Pieces& pieces, const std::string& token, LateInteraction::Side& side, std::string& prompt) {
    side.marker = pieces.find(token);
    if (side.marker) prompt.erase(0, token.size());
}

/// As PyLate and ColBERT put it in: the whole prefix, or its first word.
void take_prefix(const Pieces& pieces, std::string_view prefix, LateInteraction::Side& side, std::string& prompt) {
    if (prefix.empty()) return;
    take_marker(pieces, std::string(prefix), side, prompt);
    if (!side.marker) take_marker(pieces, std::string(prefix.substr(0, prefix.find(' '))), side, prompt);
}

void skip(const Pieces& pieces, const std::vector<std::string>& words, LateInteraction& how) {
    for (const std::string& word : words)
        if (const std::optional<Token> id = pieces.find(word)) how.skipped.push_back(*id);
    std::sort(how.skipped.begin(), how.skipped.end());
}

std::vector<std::string> punctuation() {
    std::vector<std::string> words;
    for (const char mark : kPunctuation) words.emplace_back(1, mark);
    return words;
}

std::vector<std::string> words_of(const Fields& fields, const char* name) {
    std::vector<std::string> words = fields.texts(name);
    if (words.size() > kMostWords) fields.refuse(name, "at most " + std::to_string(kMostWords) + " words");
    return words;
}

/// Queries are filled up to `length` tokens by that token, by default the mask.
void fill_queries(const fs::path& folder, const Pieces& pieces, std::uint32_t length, bool seen, std::string token,
                  LateInteraction& how) {
    for (const char* role : {"mask_token", "eos_token"})
        if (token.empty()) token = role_text(folder, role);
    how.filler = pieces.find(token);
    if (!how.filler)
        throw host::Error(folder.string() + ": expected a token that queries are filled with (mask_token), got none");
    how.n_filled = length;
    how.sees_filler = seen;
}

/// A Transformer's query_length, document_length and query_expansion.
void read_lengths(const Fields& fields, const fs::path& folder, const Pieces& pieces, LateInteraction& how) {
    if (fields.has("query_length")) how.query.most = fields.count("query_length", 1, kMostText);
    if (fields.has("document_length")) how.document.most = fields.count("document_length", 1, kMostText);
    if (!fields.has("query_expansion")) return;
    const Fields expansion = fields.object("query_expansion");
    const std::string strategy = expansion.text("strategy");
    if (strategy != "fixed" && strategy != "min") expansion.refuse("strategy", "fixed or min");
    const std::uint32_t length = expansion.count("length", 1, kMostText);
    fill_queries(folder, pieces, length, expansion.flag_or("attend", false), expansion.text_or("token", ""), how);
    if (strategy == "fixed") how.query.most = length;
}

/// PyLate's own fields, in place of those and of a mask module.
void read_pylate(const Fields& fields, const fs::path& folder, const Pieces& pieces, LateInteraction& how) {
    read_lengths(fields.with("query_expansion", nullptr), folder, pieces, how);
    if (!fields.has("do_query_expansion") || fields.flag_or("do_query_expansion", true)) {
        if (how.query.most == 0) how.query.most = kUsualQuery;
        fill_queries(folder, pieces, how.query.most, fields.flag_or("attend_to_expansion_tokens", false), "", how);
    }
    skip(pieces, fields.has("skiplist_words") ? words_of(fields, "skiplist_words") : punctuation(), how);
}

/// A MultiVectorMask module.
void read_mask(const fs::path& path, const Pieces& pieces, LateInteraction& how) {
    const Fields fields = Fields::read(path);
    if (fields.has("skiplist_words")) skip(pieces, words_of(fields, "skiplist_words"), how);
    if (fields.has("skiplist_tasks") && words_of(fields, "skiplist_tasks") != std::vector<std::string>{"document"})
        fields.refuse("skiplist_tasks", "document alone");
    if (fields.has("keep_only_token_ids")) fields.refuse("keep_only_token_ids", "none");
}

std::string prompt_named(const Fields& fields, const char* name) {
    return fields.has("prompts") ? fields.object("prompts").text_or(name, "") : "";
}

void read_similarity(const Fields& fields, LateInteraction& how) {
    const std::string name = lower(fields.text_or("similarity_fn_name", "maxsim"));
    how.mean = name == "meanmaxsim";
    if (!how.mean && name != "maxsim" && name != "cosine" && name != "dot")
        fields.refuse("similarity_fn_name", "maxsim or meanmaxsim");
}

/// The head and the metadata of a model that is read so.
void finish(const LateInteraction& how, const std::string& query, const std::string& document, HfConfig& config) {
    Stack& stack = config.stack();
    stack.pooling = Pooling::none;
    stack.normalize_pooled = false;
    auto& info = config.source.info;
    info.emplace_back("task", "late-interaction");
    info.emplace_back("late_interaction", how.to_json());
    SortedJson prompts = SortedJson::object();
    if (!query.empty()) prompts["query"] = query;
    if (!document.empty()) prompts["document"] = document;
    if (!prompts.empty()) info.emplace_back("prompts", json_text(prompts));
}

void need_bare_encoder(const HfConfig& config, const std::string& place) {
    if (config.stack_index() != StackIndex::encoder || config.names.count({Role::head_map, 0}) ||
        config.stack().has_output_head)
        throw host::Error(place + ": expected an encoder without a head for late interaction, got another model");
}

}  // namespace

void use_late_interaction(const fs::path& given, const fs::path& folder, SentenceModules modules, HfConfig& config) {
    need_bare_encoder(config, (given / "modules.json").string());
    const fs::path path = given / "config_sentence_transformers.json";
    if (!is_there(path)) throw host::Error(path.string() + ": expected a file beside modules.json, got none");
    const Fields fields = Fields::read(path);
    const bool is_pylate = fields.text_or("model_type", "") == "ColBERT" || fields.has("query_prefix");
    if (!is_pylate && fields.text_or("model_type", "") != "MultiVectorEncoder")
        fields.refuse("model_type", "MultiVectorEncoder, or ColBERT");
    if (!is_pylate && !modules.normalize)
        throw host::Error((given / "modules.json").string() +
                          ": expected a Normalize behind a MultiVectorMask, got none");
    const Pieces pieces(folder);
    LateInteraction how;
    std::string query = prompt_named(fields, "query"), document = prompt_named(fields, "document");
    read_similarity(fields, how);
    if (is_pylate) {
        const std::string of_query = fields.text_or("query_prefix", ""),
                          of_document = fields.text_or("document_prefix", "");
        if (!query.starts_with(of_query)) query = of_query + query;
        if (!document.starts_with(of_document)) document = of_document + document;
        take_prefix(pieces, of_query, how.query, query);
        take_prefix(pieces, of_document, how.document, document);
        read_pylate(fields, folder, pieces, how);
    } else {
        take_marker(pieces, pieces.added_before(query), how.query, query);
        take_marker(pieces, pieces.added_before(document), how.document, document);
        const fs::path transformer = folder / "sentence_bert_config.json";
        if (is_there(transformer)) read_lengths(Fields::read(transformer), folder, pieces, how);
        if (!modules.late_mask.empty()) read_mask(given / modules.late_mask / "config.json", pieces, how);
    }
    std::copy(modules.maps.begin(), modules.maps.end(), config.stack().head.begin());
    config.map_files = std::move(modules.map_files);
    finish(how, query, document, config);
}

bool is_colbert(const Fields& fields) {
    const SortedJson names = fields.json().value("architectures", SortedJson());
    return names.is_array() && std::find(names.begin(), names.end(), SortedJson("HF_ColBERT")) != names.end();
}

void use_colbert(const fs::path& folder, HfConfig& config) {
    need_bare_encoder(config, folder.string());
    const fs::path path = folder / "artifact.metadata";
    const Fields fields = is_there(path) ? Fields::read(path) : Fields(SortedJson::object(), path.string());
    const Pieces pieces(folder);
    LateInteraction how;
    std::string query = fields.text_or("query_token_id", "[unused0]"),
                document = fields.text_or("doc_token_id", "[unused1]");
    take_prefix(pieces, std::string(query), how.query, query);
    take_prefix(pieces, std::string(document), how.document, document);
    for (const auto& [side, name] : {std::pair{&how.query, "query_token_id"}, {&how.document, "doc_token_id"}})
        if (!side->marker) fields.refuse(name, "a token of the vocabulary");
    if (fields.has("doc_maxlen")) how.document.most = fields.count("doc_maxlen", 1, kMostText);
    how.query.most = fields.has("query_maxlen") ? fields.count("query_maxlen", 1, kMostText) : kUsualQuery;
    fill_queries(folder, pieces, how.query.most, fields.flag_or("attend_to_mask_tokens", false), "", how);
    if (fields.flag_or("mask_punctuation", true)) skip(pieces, punctuation(), how);
    constexpr std::uint32_t kUsualWidth = 128;
    config.stack().head[0] = {.width = fields.has("dim") ? fields.count("dim", 1, kMaxWidth) : kUsualWidth};
    config.names[{Role::head_map, 0}] = "/linear.weight";
    finish(how, "", "", config);
}

void add_colbert_head(const fs::path& folder, HfConfig& config) {
    need_bare_encoder(config, folder.string() + ": --colbert");
    config.map_files.clear();  // those of what the folder's modules pool
    const Safetensors& named = config.map_files.emplace_back(read_linear(folder / "colbert_linear.pt"));
    const auto weight = named.tensors.find("linear.weight");
    if (weight->second.shape.size() != 2 || weight->second.shape[0] > kMaxWidth)
        throw host::Error((folder / "colbert_linear.pt").string() + ": weight: expected a matrix, got another shape");
    config.stack().head = {};
    config.stack().head[0] = {.width = static_cast<std::uint32_t>(weight->second.shape[0]), .bias = true};
    finish({.skips_first = true, .mean = true}, "", "", config);
}

}  // namespace fovea

#include "convert/tokenizers/vocab_json.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/formats/text_file.h"
#include "convert/tokenizers/json_field.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/source_file.h"
#include "host/base/words.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFileBytes = 64u << 20;  // of each file; the largest there are have a tenth of that

/// How texts are cut into words and what stands around them.
enum class Style { gpt2, roberta, qwen };

/// A class of transformers: its style, and its names of the tokens with a role, if no file has them.
struct VocabularyKind {
    const char* name;
    Style style;
    const char *bos, *eos, *unknown, *mask;
};
constexpr VocabularyKind kKinds[] = {
    {"GPT2Tokenizer", Style::gpt2, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", ""},
    {"WhisperTokenizer", Style::gpt2, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", ""},
    {"CodeGenTokenizer", Style::gpt2, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", ""},
    {"RobertaTokenizer", Style::roberta, "<s>", "</s>", "<unk>", "<mask>"},
    {"LongformerTokenizer", Style::roberta, "<s>", "</s>", "<unk>", "<mask>"},
    {"BartTokenizer", Style::roberta, "<s>", "</s>", "<unk>", "<mask>"},
    {"Qwen2Tokenizer", Style::qwen, "", "<|endoftext|>", "<|endoftext|>", ""}};

/// The class of model types whose folders may not name one.
constexpr std::pair<const char*, const char*> kTypes[] = {
    {"gpt2", "GPT2Tokenizer"},       {"gpt_neo", "GPT2Tokenizer"},          {"gptj", "GPT2Tokenizer"},
    {"opt", "GPT2Tokenizer"},        {"phi", "CodeGenTokenizer"},           {"codegen", "CodeGenTokenizer"},
    {"roberta", "RobertaTokenizer"}, {"longformer", "LongformerTokenizer"}, {"bart", "BartTokenizer"},
    {"qwen2", "Qwen2Tokenizer"},     {"qwen2_moe", "Qwen2Tokenizer"},       {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"}, {"whisper", "WhisperTokenizer"}};

constexpr const char* kQwenWords =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

[[nodiscard]] SortedJson read_object(const fs::path& path) {
    const Mapping mapping = map_source(path, kMostFileBytes);
    const std::string_view text = text_of(mapping);
    check_json_depth(text, path.string());
    SortedJson object = read_sorted_json(text);
    if (!object.is_object()) throw host::Error(path.string() + ": expected a JSON object, got something else");
    return object;
}

[[nodiscard]] SortedJson read_object_or_none(const fs::path& path) {
    return is_there(path) ? read_object(path) : SortedJson::object();
}

[[nodiscard]] SortedJson read_merges(const fs::path& path) {
    const Mapping mapping = map_source(path, kMostFileBytes);
    std::string_view text = text_of(mapping);
    SortedJson merges = SortedJson::array();
    for (std::uint32_t number = 1; !text.empty(); ++number) {
        const std::string_view line = take_line(text);
        if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
        const std::size_t space = line.find(' ');
        if (space == line.npos || space == 0 || space + 1 == line.size() || line.find(' ', space + 1) != line.npos)
            throw host::Error(path.string() + ": line " + std::to_string(number) +
                              ": expected two tokens with a space between, got " + std::string(line.substr(0, 100)));
        merges.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
    }
    return merges;
}

[[nodiscard]] std::string text_of(const SortedJson& object, const char* name) {
    const SortedJson field = object.value(name, SortedJson());
    return field.is_string() ? field.get<std::string>() : "";
}

/// The class that a folder names, without "Fast" at its end, else that of its model_type; "" if it has neither.
[[nodiscard]] std::string class_of(const fs::path& folder) {
    std::string name = text_of(read_object_or_none(folder / "tokenizer_config.json"), "tokenizer_class");
    const SortedJson model = read_object_or_none(folder / "config.json");
    if (name.empty()) name = text_of(model, "tokenizer_class");
    const std::string type = text_of(model, "model_type");
    for (const auto& [known, its] : kTypes)
        if (name.empty() && type == known) name = its;
    if (name.empty()) return type;
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    return name;
}

[[nodiscard]] const VocabularyKind* find_kind(const std::string& name) {
    for (const VocabularyKind& kind : kKinds)
        if (name == kind.name) return &kind;
    return name.empty() ? &kKinds[0] : nullptr;
}

/// The files of one folder, put together as a tokenizer.json.
class Folder {
public:
    Folder(const fs::path& path, std::uint32_t vocab_size)
        : path_(path),
          vocab_size_(vocab_size),
          config_path_(path.parent_path() / "tokenizer_config.json"),
          vocabulary_(read_object(path)),
          config_(read_object_or_none(config_path_)),
          roles_(read_object_or_none(path.parent_path() / "special_tokens_map.json")),
          more_(read_object_or_none(path.parent_path() / "added_tokens.json")),
          kind_(kind_of_folder()) {}

    [[nodiscard]] SortedJson joined() {
        SortedJson result = {{"version", "1.0"},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", cut()},
                             {"post_processor", nullptr},
                             {"decoder", {{"type", "ByteLevel"}}}};
        if (kind_.style == Style::qwen) result["normalizer"] = {{"type", "NFC"}};
        add_tokens();
        result["added_tokens"] = added_;
        if (kind_.style == Style::roberta)
            result["post_processor"] = {{"type", "RobertaProcessing"},
                                        {"sep", {name_of("sep_token", kind_.eos), id_of("sep_token", kind_.eos)}},
                                        {"cls", {name_of("cls_token", kind_.bos), id_of("cls_token", kind_.bos)}}};
        else
            result["post_processor"] = ends_template();
        result["model"] = {
            {"type", "BPE"}, {"vocab", vocabulary_}, {"merges", read_merges(path_.parent_path() / "merges.txt")}};
        return result;
    }

private:
    [[nodiscard]] const VocabularyKind& kind_of_folder() const {
        const std::string name = class_of(path_.parent_path());
        if (const VocabularyKind* kind = find_kind(name)) return *kind;
        std::string known;
        for (const VocabularyKind& kind : kKinds) known += (known.empty() ? "" : ", ") + std::string(kind.name);
        throw host::Error(path_.string() + ": tokenizer_class: expected one of " + known + " beside it, got " + name);
    }

    [[nodiscard]] bool flag(const char* name) const { return config_.value(name, SortedJson()) == true; }

    [[nodiscard]] SortedJson cut() const {
        const bool first_space = flag("add_prefix_space");
        SortedJson bytes = {
            {"type", "ByteLevel"}, {"add_prefix_space", first_space}, {"use_regex", kind_.style != Style::qwen}};
        if (kind_.style != Style::qwen) return bytes;
        const SortedJson words = {
            {"type", "Split"}, {"pattern", {{"Regex", kQwenWords}}}, {"behavior", "Isolated"}, {"invert", false}};
        return {{"type", "Sequence"}, {"pretokenizers", {words, bytes}}};
    }

    /// A start, an end, both around every text, or nothing.
    [[nodiscard]] SortedJson ends_template() const {
        SortedJson parts[2] = {SortedJson::array(), SortedJson::array()}, tokens = SortedJson::object();
        const std::pair<const char*, const char*> ends[] = {{"bos_token", kind_.bos}, {"eos_token", kind_.eos}};
        for (int i = 0; i < 2; ++i) {
            const std::string name = name_of(ends[i].first, ends[i].second);
            if (name.empty() || !flag(i ? "add_eos_token" : "add_bos_token")) continue;
            tokens[name] = {{"id", name}, {"ids", {id_of(ends[i].first, ends[i].second)}}, {"tokens", {name}}};
            parts[i].push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
        }
        if (tokens.empty()) return nullptr;
        const auto around = [&](const char* text) {
            SortedJson whole = parts[0];
            whole.push_back({{"Sequence", {{"id", text}, {"type_id", 0}}}});
            whole.insert(whole.end(), parts[1].begin(), parts[1].end());
            return whole;
        };
        SortedJson pair = around("A");
        const SortedJson second = around("B");
        pair.insert(pair.end(), second.begin(), second.end());
        return {{"type", "TemplateProcessing"}, {"single", around("A")}, {"pair", pair}, {"special_tokens", tokens}};
    }

    /// A role's token: a text, or an object with its content.
    [[nodiscard]] SortedJson field_of(const char* role) const {
        const SortedJson field = config_.value(role, SortedJson());
        return field.is_null() ? roles_.value(role, SortedJson()) : field;
    }
    [[nodiscard]] std::string name_of(const char* role, const char* otherwise) const {
        return token_text(field_of(role), otherwise);
    }
    [[nodiscard]] std::uint32_t id_of(const char* role, const char* otherwise) const {
        const std::string name = name_of(role, otherwise);
        if (!vocabulary_.contains(name) || !vocabulary_[name].is_number_unsigned())
            throw host::Error(path_.string() + ": expected the " + std::string(role) + " " + name + ", got none");
        return vocabulary_[name].get<std::uint32_t>();
    }

    void add(const std::string& name, const SortedJson& id, const SortedJson& like, bool special) {
        if (name.empty() || !id.is_number_unsigned()) return;
        if (!names_.insert(name).second) return;
        const auto said = [&](const char* key, bool otherwise) {
            return like.is_object() && like.contains(key) ? like[key] == true : otherwise;
        };
        added_.push_back({{"id", id},
                          {"content", name},
                          {"single_word", said("single_word", false)},
                          {"lstrip", said("lstrip", false)},
                          {"rstrip", said("rstrip", false)},
                          {"normalized", said("normalized", !special)},
                          {"special", said("special", special)}});
        if (id.get<std::uint64_t>() < vocab_size_) vocabulary_[name] = id;
    }

    /// First the tokens that tokenizer_config.json lists whole, then the roles', then the others of added_tokens.json.
    void add_tokens() {
        const SortedJson listed = config_.value("added_tokens_decoder", SortedJson::object());
        for (const auto& [id, token] : listed.items())
            if (token.is_object() && token.value("content", SortedJson()).is_string() && !id.empty() && id.size() < 9 &&
                id.find_first_not_of("0123456789") == id.npos)
                add(token["content"], std::stoul(id), token, false);
        const bool is_roberta = kind_.style == Style::roberta;
        const std::pair<const char*, const char*> roles[] = {{"bos_token", kind_.bos},
                                                             {"eos_token", kind_.eos},
                                                             {"unk_token", kind_.unknown},
                                                             {"pad_token", ""},
                                                             {"mask_token", kind_.mask},
                                                             {"cls_token", is_roberta ? kind_.bos : ""},
                                                             {"sep_token", is_roberta ? kind_.eos : ""}};
        for (const auto& [role, otherwise] : roles) {
            const std::string name = name_of(role, otherwise);
            const SortedJson id = more_.contains(name) ? more_[name] : vocabulary_.value(name, SortedJson());
            SortedJson like = field_of(role);
            if (!like.is_object() && std::string_view(role) == "mask_token" && is_roberta) like = {{"lstrip", true}};
            if (like.is_object()) like["special"] = true, like["normalized"] = false;
            add(name, id, like, true);
        }
        std::set<std::string> special;
        for (const SortedJson& token : field_of("additional_special_tokens")) special.insert(token_text(token));
        for (const auto& [name, id] : more_.items()) add(name, id, SortedJson(), special.count(name) != 0);
    }

    const fs::path path_;
    const std::uint32_t vocab_size_;
    const fs::path config_path_;
    SortedJson vocabulary_;
    const SortedJson config_, roles_, more_;
    const VocabularyKind& kind_;
    SortedJson added_ = SortedJson::array();
    std::set<std::string> names_;  // of those
};

}  // namespace

bool reads_vocab_json(const fs::path& folder) {
    return is_there(folder / "vocab.json") && is_there(folder / "merges.txt") && find_kind(class_of(folder));
}

std::vector<std::byte> tokenizer_section_from_vocab_json(const fs::path& path, const TokenizerFacts& facts,
                                                         std::vector<std::string>& notes) {
    const std::string text = json_text(Folder(path, facts.vocab_size).joined());
    return tokenizer_section_from_json(text, path.string(), facts, notes);
}

}  // namespace fovea

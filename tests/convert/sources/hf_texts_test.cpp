// What a folder says of its texts beside config.json: how long they may be, what becomes of them first, which rows count.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convert/open/convert.h"
#include "convert/tokenizers/tokenizer_file.h"
#include "fovea/model.h"
#include "fovea/tokenizer.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;
using nlohmann::json;

namespace {

/// A copy of a golden encoder's folder, which a test changes.
class FolderCopy {
public:
    explicit FolderCopy(const char* name) {
        fs::copy(fs::path(FOVEA_GOLDEN_DIR) / "encoders" / name, folder_.path(), fs::copy_options::recursive);
    }
    [[nodiscard]] fs::path operator/(const char* name) const { return folder_ / name; }
    [[nodiscard]] ModelSource source() const { return read_source({.source = folder_.path()}); }
    [[nodiscard]] std::string info(const char* wanted) const {
        const ModelSource read = source();
        for (const auto& [key, value] : read.info)
            if (key == wanted) return value;
        return "none";
    }
    [[nodiscard]] std::string refusal() const {
        return refusal_of([&] { (void)source(); });
    }
    void merge(const char* name, const json& fields) const {
        const fs::path path = folder_ / name;
        json object = fs::exists(path) ? json::parse(read_text(path)) : json::object();
        object.merge_patch(fields);
        write_text(path, object.dump());
    }

private:
    TemporaryFolder folder_;
};

struct Opened {
    AlignedBytes section;
    Tokenizer tokenizer;

    explicit Opened(const ModelSource& source) : section(source.tokenizer.begin(), source.tokenizer.end()) {
        REQUIRE(open_tokenizer(section, tokenizer).ok());
    }
};

std::vector<Token> ids_of(const ModelSource& source, const std::string& text) {
    const Opened opened(source);
    std::vector<std::byte> scratch(tokenize_scratch_bytes(opened.tokenizer, text.size()));
    std::vector<Token> ids(max_tokens(opened.tokenizer, text.size()));
    std::size_t n = 0;
    REQUIRE(tokenize(opened.tokenizer, text, {}, scratch, ids, n).ok());
    ids.resize(n);
    return ids;
}

}  // namespace

TEST_CASE("texts: how long they may be, by the names that the file has had, and by the tokenizer's") {
    const FolderCopy folder("roberta_sequenceclassification");
    const std::uint32_t positions = folder.source().config.encoder.max_positions;
    REQUIRE(positions > 12);
    folder.merge("tokenizer_config.json", {{"model_max_length", 12}});
    CHECK(folder.info("max_seq_length") == "12");
    folder.merge("tokenizer_config.json", {{"model_max_length", 1e30}});
    CHECK(folder.info("max_seq_length") == "none");
    folder.merge("sentence_roberta_config.json", {{"max_seq_length", 7}});
    CHECK(folder.info("max_seq_length") == "7");
    folder.merge("sentence_bert_config.json", {{"processing_kwargs", {{"text", {{"max_length", 9}}}}}});
    CHECK(folder.info("max_seq_length") == "9");
    folder.merge("sentence_bert_config.json", {{"max_seq_length", 5}});
    CHECK(folder.info("max_seq_length") == "9");
    folder.merge("sentence_bert_config.json", {{"max_seq_length", positions + 1}, {"processing_kwargs", nullptr}});
    CHECK(folder.info("max_seq_length") == "none");
    // What a CrossEncoder of today has.
    folder.merge("sentence_bert_config.json",
                 {{"transformer_task", "sequence-classification"},
                  {"modality_config", {{"text", {{"method", "forward"}, {"method_output_name", "logits"}}}}}});
    CHECK(folder.refusal() == "");
    folder.merge("sentence_bert_config.json", {{"modality_config", {{"message", {{"method", "forward"}}}}}});
    CHECK(contains(folder.refusal(), "modality_config: message: expected texts as they are"));
}

TEST_CASE("texts: of positions that are distances any length is read") {
    const FolderCopy folder("t5_model");
    REQUIRE(folder.source().config.encoder.max_positions < 2000);
    folder.merge("sentence_bert_config.json", {{"max_seq_length", 2000}});
    CHECK(folder.source().config.encoder.max_positions == 2000);
}

TEST_CASE("texts: lower-cased first, whatever the tokenizer does") {
    const FolderCopy folder("xlm_roberta_questionanswering");  // whose words are letters
    folder.merge("tokenizer_config.json", {{"do_lower_case", false}});
    const std::vector<Token> capitals = ids_of(folder.source(), "A b C"), small = ids_of(folder.source(), "a b c");
    REQUIRE(capitals != small);
    folder.merge("sentence_bert_config.json", {{"do_lower_case", true}});
    CHECK(ids_of(folder.source(), "A b C") == small);
}

TEST_CASE("texts: BERT's tokenizer class goes by its own settings, whatever tokenizer.json says") {
    const FolderCopy folder("bert_sentence");
    fs::remove(folder / "vocab.txt");
    write_text(
        folder / "tokenizer.json",
        R"({"model": {"type": "WordPiece", "unk_token": "[U]", "vocab": {"[U]": 1, "[C]": 2, "[S]": 3, "a": 5, "A": 6,
        "é": 7}}, "normalizer": {"type": "BertNormalizer", "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": ["[C]", 2], "sep": ["[S]", 3]},
        "decoder": {"type": "WordPiece"}, "added_tokens": []})");
    fs::remove(folder / "tokenizer_config.json");
    const auto ids = [&] { return ids_of(folder.source(), "a A é"); };
    const std::vector<Token> lowered = {2, 5, 5, 1, 3}, as_they_are = {2, 5, 6, 7, 3}, accented = {2, 5, 5, 7, 3};
    CHECK(ids() == lowered);
    folder.merge("tokenizer_config.json", {{"do_lower_case", false}, {"tokenizer_class", "PreTrainedTokenizerFast"}});
    CHECK(ids() == lowered);
    folder.merge("tokenizer_config.json", {{"tokenizer_class", "BertTokenizerFast"}, {"unk_token", "[U]"}});
    CHECK(ids() == as_they_are);
    folder.merge("tokenizer_config.json", {{"do_lower_case", nullptr}, {"strip_accents", false}});
    CHECK(ids() == accented);
    folder.merge("tokenizer_config.json", {{"unk_token", "[C]"}});
    CHECK(contains(folder.refusal(), "unk_token: expected tokenizer_config.json's [C]"));
    folder.merge("tokenizer_config.json", {{"unk_token", "[U]"}, {"cls_token", "a"}});
    CHECK(contains(folder.refusal(), "post_processor: expected tokenizer_config.json's cls_token and sep_token"));
}

TEST_CASE("texts: a decoder that says so looks both ways; of one for logits it is refused") {
    const FolderCopy folder("llama_model");
    CHECK(folder.source().config.encoder.blocks[0].attention.causal);
    folder.merge("config.json", {{"is_causal", false}});
    CHECK(!folder.source().config.encoder.blocks[0].attention.causal);
    folder.merge("config.json", {{"model_type", "mistral"}, {"sliding_window", 4}});  // four on each side, and its own
    CHECK(folder.source().config.encoder.blocks[0].attention.window == 5);
    folder.merge("config.json", {{"is_causal", nullptr}});
    CHECK(folder.source().config.encoder.blocks[0].attention.window == 4);
    folder.merge("config.json", {{"model_type", "llama"}, {"is_causal", false}});
    fs::remove(folder / "modules.json");
    CHECK(contains(folder.refusal(), "is_causal: expected true of a model that gives logits, got false"));
}

TEST_CASE("texts: an end token follows where the folder's own tokenizer code puts one") {
    const FolderCopy folder("llama_model");
    fs::remove(folder / "vocab.txt");
    write_text(folder / "tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 5, "b": 6}, "merges": []},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "added_tokens": []})");
    folder.merge("config.json", {{"eos_token_id", 7}});
    const std::vector<Token> bare = {5, 6};
    CHECK(ids_of(folder.source(), "ab") == bare);
    folder.merge("tokenizer_config.json", {{"add_eos_token", true}});  // which transformers' own classes do not read
    CHECK(ids_of(folder.source(), "ab") == bare);
    folder.merge("tokenizer_config.json",
                 {{"auto_map", {{"AutoTokenizer", {"tokenization_qwen.Qwen2Tokenizer", nullptr}}}}});
    CHECK(ids_of(folder.source(), "ab") == std::vector<Token>{5, 6, 7});
}

TEST_CASE("texts: tokens that are added beside a SentencePiece model are told of") {
    const TemporaryFolder folder;
    fs::copy(FOVEA_GOLDEN_DIR "/spm_bpe.model", folder / "tokenizer.model");
    std::vector<std::string> notes;
    (void)tokenizer_section_from_file(folder / "tokenizer.model", {.vocab_size = 1000}, notes);
    CHECK(notes.empty());
    write_text(folder / "added_tokens.json", R"({"<|im_start|>": 1000})");
    (void)tokenizer_section_from_file(folder / "tokenizer.model", {.vocab_size = 1001}, notes);
    REQUIRE(notes.size() == 1);
    CHECK(contains(notes[0], "added_tokens.json: tokens beside a SentencePiece model are not read"));
}

TEST_CASE("texts: classes are read before a pad that the template puts last") {
    const FolderCopy folder("qwen3_sequenceclassification");
    const std::vector<Token> ids = ids_of(folder.source(), "a lamp");
    folder.merge("config.json", {{"pad_token_id", ids.front()}});
    CHECK(ids_of(folder.source(), "a lamp") == ids);
    for (const std::int64_t unknown : {-1, 100000}) {
        folder.merge("config.json", {{"pad_token_id", unknown}});
        CHECK(ids_of(folder.source(), "a lamp") == ids);
    }
    folder.merge("config.json", {{"pad_token_id", ids.back()}});
    CHECK(ids_of(folder.source(), "a lamp") == std::vector<Token>(ids.begin(), ids.end() - 1));
}

TEST_CASE("texts: scores are what the CrossEncoder says, or it is refused") {
    const FolderCopy folder("roberta_sequenceclassification");
    folder.merge("config.json", {{"problem_type", "regression"}});
    CHECK(folder.info("scores") == "none");
    folder.merge("config.json",
                 {{"sentence_transformers", {{"activation_fn", "torch.nn.modules.activation.Sigmoid"}}}});
    CHECK(folder.info("scores") == "sigmoid");
    folder.merge("config.json", {{"sentence_transformers", {{"activation_fn", "torch.nn.modules.activation.Tanh"}}}});
    CHECK(contains(folder.refusal(), "activation_fn: expected Identity or Sigmoid"));
    folder.merge("config.json",
                 {{"sentence_transformers", {{"activation_fn", "torch.nn.modules.activation.LogSigmoid"}}}});
    CHECK(contains(folder.refusal(), "activation_fn: expected Identity or Sigmoid"));
    folder.merge("config.json", {{"sentence_transformers", {{"activation_fn", "mine.Sigmoid"}}}});
    CHECK(folder.info("scores") == "none");  // of the regression
}

TEST_CASE("texts: a pair's second text is of the first's type where the tokenizer makes no types") {
    const FolderCopy folder("bert_sequenceclassification");
    const auto types = [&] {
        const Opened opened(folder.source());
        std::vector<Token> ids(pair_tokens(opened.tokenizer, 1, 1)), result(ids.size());
        const std::vector<Token> one = {3};
        std::uint64_t second = 0;
        REQUIRE(join_pair(opened.tokenizer, one, one, ids, result, second).ok());
        return *std::max_element(result.begin(), result.end());
    };
    CHECK(types() == 1);
    folder.merge("tokenizer_config.json", {{"model_input_names", {"input_ids", "attention_mask"}}});
    CHECK(types() == 0);
}

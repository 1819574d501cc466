// Encoders of every family, with their heads: what the engine computes of a converted folder is what transformers computes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "convert/families/family.h"
#include "convert/open/convert.h"
#include "convert/writer/writer.h"
#include "fovea/encode.h"
#include "fovea/host/opened.h"
#include "host/model/listing.h"
#include "host/model/texts.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

fs::path encoders() { return fs::path(FOVEA_GOLDEN_DIR) / "encoders"; }

/// A golden folder, converted and opened.
class ConvertedFolder {
public:
    explicit ConvertedFolder(const fs::path& source, std::optional<Type> type = {}) {
        ConvertOptions options;
        options.source = source;
        options.output = folder_ / "model.fovea";
        options.type = type;
        convert_source(options);
        opened = host::open(options.output.string());
    }
    host::Opened opened;

private:
    TemporaryFolder folder_;
};

/// The largest difference from expected_I.npy of each text, as a share of the largest value; 1 where shapes differ.
float worst_error(const fs::path& folder, const host::Opened& opened) {
    std::vector<TextTokens> texts;
    for (const Text& text : read_text_lines((folder / "texts.jsonl").string()))
        texts.push_back(tokens_of(opened, text));
    REQUIRE(texts.size() == 3);
    TextBatches batches(opened, texts, {.n_threads = 2});
    float worst = 0;
    batches.run([&](std::size_t i, std::span<const float> results) {
        const std::string name = "expected_" + std::to_string(i) + ".npy";
        const std::vector<float> wanted = numbers_of<float>(read_npy((folder / name).string()));
        float largest = 0, error = wanted.size() == results.size() ? 0.0f : 1.0f;
        for (std::size_t k = 0; k < std::min(wanted.size(), results.size()); ++k) {
            largest = std::max(largest, std::abs(wanted[k]));
            error = std::max(error, std::abs(wanted[k] - results[k]));
        }
        worst = std::max(worst, error / largest);
    });
    return worst;
}

std::vector<fs::path> golden_folders() {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(encoders()))
        if (fs::exists(entry.path() / "expected_0.npy")) folders.push_back(entry.path());
    return folders;
}

TEST_CASE("every family's encoder and head give transformers' numbers, single texts and pairs") {
    const std::vector<fs::path> folders = golden_folders();
    std::set<std::string> types;
    for (const fs::path& folder : folders) {
        CAPTURE(folder.filename().string());
        const ConvertedFolder model(folder);
        CHECK(worst_error(folder, model.opened) <= 1e-4f);
        const auto config = nlohmann::json::parse(read_text(folder / "config.json"));
        types.insert(config["model_type"].get<std::string>() +
                     config.value("feed_forward_type", "") +  // Jina's says bert
                     (config.contains("num_experts") ? " with experts" : ""));
    }
    CHECK(types.size() == folders.size());  // a family each
    CHECK(types.size() >= 12);
}

TEST_CASE("a GGUF file of an encoder gives the vectors of the folder that it was made from, in every bit") {
    std::size_t n_models = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(FOVEA_GOLDEN_DIR) / "encoders_gguf")) {
        CAPTURE(entry.path().filename().string());
        std::vector<float> vectors[2];
        for (const bool is_gguf : {false, true}) {
            const ConvertedFolder model(is_gguf ? entry.path() / "model.gguf" : entry.path(), Type::f32);
            std::vector<TextTokens> texts(1);
            for (Token i = 0; i < 30; ++i)
                texts[0].ids.push_back((7 * i + 3) % model.opened.model.config().encoder.vocab_size);
            TextBatches batches(model.opened, texts, {.n_threads = 1});
            batches.run(
                [&](std::size_t, std::span<const float> rows) { vectors[is_gguf].assign(rows.begin(), rows.end()); });
        }
        REQUIRE(vectors[0].size() == vectors[1].size());
        CHECK(vectors[0].size() >= 30);
        CHECK(std::memcmp(vectors[0].data(), vectors[1].data(), vectors[0].size() * sizeof(float)) == 0);
        ++n_models;
    }
    CHECK(n_models == 8);
}

TEST_CASE("a GGUF file of a reranker is a classifier with the logits of the folder that it was made from") {
    struct Case {
        const char *folder, *file, *labels, *scores;
    };
    for (const Case& one :
         {Case{"bert", "model.gguf", "LABEL_0\n", "sigmoid"}, Case{"bert", "no_key.gguf", "LABEL_0\n", "sigmoid"},
          Case{"qwen3", "model.gguf", "yes\nno\nmaybe\n", "softmax"}}) {
        const fs::path folder = fs::path(FOVEA_GOLDEN_DIR) / "rerankers" / one.folder;
        CAPTURE((folder / one.file).string());
        const ConvertedFolder model(folder / one.file, Type::f32);
        CHECK(worst_error(folder, model.opened) <= 1e-4f);
        CHECK(find_info(model.opened.model, "task") == "text-classification");
        CHECK(find_info(model.opened.model, "labels") == one.labels);
        CHECK(find_info(model.opened.model, "scores") == one.scores);
    }
}

TEST_CASE("a decoder's classes are of the last id that pads nothing, of ids and texts, as transformers reads them") {
    const fs::path golden = encoders() / "qwen3_sequenceclassification";
    TemporaryFolder copy;
    fs::copy(golden, copy.path(), fs::copy_options::recursive);
    const auto id = [&](const char* word) {
        std::istringstream words(read_text(golden / "vocab.txt"));
        Token n = 0;
        for (std::string line; std::getline(words, line) && line != word;) ++n;
        return n;
    };
    edit_json(copy / "config.json", [&](nlohmann::json& config) { config["pad_token_id"] = id("[SEP]"); });
    const ConvertedFolder model(copy.path());
    std::vector<Token> ids{id("s"), id("z"), id("[SEP]"), id("y")};
    const std::vector<Token> wanted = ids;
    ids.insert(ids.end(), 3, id("[SEP]"));
    drop_pads(model.opened.model, ids);
    CHECK(ids == wanted);
    std::vector<Token> pads(3, id("[SEP]"));
    drop_pads(model.opened.model, pads);
    CHECK(pads.size() == 1);
    const TextTokens text = tokens_of(model.opened, {"s z [SEP] y [SEP] [SEP]", {}}, {.parse_special = true});
    CHECK(text.ids.back() == id("y"));
    // A text that is too long is cut as it is where the template's [SEP] takes one of the model's 40 positions.
    std::string letters = "s";
    for (int i = 0; i < 60; ++i) letters += " z";
    const TextTokens cut = tokens_of(model.opened, {letters, {}});
    CHECK(cut.ids.size() == 39);
    CHECK(cut.is_cut());
}

TEST_CASE("layers that share weights have their bytes in the file once, and still do when it is converted again") {
    TemporaryFolder again;
    const ConvertedFolder model(encoders() / "albert_tokenclassification");
    std::map<std::string, std::set<std::uint64_t>> places;
    const std::uint32_t n_layers = model.opened.model.config().encoder.n_layers;
    CHECK(n_layers == 2);
    for (const TensorInfo& t : tensors(model.opened.model)) places[t.role].insert(t.offset);
    for (const char* role : {"query", "up", "down_bias", "attention_norm"}) CHECK(places[role].size() == 1);
    ConvertOptions options;
    options.source = model.opened.name;
    options.output = again / "again.fovea";
    convert_source(options);
    CHECK(read_text(options.output) == read_text(model.opened.name));
}

TEST_CASE("types that halve or quantize weights stay near, and every instruction set gives the same bits") {
    for (const fs::path& folder : golden_folders()) {
        CAPTURE(folder.filename().string());
        CHECK(worst_error(folder, ConvertedFolder(folder, Type::bf16).opened) < 0.25f);
        const ConvertedFolder model(folder, Type::q8);
        std::vector<TextTokens> texts;
        for (const Text& text : read_text_lines((folder / "texts.jsonl").string()))
            texts.push_back(tokens_of(model.opened, text));
        std::vector<std::vector<float>> first(texts.size());
        for (const char* isa : isa_names())
            for (const std::uint32_t n_threads : {1u, 3u}) {
                TextBatches batches(model.opened, texts, {.n_threads = n_threads, .isa = isa});
                batches.run([&](std::size_t i, std::span<const float> results) {
                    std::vector<float>& wanted = first[i];
                    if (wanted.empty()) wanted.assign(results.begin(), results.end());
                    CHECK(std::memcmp(wanted.data(), results.data(), results.size_bytes()) == 0);
                });
            }
    }
}

TEST_CASE("a head's labels and what becomes of its logits stand in the file") {
    const ConvertedFolder model(encoders() / "distilbert_sequenceclassification");
    CHECK(find_info(model.opened.model, "task") == "text-classification");
    CHECK(find_info(model.opened.model, "scores") == "softmax");
    CHECK(find_info(model.opened.model, "labels").starts_with("LABEL_0\nLABEL_1\n"));
    CHECK(find_info(model.opened.model, "nothing") == "");
    CHECK(find_info(ConvertedFolder(encoders() / "bert_sequenceclassification").opened.model, "scores") == "sigmoid");
}

TEST_CASE("values of config.json that no encoder can have are refused by their name") {
    struct Wrong {
        const char* folder;
        const char* field;
        nlohmann::json value;
        const char* words;
    };
    const Wrong wrongs[] = {
        {"roberta_sequenceclassification", "max_position_embeddings", 2, "more than the padding's id and 1"},
        {"mpnet_maskedlm", "relative_attention_num_buckets", 6, "expected 32"},
        {"t5_model", "relative_attention_num_buckets", 6, "a multiple of 4"},
        {"t5_model", "dense_act_fn", "odd", "dense_act_fn: expected relu"},
        {"albert_tokenclassification", "num_hidden_groups", 9, "num_hidden_groups"},
        {"bert_sequenceclassification", "id2label", {{"7", "seven"}}, "a label for each id"},
        {"bert_sequenceclassification", "position_embedding_type", "relative_key", "absolute"},
        {"jina_bert_model", "feed_forward_type", "original", "feed_forward_type: expected geglu or reglu"},
        {"jina_bert_model", "position_embedding_type", "absolute",
         "position_embeddings.weight: expected [40, 12], got none"},
        {"jina_v3_sequenceclassification", "hidden_act", "silu_clamped", "hidden_act"},
        {"modernbert_sequenceclassification", "layer_types", {"full_attention"}, "layer_types"},
        {"electra_maskedlm", "embedding_size", 13, "expected shape"},
        {"gte_sequenceclassification", "pack_qkv", false, "pack_qkv: expected true"},
        {"gte_sequenceclassification", "logn_attention_scale", true, "logn_attention_scale: expected false"},
        {"gte_sequenceclassification", "rope_scaling", {{"type", "ntk"}, {"factor", 2}, {"mixed_b", 0.5}}, "mixed_b"},
        {"nomic_moe_model", "expert_choice_router", true, "expert_choice_router: expected none"},
        {"nomic_moe_model", "num_shared_experts", 1, "num_shared_experts: expected none"},
        {"nomic_moe_model", "moe_top_k", 4, "moe_top_k"},
        {"nomic_moe_model", "mlp_fc2_bias", false, "mlp_fc2_bias: expected true"},
        {"gemma_embedding_model", "use_bidirectional_attention", 1, "use_bidirectional_attention"},
        {"gemma_embedding_model", "sliding_window", 0, "sliding_window: expected a whole number of at least 1"},
        {"gemma_embedding_model", "hidden_size", 14, "expected shape [31, 14], got [31, 12]"},
    };
    for (const Wrong& wrong : wrongs) {
        CAPTURE(wrong.field);
        TemporaryFolder copy;
        fs::copy(encoders() / wrong.folder, copy.path(), fs::copy_options::recursive);
        edit_json(copy / "config.json", [&](nlohmann::json& config) { config[wrong.field] = wrong.value; });
        const std::string line = refusal_of([&] { (void)read_source({.source = copy.path()}); });
        CAPTURE(line);
        CHECK(contains(line, wrong.words));
    }
}

TEST_CASE("settings that a class does not read are passed over, those that it makes of others are read") {
    const auto changed = [](const char* folder, const char* field, const nlohmann::json& value) {
        TemporaryFolder copy;
        fs::copy(encoders() / folder, copy.path(), fs::copy_options::recursive);
        edit_json(copy / "config.json", [&](nlohmann::json& config) { config[field] = value; });
        const ConvertOptions options{.source = copy.path()};
        const ModelSource source = read_source(options);
        return write_bytes(source, write_options(options, source));
    };
    const auto same = [&](const char* folder, const char* field, const nlohmann::json& value) {
        const AlignedBytes with = changed(folder, field, value), without = changed(folder, "no_such_field", 1);
        return std::equal(with.begin(), with.end(), without.begin(), without.end());
    };
    CHECK(same("roformer_maskedlm", "rope_theta", 50.0));
    CHECK(same("t5_model", "feed_forward_proj", "relu"));
    CHECK(!same("t5_model", "dense_act_fn", "relu"));
}

TEST_CASE("a decoder's rows become vectors only where something pools them") {
    TemporaryFolder copy;
    fs::copy(encoders() / "llama_model", copy.path(), fs::copy_options::recursive);
    edit_json(copy / "modules.json", [](nlohmann::json& modules) { modules.erase(2), modules.erase(1); });
    CHECK(
        contains(refusal_of([&] { (void)read_source({.source = copy.path()}); }), "modules.json: expected a Pooling"));
}

}  // namespace

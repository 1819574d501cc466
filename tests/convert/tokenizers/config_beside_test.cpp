// The tokenizer_config.json beside a tokenizer.json: which of the two counts, as in transformers.
#include "convert/tokenizers/config_beside.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/opened_tokenizer.h"

using namespace fovea;
using namespace fovea::testing;
using nlohmann::json;

namespace {

json golden_json(const char* name) { return json::parse(golden_text(name)); }

std::vector<std::byte> section_beside(const json& file, const json& config, std::vector<std::string>* notes = nullptr) {
    std::vector<std::string> none;
    return tokenizer_section_from_json(file.dump(), "tokenizer.json", {.vocab_size = 1u << 20, .config = config},
                                       notes ? *notes : none);
}

json added(const char* content, const json& flags) {
    json token = {{"content", content}};
    token.update(flags);
    return {{"added_tokens_decoder", {{"7", token}}}};
}

}  // namespace

TEST_CASE("tokenizer_config.json: flags of added tokens are those of added_tokens_decoder") {
    const json plain = golden_json("tokenizer_llama2.json");
    for (const char* flag : {"lstrip", "rstrip", "single_word", "special"}) {
        CAPTURE(flag);
        json changed = plain;
        const bool now = changed["added_tokens"][1][flag].get<bool>();
        changed["added_tokens"][1][flag] = !now;
        json flags = plain["added_tokens"][1];
        flags.erase("id");
        flags[flag] = !now;
        CHECK(section_beside(plain, added("<s>", flags)) == section_of(changed.dump()));
        CHECK(section_of(changed.dump()) != section_of(plain.dump()));
    }
    json roled = added("<s>", {{"special", false}, {"normalized", false}});
    roled["bos_token"] = "<s>";  // what has a role is special
    CHECK(section_beside(plain, roled) == section_of(plain.dump()));
}

TEST_CASE("tokenizer_config.json: tokens of roles that the vocabulary has are added tokens") {
    const json whole = golden_json("tokenizer_gpt2.json");
    REQUIRE(whole["added_tokens"].size() == 1);
    const std::string name = whole["added_tokens"][0]["content"];
    json without = whole;
    without["added_tokens"] = json::array();
    for (const json& config :
         {json{{"eos_token", name}}, json{{"pad_token", {{"content", name}}}},
          json{{"additional_special_tokens", {name}}}, added(name.c_str(), {{"special", true}, {"normalized", false}})})
        CHECK(section_beside(without, config) == section_of(whole.dump()));
    CHECK(section_beside(without, json::object()) != section_of(whole.dump()));
}

TEST_CASE("tokenizer_config.json: tokens that the vocabulary lacks have the next ids, as far as the model has rows") {
    const json whole = golden_json("tokenizer_qwen2.json");
    const std::uint32_t n = whole["added_tokens"].back()["id"].get<std::uint32_t>() + 1;
    json more = whole;
    const auto add = [&](const char* text, std::uint32_t id, bool is_special) {
        more["added_tokens"].push_back(
            {{"content", text}, {"id", id}, {"special", is_special}, {"normalized", !is_special}});
    };
    add("<b>", n, false);
    add("<a>", n + 1, true);
    add("[PAD]", n + 2, true);
    json config = {{"pad_token", "[PAD]"}};
    config["added_tokens_decoder"]["9"] = {{"content", "<b>"}};
    config["added_tokens_decoder"]["10"] = {{"content", "<a>"}, {"special", true}};
    CHECK(section_beside(whole, config) == section_of(more.dump()));
    std::vector<std::string> notes, of_file;
    const std::vector<std::byte> cut =
        tokenizer_section_from_json(whole.dump(), "tokenizer.json", {.vocab_size = n + 2, .config = config}, notes);
    CHECK(cut == tokenizer_section_from_json(more.dump(), "tokenizer.json", {.vocab_size = n + 2}, of_file));
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("none for them: [PAD]") != std::string::npos);
}

TEST_CASE("tokenizer_config.json: a contradiction about the first space is told, special_tokens_map.json is read") {
    const auto n_notes = [](const char* name, const json& first) {
        std::vector<std::string> notes;
        (void)section_beside(golden_json(name), {{"add_prefix_space", first}}, &notes);
        for (const std::string& note : notes) CHECK(note.find("add_prefix_space is ") != std::string::npos);
        return notes.size();
    };
    for (const char* name : {"tokenizer_gpt2.json", "tokenizer_qwen2.json"}) {  // without, alone and in a Sequence
        CHECK(n_notes(name, true) == 1);
        CHECK(n_notes(name, false) == 0);
    }
    for (const char* name : {"tokenizer_roberta.json", "tokenizer_mistral.json"}) {
        CHECK(n_notes(name, false) == 1);
        CHECK(n_notes(name, true) == 0);
    }
    CHECK(n_notes("tokenizer_gpt2.json", nullptr) == 0);
    CHECK(n_notes("tokenizer_bert.json", true) == 0);
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("fovea-config-beside-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    CHECK(config_beside(folder) == json::object());
    std::ofstream(folder / "special_tokens_map.json") << R"({"eos_token": "<e>"})";
    CHECK(config_beside(folder)["eos_token"] == "<e>");
    std::ofstream(folder / "tokenizer_config.json") << R"({"eos_token": "</s>", "added_tokens_decoder": {}})";
    CHECK(config_beside(folder)["eos_token"] == "</s>");
    std::filesystem::remove_all(folder);
}

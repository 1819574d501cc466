// A small model with ChatML's tokens, for tests of conversations.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/tokenizers/tokenizer_json.h"
#include "tests/support/command_line.h"
#include "tests/support/small_models.h"

namespace fovea::testing {

inline constexpr char kTemplate[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// A small model with random weights that has ChatML's tokens and the template above; with an adapter, unless its layers are given.
struct ChatModel {
    TemporaryFolder folder;
    std::string path = (folder / "chat.fovea").string(), adapter = (folder / "adapter.fovea").string();

    explicit ChatModel(const char* chat_template = kTemplate, std::uint32_t max_positions = 400, bool has_ends = true,
                       const std::vector<std::pair<std::string, std::string>>& info = {},
                       const std::vector<std::string>& marks = {}, std::optional<Config> layers = {}) {
        const std::string name = FOVEA_GOLDEN_DIR "/tokenizer_smollm.json";
        std::string given = read_text(name);
        for (std::size_t at = 0; !has_ends && (at = given.find("<|end|>", at)) != std::string::npos;)
            given.replace(at, 7, "<|fin|>");  // which ends no turn
        nlohmann::json tokenizer = nlohmann::json::parse(given);
        const std::size_t n_vocab = tokenizer["model"]["vocab"].size();
        Config config = layers.value_or(llama_config(1, 32, 2, 1, 16, 64));
        config.decoder.max_positions = max_positions;
        config.decoder.vocab_size = static_cast<std::uint32_t>(n_vocab);
        std::vector<std::string> specials = {"<|im_start|>", has_ends ? "<|im_end|>" : "<|im_fin|>"};
        specials.insert(specials.end(), marks.begin(), marks.end());
        for (const std::string& special : specials) {
            nlohmann::json token = tokenizer["added_tokens"][0];
            token["id"] = config.decoder.vocab_size++;
            token["content"] = special;
            token["special"] = !special.starts_with("<tool_call>{");  // which an answer shows
            tokenizer["added_tokens"].push_back(token);
        }
        const std::string text = tokenizer.dump();
        if (!layers) write_adapter(config);
        ModelSource source = random_model(config, 3);
        source.tokenizer = tokenizer_section_from_json(text, name, {config.decoder.vocab_size, {}, {}}, source.notes);
        if (*chat_template) source.info.emplace_back("chat_template", chat_template);
        source.info.insert(source.info.end(), info.begin(), info.end());
        write_file(source, path, {});
    }
    void write_adapter(Config config) const {
        config.decoder.adapter_rank = 2;
        config.decoder.adapted = kAllAdapted;
        write_file(random_model(config, 4), adapter, {});
    }
};

}  // namespace fovea::testing

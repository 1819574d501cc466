#include "convert/open/pair_template.h"

#include <algorithm>

#include "host/base/error.h"
#include "host/base/json.h"
#include "host/chat/chat_template.h"
#include "host/model/pair_template.h"

namespace fovea {
namespace {

std::string info_of(const ModelSource& source, const char* key) {
    const auto found =
        std::find_if(source.info.begin(), source.info.end(), [&](const auto& entry) { return entry.first == key; });
    return found == source.info.end() ? std::string() : found->second;
}

/// The text before which nothing is asked for: that of default_prompt.
std::string chosen_prompt(const ModelSource& source) {
    const std::string name = info_of(source, "default_prompt");
    if (name.empty()) return {};
    return read_sorted_json(info_of(source, "prompts")).value(name, std::string());
}

}  // namespace

const std::string kQwenRerankerPair =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. "
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n"
    "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
    "<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

void add_pair_template(const TextSettings::Messages& messages, ModelSource& source) {
    const bool scores_pairs =
        info_of(source, "task") == "text-classification" && source.config.encoder.result_width() == 1;
    const std::string chat = info_of(source, "chat_template");
    if (!scores_pairs || chat.empty())
        throw host::Error(std::string("modality_config: message: expected texts as they are of a model ") +
                          (scores_pairs ? "without a chat template" : "that scores no pairs") + ", got messages");
    const auto message = [&](const char* role, const std::string& text) {
        const Json content = messages.structured ? Json::array({{{"type", "text"}, {"text", text}}}) : Json(text);
        return Json{{"role", role}, {"content", content}};
    };
    ChatInput input;
    if (const std::string prompt = chosen_prompt(source); !prompt.empty())
        input.messages.push_back(message("system", prompt));
    input.messages.push_back(message("query", std::string(PairTemplate::kQuery)));
    input.messages.push_back(message("document", std::string(PairTemplate::kDocument)));
    input.add_generation_prompt = messages.opens_answer;
    const SortedJson special = read_sorted_json(info_of(source, "special_tokens"));
    if (special.is_object()) {
        input.bos_token = special.value("bos_token", std::string());
        input.eos_token = special.value("eos_token", std::string());
    }
    for (const auto& [name, value] : messages.variables.items()) input.extra[name] = read_json(json_text(value));
    std::string text;
    try {
        text = ChatTemplate::parse(chat).render(input).text();
    } catch (const ChatTemplateError& error) {
        throw host::Error(std::string("chat_template: ") + error.what());
    }
    if (!PairTemplate::read(text))
        throw host::Error(
            "chat_template: expected one that shows messages of the roles query and document, each once "
            "and in this order, got another");
    source.info.emplace_back("pair_template", std::move(text));
}

}  // namespace fovea

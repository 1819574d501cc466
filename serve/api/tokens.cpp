// POST /tokenize, /detokenize and /apply-template, GET /tokenizer_info: what the server itself does to texts. The forms are those
// of llama.cpp's server and of vLLM.
#include "serve/api/other_fields.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kMostTokens = 1 << 16;  // of a text that is asked for: its answer's bytes are in memory

/// A token's text; where it is a part of a character, its bytes.
Json piece_of(const Tokenizer& tokenizer, Token id) {
    const std::string bytes(token_bytes(tokenizer, id));
    try {
        (void)Json(bytes).dump();
        return bytes;
    } catch (const Json::exception&) {
    }
    Json numbers = Json::array();
    for (const char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
    return numbers;
}

/// The model of this name, else the only one, or the only one that writes texts.
ModelEntry& tokenizer_of(Call& call, const Fields& fields, Service& service) {
    return service.find(call, fields.text("model"), std::nullopt, ModelTask::writes);
}

/// A prompt's ids as vLLM tells them: of a text, or of a conversation by its template.
Reply tokenize_prompt(const Fields& fields, ModelEntry& entry) {
    std::vector<Token> ids;
    if (fields.find("messages")) {
        if (entry.work != Work::text) refuse("messages", "a model that writes texts", entry.served.name);
        const Request request = read_chat(fields);
        ids = entry.prompts.read_rendered(entry.prompts.render(request), request);
    } else {
        const TokenizeOptions options{.add_special = fields.flag("add_special_tokens", true), .parse_special = true};
        ids = entry.prompts.read_text(fields.text("prompt"), options, "prompt");
    }
    Json json = {{"count", ids.size()}, {"max_model_len", entry.context}, {"tokens", ids}, {"token_strs", nullptr}};
    if (fields.flag("return_token_strs", false)) {
        json["token_strs"] = Json::array();
        for (const Token id : ids) json["token_strs"].push_back(token_bytes(entry.served.tokenizer, id));
    }
    return reply_of(json);
}

}  // namespace

Reply endpoints::tokenize(Call& call, Service& service) {
    const Fields fields = call.json.contains("messages")  // whose fields are read with them
                              ? Fields(call.json)
                              : fields_of(call, {"model", "content", "add_special", "parse_special", "with_pieces",
                                                 "prompt", "add_special_tokens", "return_token_strs"});
    ModelEntry& entry = tokenizer_of(call, fields, service);
    if (!fields.find("content") && (fields.find("prompt") || fields.find("messages")))
        return tokenize_prompt(fields, entry);
    (void)fields.need("content", "a text");
    const TokenizeOptions options{.add_special = fields.flag("add_special", false),
                                  .parse_special = fields.flag("parse_special", true)};
    const bool with_pieces = fields.flag("with_pieces", false);
    Json tokens = Json::array();
    for (const Token id : entry.prompts.read_text(fields.text("content"), options, "content"))
        tokens.push_back(with_pieces ? Json{{"id", id}, {"piece", piece_of(entry.served.tokenizer, id)}} : Json(id));
    return reply_of({{"tokens", std::move(tokens)}});
}

Reply endpoints::detokenize(Call& call, Service& service) {
    const Fields fields = fields_of(call, {"model", "tokens"});
    const Tokenizer& tokenizer = tokenizer_of(call, fields, service).served.tokenizer;
    const Json& list = fields.need("tokens", "an array of token ids");
    if (!list.is_array() || list.size() > kMostTokens)
        fields.refuse("tokens", "an array of at most " + std::to_string(kMostTokens) + " token ids", list);
    const std::vector<Token> ids = read_token_ids(list, "tokens");
    for (const Token id : ids)
        if (id >= tokenizer.vocab_size())
            refuse("tokens", "ids below " + std::to_string(tokenizer.vocab_size()), std::to_string(id));
    const std::string text = host::detokenize(tokenizer, ids, {.show_special = true});
    return reply_of({{"content", text}, {"prompt", text}});
}

/// What clients need of a tokenizer whose files they have not.
Reply endpoints::tell_tokenizer(Call& call, Service& service) {
    const Json nothing = Json::object();
    const ModelEntry& entry = tokenizer_of(call, Fields(nothing), service);
    const Tokenizer& tokenizer = entry.served.tokenizer;
    const ModelInfo& info = entry.served.model.info();
    const auto spelled = [&](Token id) {
        return id == Tokenizer::kNoToken ? Json() : Json(token_bytes(tokenizer, id));
    };
    Token end = 0;
    while (end < tokenizer.vocab_size() && !tokenizer.ends_text(end)) ++end;
    Json json = {{"tokenizer_class", "fovea"},
                 {"bos_token", spelled(tokenizer.bos())},
                 {"eos_token", spelled(end < tokenizer.vocab_size() ? end : Tokenizer::kNoToken)},
                 {"model_max_length", entry.context}};
    if (const Json named = read_json(find_info(entry.served.model, "special_tokens")); named.is_object())
        json.update(named);
    if (!info.chat_template.empty()) json["chat_template"] = info.chat_template;
    return reply_of(json);
}

Reply endpoints::apply_template(Call& call, Service& service) {
    const Request request = read_chat(Fields(call.json));
    call.ignored = request.ignored;
    const ModelEntry& entry = service.find(call, request.model, Work::text);
    return reply_of({{"prompt", entry.prompts.render(request).text()}});
}

}  // namespace fovea::serve

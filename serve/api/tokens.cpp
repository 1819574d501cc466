// POST /tokenize, /detokenize and /apply-template, as llama.cpp's server has them: what the server itself does to texts.
#include "serve/api/endpoint.h"
#include "serve/api/fields.h"

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

}  // namespace

Reply endpoints::tokenize(Call& call, Service& service) {
    const Fields fields(call.json);
    ModelEntry& entry = service.find(fields.text("model"), std::nullopt);
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
    const Fields fields(call.json);
    const Tokenizer& tokenizer = service.find(fields.text("model"), std::nullopt).served.tokenizer;
    const Json& list = fields.need("tokens", "an array of token ids");
    if (!list.is_array() || list.size() > kMostTokens)
        fields.refuse("tokens", "an array of at most " + std::to_string(kMostTokens) + " token ids", list);
    const std::vector<Token> ids = read_token_ids(list, "tokens");
    for (const Token id : ids)
        if (id >= tokenizer.vocab_size())
            refuse("tokens", "ids below " + std::to_string(tokenizer.vocab_size()), std::to_string(id));
    return reply_of({{"content", host::detokenize(tokenizer, ids, {.show_special = true})}});
}

Reply endpoints::apply_template(Call& call, Service& service) {
    const Request request = read_chat(Fields(call.json));
    const ModelEntry& entry = service.find(request.model, Work::text);
    return reply_of({{"prompt", entry.prompts.render(request).text()}});
}

}  // namespace fovea::serve

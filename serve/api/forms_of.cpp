#include "serve/api/forms_of.h"

#include "host/chat/answer_reader.h"

namespace fovea::serve {

std::optional<ForcedCall> forced_call_of(const Request& request, const ModelChat* chat) {
    if (request.form != Form::tool) return std::nullopt;
    const AnswerDialect dialect = chat ? chat->dialect() : dialect_of({});
    return ForcedCall(*dialect.calls, request.tools, request.tool, chat != nullptr);
}

Constrain form_of(const Request& request, const ModelChat* chat, Forms& forms) {
    if (request.form == Form::any) return {};
    try {
        if (const std::optional<ForcedCall> call = forced_call_of(request, chat)) {
            const std::string key = json_text(Json{request.tool, request.tools});
            return forms.find(request.form, key, request.compact,
                              [&] { return call->form({.compact = request.compact}); });
        }
        const bool is_written = request.form == Form::grammar || request.form == Form::regex;
        const std::string text = is_written                     ? request.grammar
                                 : request.form == Form::schema ? request.schema.dump()
                                                                : R"({"type": "object"})";
        return forms.find(request.form, text, request.compact);
    } catch (const FormsBusy& error) {
        throw RequestError(429, error.what());
    } catch (const grammar::GrammarError& error) {
        const std::string param = request.form == Form::tool ? "tools" : request.form_field;
        throw RequestError(400, param + ": " + error.what(), param);
    }
}

}  // namespace fovea::serve

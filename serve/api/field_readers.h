// Readers of single fields, which the rows of text_fields.inc name: what an answer must be, and the tools that it may call.
#pragma once
#include "serve/api/fields.h"

namespace fovea::serve {

/// Puts a field's value into the request. Throws RequestError, which names the field.
using FieldReader = void(const Fields& fields, const char* name, const Json& value, Request& request);

FieldReader read_response_format, read_text_format, read_output_format, read_format;
FieldReader read_schema, read_grammar, read_regex, read_choice;
FieldReader read_tools, read_tool_choice;
FieldReader read_function_tools, read_function_choice;  // a response's
FieldReader read_custom_tools, read_custom_choice;      // Anthropic's
/// The items of a response's input, as messages.
FieldReader read_items;
/// Anthropic's messages, whose contents are blocks, as those of chats.
FieldReader read_turns;

}  // namespace fovea::serve

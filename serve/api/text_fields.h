// What requests for texts have for fields: one table, from which all of them are read.
#pragma once
#include <string>
#include <vector>

#include "serve/api/fields.h"

namespace fovea::serve {

/// The kinds of objects that have fields, as bits.
enum : unsigned {
    kChat = 1,
    kCompletion = 2,
    kResponse = 4,
    kStructured = 8,  ///< vLLM's structured_outputs, within any of these
    kOllamaChat = 16,
    kOllamaGenerate = 32,
    kOllamaOptions = 64,  ///< within these two
    kBatch = 128,         ///< a line of `run --batch`, which is a chat or a completion,
    kLine = 256,          ///< or what such lines alone have
    kMessages = 512,      ///< Anthropic's
    kOpenAi = kChat | kCompletion | kResponse,
    kSampled = kOpenAi | kBatch | kMessages,  ///< options of sampling by OpenAI's names
    kAll = kOpenAi | kOllamaChat | kOllamaGenerate | kMessages
};

/// Reads the fields that an object of that kind may have. Others are not looked at.
void read_text_fields(const Fields& fields, unsigned of, Request& request);
/// Their names, in the order of the table.
[[nodiscard]] std::vector<std::string> text_field_names(unsigned of);

/// The items of a response's input, as messages.
void read_items(const Fields& fields, const char* name, const Json& input, Request& request);
/// Anthropic's messages, whose contents are blocks, as those of chats.
void read_turns(const Fields& fields, const char* name, const Json& turns, Request& request);

}  // namespace fovea::serve

// What requests for texts have for fields: one table, from which all of them are read.
#pragma once
#include <span>

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
    kRanks = 1024,        ///< members alone: texts to be ranked,
    kInfill = 2048,       ///< and what llama.cpp's server fills in
    kOpenAi = kChat | kCompletion | kResponse,
    kOllama = kOllamaChat | kOllamaGenerate,
    kTalk = kChat | kResponse | kMessages | kBatch,  ///< conversations by OpenAI's names
    kSampled = kOpenAi | kBatch | kMessages,         ///< options of sampling by those names
    kAll = kOpenAi | kOllama | kMessages,
    kEvery = kAll | kBatch
};

/// The members of an object within requests, by names with a space between them.
struct MemberRow {
    const char* place;  ///< as "tools[].function"
    unsigned of;        ///< the requests that have it, as bits
    const char *obeyed, *ignored;
};

/// Reads the fields of an object of that kind. A field that no row has for it is refused where other kinds have it, or where its
/// name looks like a known one; else the request ignores it by name. Lines of a batch are looked at for the rows' fields alone.
void read_text_fields(const Fields& fields, unsigned of, Request& request);
/// Refuses a name that looks like one that is obeyed; adds another one to the names that are ignored.
void add_unknown(const Fields& fields, const std::string& name, const std::vector<std::string>& obeyed,
                 std::string& ignored);
/// The same of members of the objects within a request.
void check_members(const Json& body, unsigned of, std::string& ignored);
[[nodiscard]] std::span<const MemberRow> member_rows();
/// The table, in its order.
[[nodiscard]] std::span<const FieldRow<Request>> text_fields();

}  // namespace fovea::serve

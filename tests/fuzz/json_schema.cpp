// JSON schemas, and calls of tools with such parameters: a GrammarError, or a form that opens and whose answers go on until they end.
#include "host/text/forced_call.h"
#include "tests/fuzz/form.h"

FOVEA_FUZZ_TARGET(json_schema) {
    using namespace fovea;
    if (size > 2048) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    fuzz::compile_and_draw([&] { return grammar::read_json_schema(text); });
    const Json schema = read_json(text, nullptr, {.depth = 100});
    if (!schema.is_object()) return 0;
    const Json tools = Json::array({{{"function", {{"name", "f"}, {"parameters", schema}}}},
                                    {{"function", {{"name", "g"}, {"parameters", schema}}}}});
    for (const char* dialect : {"hermes", "deepseek-v3.2", "lfm2", "gemma4"})
        fuzz::compile_and_draw([&] { return ForcedCall(*find_dialect(dialect), tools, "", false).form(); });
    return 0;
}

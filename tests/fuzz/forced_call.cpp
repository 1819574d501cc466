// Calls of tools whose parameters are a JSON schema, in the dialect that the first byte chooses: a GrammarError, or a form that opens
// and whose answers go on until they end.
#include "host/text/forced_call.h"
#include "tests/fuzz/form.h"

FOVEA_FUZZ_TARGET(forced_call) {
    using namespace fovea;
    constexpr const char* kDialects[] = {"hermes", "deepseek-v3.2", "lfm2", "gemma4"};
    if (size == 0 || size > 2048) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const Json schema = read_json(text, nullptr, {.depth = 100});
    if (!schema.is_object()) return 0;
    const Json tools = Json::array({{{"function", {{"name", "f"}, {"parameters", schema}}}},
                                    {{"function", {{"name", "g"}, {"parameters", schema}}}}});
    const Dialect& dialect = *find_dialect(kDialects[data[0] % std::size(kDialects)]);
    fuzz::compile_and_draw([&] { return ForcedCall(dialect, tools, "", false).form(); });
    return 0;
}

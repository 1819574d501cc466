// JSON schemas: a GrammarError, or a form that opens and whose answers go on until they end.
#include "tests/fuzz/form.h"

FOVEA_FUZZ_TARGET(json_schema) {
    using namespace fovea;
    if (size > 2048) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    fuzz::compile_and_draw([&] { return grammar::read_json_schema(text); });
    return 0;
}

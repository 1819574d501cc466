// What a model may write, read for reasoning and calls of tools: however it comes in pieces, its calls and the rest are the same, in
// every dialect.
#include "host/chat/answer_reader.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(answer_calls) {
    using namespace fovea;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const Json tools = Json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
    for (const Dialect& dialect : all_dialects()) {
        AnswerDialect both = dialect_of({});
        both.calls = &dialect;
        const AnswerReading how{.dialect = both, .reads_calls = true, .tools = tools};
        AnswerReader whole(how), pieces(how);
        std::string at_once[2], one_by_one[2];  // said, thought
        const auto add_at_once = [&](std::string_view part, bool is_thought) { at_once[is_thought] += part; };
        const auto add_one = [&](std::string_view part, bool is_thought) { one_by_one[is_thought] += part; };
        whole.add(text, add_at_once);
        whole.finish(add_at_once);
        for (const char c : text) pieces.add({&c, 1}, add_one);
        pieces.finish(add_one);
        fuzz::promise(at_once[0] == one_by_one[0] && at_once[1] == one_by_one[1], "the same text in pieces");
        fuzz::promise(whole.calls().size() == pieces.calls().size(), "the same calls in pieces");
    }
    return 0;
}

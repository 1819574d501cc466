// JSON: what the library's own parser makes of a text, written and read again as the same; or one line that says what is wrong.
#include "host/base/wanted_json.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(json) {
    using namespace fovea;
    constexpr JsonBounds kBounds{.depth = 40, .members = 1000};
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    JsonFault fault;
    const Json value = read_json(text, &fault, kBounds);
    if (value.is_discarded()) {
        fuzz::promise(!fault.words.empty() && fault.words.find('\n') == std::string::npos, "one line");
        fuzz::promise(fault.byte <= size + 1, "a place in the text");
    }
    // Bounds are no matter of the library's: what may go beyond them is not compared.
    const std::size_t n_names = static_cast<std::size_t>(std::count(text.begin(), text.end(), ':'));
    if (json_depth(text) <= kBounds.depth && n_names <= kBounds.members) {
        const Json known = Json::parse(text, nullptr, false);
        fuzz::promise(known.is_discarded() == value.is_discarded() && (value.is_discarded() || known == value),
                      "the library's value");
    }
    if (value.is_discarded()) return 0;
    for (const bool ascii : {false, true})
        fuzz::promise(read_json(json_text(value, ascii)) == value, "the same value from its text");
    const SortedJson all = read_wanted(text, [](std::size_t, std::string_view) { return true; });
    fuzz::promise(all == read_sorted_json(text), "all members are wanted");
    const SortedJson some =
        read_wanted(text, [](std::size_t depth, std::string_view name) { return depth != 1 || name < "b"; });
    fuzz::promise(!some.is_discarded() && some.size() <= all.size(), "some of them");
    const Json less = read_json(text, nullptr, {.depth = 3, .members = 2});
    fuzz::promise(less.is_discarded() || less == value, "bounds refuse or change nothing");
    return 0;
}

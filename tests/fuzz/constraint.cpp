// Forms of any bytes: a Status, or a form that is safe to run. The input is changes to a sound one: place and byte.
#include "tests/fuzz/form.h"

FOVEA_FUZZ_TARGET(constraint) {
    using namespace fovea;
    const fuzz::FormVocabulary& v = fuzz::FormVocabulary::get();
    static const std::vector<std::byte> sound = grammar::compile(
        grammar::read_json_schema(
            R"({"type":"object","properties":{"a":{"type":"string","maxLength":99},"b":{}},"required":["a"]})"),
        v.tokenizer, v.index, {.own_index = true});
    std::vector<std::byte> form = sound;
    fuzz::Input input(data, size);
    if (input.take<std::uint8_t>() % 8 == 0) {  // raw bytes
        const std::string_view rest = input.rest();
        form.assign(reinterpret_cast<const std::byte*>(rest.data()),
                    reinterpret_cast<const std::byte*>(rest.data()) + rest.size());
    }
    while (!input.rest().empty() && !form.empty()) {
        const std::size_t at = input.take<std::uint32_t>() % form.size();
        form[at] = static_cast<std::byte>(input.take<std::uint8_t>());
    }
    bool for_board = true;
    try {
        grammar::check_form_for_board(form);
    } catch (const grammar::GrammarError&) {  // cut, or without an index
        for_board = false;
    }
    Constraint constraint;
    if (!open_constraint(v.tokenizer, form, {}, constraint).ok()) return 0;
    fuzz::promise(for_board, "a form that opens alone can be embedded");
    for (std::uint32_t seed = 0; seed < 2; ++seed) fuzz::draw(constraint, v.tokenizer, seed, false);
    return 0;
}

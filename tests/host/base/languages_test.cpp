// Languages as people write them: every name that OpenAI's Whisper takes, and the codes of models that translate
// (tests/golden/make_languages.py).
#include "host/base/languages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace {

using namespace fovea;
using nlohmann::json;

json golden() { return json::parse(std::ifstream(std::string(FOVEA_GOLDEN_DIR) + "/languages.json")); }

std::string code_of(const std::string& written) {
    const auto found = find_known_language(written);
    return found ? std::string(found->code) : "";
}

TEST_CASE("languages: every name of Whisper's is known, in any case and with a region") {
    const json names = golden()["whisper"];
    REQUIRE(names.size() > 200);
    for (const auto& item : names.items()) {
        const std::string &name = item.key(), code = item.value();
        CAPTURE(name);
        std::string upper = name;
        std::transform(upper.begin(), upper.end(), upper.begin(),
                       [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
        for (const std::string& written : {name, upper, " " + name, name + "-XX", name + "_xx"})
            CHECK(code_of(written) == code);
        const auto found = find_known_language(name + "-ab");
        CHECK(found->region == "AB");
    }
    for (const char* written : {"", "xx", "klingon", "__de__", "the", "-", "de.", "d"}) CHECK(code_of(written).empty());
}

TEST_CASE("languages: codes of three letters and scripts are NLLB's, and codes of two M2M-100's and mBART's") {
    const json all = golden();
    std::vector<std::string> nllb = all["nllb"];
    std::size_t n_found = 0;
    for (const auto& item : all["whisper"].items()) {
        const std::string &name = item.key(), code = item.value();
        const auto found = find_known_language(name);
        const std::string three(found->three);
        const bool has =
            std::any_of(nllb.begin(), nllb.end(), [&](const std::string& c) { return c.starts_with(three + "_"); });
        if (!has) continue;
        ++n_found;
        CAPTURE(name);
        CHECK(std::count(nllb.begin(), nllb.end(), three + "_" + found->script) == 1);
        CHECK(code_of(three) == code);
    }
    CHECK(n_found > 180);
    for (const std::string code : all["m2m_100"]) {
        CAPTURE(code);
        const bool is_known = !code_of(code).empty();
        CHECK((is_known || code == "zh"));
    }
    for (const std::string code : all["mbart"]) CHECK(code_of(code) == code.substr(0, 2));
    CHECK(find_known_language("zh-TW")->script == "Hant");
    CHECK(find_known_language("zh")->script == "Hans");
    CHECK(find_known_language("sr-latn")->script == "Latn");
}

}  // namespace

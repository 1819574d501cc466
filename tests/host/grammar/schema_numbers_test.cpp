// Numbers between bounds: what a reader of doubles finds within them is written, and nothing else.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "host/base/json.h"
#include "tests/support/form_cases.h"

namespace fovea::testing {
namespace {

TEST_CASE("schemas: no number beside an open bound is read as that bound") {
    const char* const small = R"({"minimum":0,"exclusiveMaximum":10,"type":"number"})";
    CHECK(allows(small, "9.999999"));
    CHECK_FALSE(allows(small, "10"));
    const char* const large = R"({"minimum":99999999999,"exclusiveMaximum":100000000000,"type":"number"})";
    CHECK(allows(large, "99999999999"));
    CHECK(allows(large, "99999999999.9999"));
    CHECK_FALSE(allows(large, "99999999999.999999"));  // which is 1e11 as a double
    const char* const low = R"({"exclusiveMinimum":-900000000000000,"maximum":5,"type":"number"})";
    CHECK(allows(low, "-899999999999999"));
    CHECK_FALSE(allows(low, "-899999999999999.99"));
}

TEST_CASE("schemas: numbers beside bounds have fractions, on both sides of them as a reader compares") {
    const char* const fractions[] = {"0", "00", "5", "50", "25", "9", "99", "90", "999999", "000001", "949999"};
    for (const char* low : {"", R"("minimum":-3,)", R"("exclusiveMinimum":-3,)", R"("minimum":0,)",
                            R"("exclusiveMinimum":0,)", R"("exclusiveMinimum":19,)"})
        for (const char* high : {"", R"("maximum":20,)", R"("exclusiveMaximum":20,)", R"("exclusiveMaximum":0,)",
                                 R"("maximum":-1,)", R"("exclusiveMaximum":-1,)"}) {
            const std::string text = std::string("{") + low + high + R"("type":"number"})";
            CAPTURE(text);
            Json schema = Json::parse(text);
            const double least = schema.value("minimum", -1e9), above = schema.value("exclusiveMinimum", -1e9);
            const double most = schema.value("maximum", 1e9), below = schema.value("exclusiveMaximum", 1e9);
            if (least > most || above >= most || least >= below || above >= below) continue;
            const Form form(grammar::read_json_schema(text, {.compact = true}), byte_level());
            for (int whole = -5; whole <= 22; ++whole)
                for (const char* fraction : fractions)
                    for (const char* sign : {"", "-"}) {
                        if (whole < 0 && *sign == 0) continue;
                        if (*sign && std::strtod(fraction, nullptr) == 0 && whole == 0)
                            continue;  // -0.0 need not be written
                        const std::string number = sign + std::to_string(whole < 0 ? -whole : whole) + "." + fraction;
                        const double value = std::strtod(number.c_str(), nullptr);
                        CAPTURE(number);
                        CHECK(fits(form, number) ==
                              (value >= least && value > above && value <= most && value < below));
                    }
        }
}

TEST_CASE("schemas: bounds of numbers may have places, and numbers fewer or more of them") {
    for (const char* low : {"", R"("minimum":0.5,)", R"("exclusiveMinimum":0.5,)", R"("minimum":-0.25,)",
                            R"("exclusiveMinimum":-1,)", R"("minimum":1.375e-2,)", R"("minimum":0.999,)"})
        for (const char* high : {"", R"("maximum":1.75,)", R"("exclusiveMaximum":1.75,)", R"("maximum":0.999,)",
                                 R"("exclusiveMaximum":0,)", R"("maximum":-0.125,)", R"("maximum":10.05,)"}) {
            const std::string text = std::string("{") + low + high + R"("type":"number"})";
            CAPTURE(text);
            const Json schema = Json::parse(text);
            const double least = schema.value("minimum", -1e9), above = schema.value("exclusiveMinimum", -1e9);
            const double most = schema.value("maximum", 1e9), below = schema.value("exclusiveMaximum", 1e9);
            if (least > most || above >= most || least >= below || above >= below) continue;
            if (*low == 0 && *high == 0) continue;  // any number: with an exponent, too
            const Form form(grammar::read_json_schema(text, {.compact = true}), byte_level());
            const auto check = [&](const std::string& number) {
                const double value = std::strtod(number.c_str(), nullptr);
                CAPTURE(number);
                CHECK(fits(form, number) == (value >= least && value > above && value <= most && value < below));
            };
            for (int thousandth = -1100; thousandth <= 2100; thousandth += thousandth % 25 == 24 ? 1 : 6) {
                if (thousandth == 0) continue;  // -0.000 need not be written
                char number[32];
                std::snprintf(number, sizeof number, "%.3f", thousandth / 1000.0);
                check(number);
                for (const char* more : {"0", "001", "9999", "5000000"}) check(number + std::string(more));
                if (thousandth % 10 == 0) check(std::string(number).substr(0, std::strlen(number) - 1));
                if (thousandth % 100 == 0) check(std::string(number).substr(0, std::strlen(number) - 2));
            }
            for (const char* number :
                 {"0", "1", "2", "-1", "-2", "7", "10", "10.0", "10.04", "10.049999", "10.05", "10.0500", "10.050001",
                  "10.1", "11", "100.5", "0.01375", "0.0137499", "0.013750"})
                check(number);
            for (const char* broken : {"01.5", ".5", "1.", "00.5", "1e0", "0.5.5", "--0.5"})
                CHECK_FALSE(fits(form, broken));
        }
    CHECK_THROWS_WITH_AS(
        (void)grammar::read_json_schema(R"({"type":"number","minimum":1e-20})"),
        "schema/minimum: expected a bound of at most 15 digits, 14 of them behind the point, got 1e-20: "
        "not supported",
        grammar::GrammarError);
    CHECK(allows(R"({"enum":[0.25,0.75],"minimum":0.5})", "0.75"));
    CHECK_FALSE(allows(R"({"enum":[0.25,0.75],"minimum":0.5})", "0.25"));
    CHECK(allows(R"({"type":"integer","minimum":1e-20,"maximum":2.5})", "2"));
    CHECK_FALSE(allows(R"({"type":"integer","minimum":1e-20,"maximum":2.5})", "0"));
}

}  // namespace
}  // namespace fovea::testing

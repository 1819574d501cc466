#include "host/base/decimal.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <locale>
#include <string>

using fovea::read_decimal;

namespace {

/// Writes and reads 1.5 as 1,5, as many languages do.
struct CommaPoint : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
};

struct GlobalLocale {
    std::locale before;
    explicit GlobalLocale(const std::locale& locale) : before(std::locale::global(locale)) {}
    ~GlobalLocale() { std::locale::global(before); }
};

}  // namespace

TEST_CASE("decimal: numbers, to the nearest of the type") {
    float narrow = 0;
    double wide = 0;
    for (const char* text :
         {"0", "1", "-1.5", "+2.5", "0.1", ".25", "4.", "1e3", "6.02E23", "1.1754944e-38", "16777217"}) {
        CAPTURE(text);
        CHECK(read_decimal(text, wide));
        CHECK(wide == std::stod(text));
        CHECK(read_decimal(text, narrow));
        CHECK(narrow == std::stof(text));
    }
    // Between two floats, a little above their middle: by way of a double it would be the lower one.
    REQUIRE(read_decimal("1.00000005960464477540", narrow));
    CHECK(narrow == std::nextafter(1.0f, 2.0f));
    REQUIRE(read_decimal("1.7976931348623157e308", wide));
    CHECK(wide == std::numeric_limits<double>::max());
}

TEST_CASE("decimal: all of the text or nothing") {
    double number = 0;
    for (const char* text :
         {"", " ", " 1", "1 ", "1x", "x", "0x10", "inf", "nan", "1,5", "1.5.2", "--1", "1e", "1e999", ".", "e5"}) {
        CAPTURE(text);
        CHECK(!read_decimal(text, number));
    }
    float narrow = 0;
    CHECK(!read_decimal("1e39", narrow));
}

TEST_CASE("decimal: whatever the locale") {
    const GlobalLocale comma(std::locale(std::locale::classic(), new CommaPoint));
    double number = 0;
    CHECK(read_decimal("1.5", number));
    CHECK(number == 1.5);
    CHECK(!read_decimal("1,5", number));
}

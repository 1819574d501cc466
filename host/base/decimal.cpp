#include "host/base/decimal.h"

#include <locale>
#include <sstream>
#include <string>

namespace fovea {
namespace {

template<class Number>
bool read(std::string_view text, Number& number) {
    if (text.empty() || text.find_first_not_of("0123456789.eE+-") != text.npos)
        return false;  // hexadecimal, inf, spaces
    std::istringstream stream{std::string(text)};
    stream.imbue(std::locale::classic());
    return stream >> number && stream.peek() == std::istringstream::traits_type::eof();
}

}  // namespace

bool read_decimal(std::string_view text, float& number) { return read(text, number); }
bool read_decimal(std::string_view text, double& number) { return read(text, number); }

}  // namespace fovea

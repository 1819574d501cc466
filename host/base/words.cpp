#include "host/base/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "host/base/ascii.h"

namespace fovea {
namespace {

constexpr std::size_t kLongest = 400;  // characters of a line a person still reads

}  // namespace

std::string with_separators(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
    return digits;
}

std::string shape_words(const std::vector<std::uint64_t>& shape) {
    std::string words = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) words += (i ? ", " : "") + std::to_string(shape[i]);
    return words + "]";
}

const char* type_name(Type type) noexcept {
    static constexpr std::array<const char*, kTypeCount> kNames = {
        "f32",   "f16",  "bf16", "q8",     "q4",    "q6_k",   "q5_k", "q4_k", "iq4_nl",
        "mxfp4", "q3_k", "q2_k", "iq4_xs", "tq2_0", "q8_128", "q5",   "q4_1", "q5_1"};
    return kNames[static_cast<std::size_t>(type)];
}

std::string system_error(int error) {
    std::string words = std::strerror(error);
    if (words.size() > 1 && std::islower(static_cast<unsigned char>(words[1])))
        words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
    return words;
}

std::string printable(std::string_view text) {
    std::string out(text);
    std::replace_if(out.begin(), out.end(), is_control, '?');
    return out;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string one_line(std::string_view text) {
    return printable(text.substr(0, kLongest)) + (text.size() > kLongest ? "…" : "");
}

std::string joined(std::span<const char* const> names) {
    std::string list;
    for (const char* name : names) list += (list.empty() ? "" : ", ") + std::string(name);
    return list;
}

std::string hex(std::uint64_t number) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
    return digits;
}

}  // namespace fovea

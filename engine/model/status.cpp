#include "fovea/status.h"

namespace fovea {
namespace {

constexpr const char* kNames[] = {
#define FOVEA_CODE(name, NAME, words) words,
#include "fovea/codes.inc"
#undef FOVEA_CODE
};

/// Text written into a span; what does not fit is dropped, so that a line is cut off and never overruns.
struct LineWriter {
    std::span<char> out;
    std::size_t n = 0;

    LineWriter& add(std::string_view text) noexcept {
        for (const char c : text)
            if (n < out.size()) out[n++] = c;
        return *this;
    }

    LineWriter& add(std::uint64_t number) noexcept {
        char digits[20];  // 2^64 - 1 has 20
        std::size_t first = sizeof digits;
        do {
            digits[--first] = static_cast<char>('0' + number % 10);
            number /= 10;
        } while (number);
        return add({digits + first, sizeof digits - first});
    }
};

/// Without the library's own, which in some libraries wants a way to throw.
[[nodiscard]] bool ends_with(std::string_view text, std::string_view end) noexcept {
    const std::size_t n = end.size();
    return text.size() >= n && __builtin_memcmp(text.data() + (text.size() - n), end.data(), n) == 0;
}

}  // namespace

const char* name(Code code) noexcept {
    const auto i = static_cast<std::size_t>(code);
    return i < std::size(kNames) ? kNames[i] : "unknown code";
}

std::string_view describe(const Status& status, std::span<char> line) noexcept {
    LineWriter text{line};
    const std::string_view what = status.what ? status.what : "";
    text.add(name(status.code));
    if (status.code == Code::io_error) {  // `had` is an error number: there is nothing that was wanted
        if (!what.empty()) text.add(": ").add(what);
        if (status.had) text.add(", system error ").add(status.had);
    } else if (status.wanted && status.wanted == status.had) {
        text.add(": ").add(what).add(" ").add(status.had);
    } else if (status.wanted || status.had) {
        // "tokens at most", 4, 5 becomes "tokens: expected at most 4, got 5".
        std::string_view noun = what, bound = "";
        for (const std::string_view word : {" at most", " at least"})
            if (ends_with(what, word)) noun = {what.data(), what.size() - word.size()}, bound = word;
        if (!noun.empty()) text.add(": ").add(noun);
        text.add(": expected").add(bound).add(" ").add(status.wanted).add(", got ").add(status.had);
    } else if (!what.empty()) {
        text.add(": ").add(what);
    }
    return {line.data(), text.n};
}

}  // namespace fovea

#include "fovea/status.h"

namespace fovea {
namespace {

/// Text written into a span; what does not fit is dropped, so that a line is cut off and never overruns.
struct Line {
    std::span<char> out;
    std::size_t n = 0;

    Line& add(std::string_view text) noexcept {
        for (const char c : text)
            if (n < out.size()) out[n++] = c;
        return *this;
    }

    Line& add(std::uint64_t number) noexcept {
        char digits[20];  // 2^64 - 1 has 20
        std::size_t first = sizeof digits;
        do {
            digits[--first] = static_cast<char>('0' + number % 10);
            number /= 10;
        } while (number);
        return add({digits + first, sizeof digits - first});
    }
};

}  // namespace

const char* name(Code code) noexcept {
    switch (code) {
        case Code::ok: return "ok";
        case Code::truncated: return "truncated";
        case Code::bad_magic: return "not a Fovea file";
        case Code::version_unsupported: return "version unsupported";
        case Code::misaligned: return "misaligned";
        case Code::checksum_mismatch: return "checksum mismatch";
        case Code::section_missing: return "section missing";
        case Code::section_invalid: return "section invalid";
        case Code::config_invalid: return "configuration invalid";
        case Code::tensor_missing: return "tensor missing";
        case Code::tensor_invalid: return "tensor invalid";
        case Code::unsupported: return "unsupported";
        case Code::bad_limits: return "bad limits";
        case Code::arena_too_small: return "arena too small";
        case Code::bad_shape: return "bad shape";
        case Code::token_out_of_range: return "token out of range";
        case Code::context_full: return "context full";
        case Code::buffer_too_small: return "buffer too small";
        case Code::bad_argument: return "bad argument";
        case Code::isa_unavailable: return "instruction set unavailable";
        case Code::io_error: return "input or output failed";
        case Code::threads_unavailable: return "threads unavailable";
    }
    return "unknown code";
}

std::string_view describe(const Status& status, std::span<char> line) noexcept {
    Line text{line};
    const std::string_view what = status.what ? status.what : "";
    text.add(name(status.code));
    if (status.code == Code::io_error) {  // `had` is an error number: there is nothing that was wanted
        if (!what.empty()) text.add(": ").add(what);
        if (status.had) text.add(", system error ").add(status.had);
    } else if (status.wanted || status.had) {
        text.add(": want ").add(status.wanted);
        if (!what.empty()) text.add(" ").add(what);
        text.add(", have ").add(status.had);
    } else if (!what.empty()) {
        text.add(": ").add(what);
    }
    return {line.data(), text.n};
}

}  // namespace fovea

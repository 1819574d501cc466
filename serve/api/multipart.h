// Forms with files, as browsers and programs send them: multipart/form-data (RFC 7578, Masinter 2015).
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::serve {

/// A field of a form: its bytes are body[begin, end).
struct FormPart {
    std::string name;
    std::size_t begin = 0, end = 0;

    [[nodiscard]] std::string_view of(std::string_view body) const { return body.substr(begin, end - begin); }
};

inline constexpr std::size_t kMostParts = 64;
inline constexpr std::size_t kMostPartHeaders = 4096;  // bytes

/// The fields of a body of this Content-Type, in their order. Any bytes give fields within the body, or RequestError.
[[nodiscard]] std::vector<FormPart> read_multipart(std::string_view content_type, std::string_view body);

}  // namespace fovea::serve

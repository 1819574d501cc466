// A recording that is to be written down, and how, read from a form with a file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/api/request.h"

namespace fovea::serve {

/// What a verbose transcript gives the times of.
struct TimesOf {
    bool segments = true, words = false;
};

struct SpeechRequest {
    std::string model;
    std::string sound;        ///< a file's bytes
    std::string language;     ///< that is spoken; empty: the likeliest
    std::string said_before;  ///< a text before the recording's own
    std::string form;         ///< json, text, srt, verbose_json or vtt
    TimesOf times;
    float temperature = 0;
    std::uint64_t seed = 0;
    bool says_seed = false, random_seed = false, stream = false;
    bool voice = false;  ///< stretches without one are passed over
};

/// Reads a form with a recording (multipart/form-data), of a Content-Type and a body, which becomes the request's sound. Any
/// bytes give a request, or RequestError.
[[nodiscard]] SpeechRequest read_upload(std::string_view content_type, std::string&& body);

}  // namespace fovea::serve

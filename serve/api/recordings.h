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
    std::size_t begin = 0, end = 0;  ///< of the file within the body,
    std::string sound;               ///< and its bytes once they are taken
    std::string language;            ///< that is spoken; empty: the likeliest
    std::string said_before;         ///< a text before the recording's own
    std::string form;                ///< json, text, srt, verbose_json or vtt
    TimesOf times;
    float temperature = 0;
    std::uint64_t seed = 0;
    bool says_seed = false, random_seed = false, stream = false;
    bool voice = false;   ///< stretches without one are passed over
    std::string ignored;  ///< names of fields that are not known, with commas between them

    /// The body that it was read of becomes its sound.
    void take_sound(std::string&& body);
};

/// Reads a form with a recording (multipart/form-data), of a Content-Type and a body. Any bytes give a request, or RequestError.
[[nodiscard]] SpeechRequest read_upload(std::string_view content_type, std::string_view body);

}  // namespace fovea::serve

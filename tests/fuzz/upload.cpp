// A recording that is uploaded, a Content-Type up to the first line's end and a form: a refusal with its status, or fields and a
// sound that lie in the form.
#include "serve/api/multipart.h"
#include "serve/api/recordings.h"
#include "tests/fuzz/fuzz.h"

FOVEA_FUZZ_TARGET(upload) {
    using namespace fovea;
    using namespace fovea::serve;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const std::string_view type = bytes.substr(0, bytes.find('\n'));
    const std::string_view body = bytes.substr(std::min(type.size() + 1, bytes.size()));
    try {
        const std::vector<FormPart> parts = read_multipart(type, body);
        fuzz::promise(parts.size() <= kMostParts, "a number of fields");
        for (const FormPart& part : parts)
            fuzz::promise(!part.name.empty() && part.begin <= part.end && part.end <= body.size(),
                          "a field in the form");
        SpeechRequest request = read_upload(type, body);
        request.take_sound(std::string(body));
        fuzz::promise(!request.sound.empty() && request.sound.size() <= body.size(), "a recording of the form");
        fuzz::promise(request.temperature >= 0 && request.temperature <= 1, "a temperature");
    } catch (const RequestError& error) {
        fuzz::promise(error.status == 400, "a status for what the client did");
        fuzz::promise(std::string_view(error.what()).find('\n') == std::string_view::npos, "one line");
    }
    return 0;
}

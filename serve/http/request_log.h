// A line of JSON for each request that was answered, or whose client left.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/api/endpoint.h"

namespace fovea::serve {

/// What a line tells, as it becomes known.
struct LoggedRequest {
    struct Tokens {
        std::uint32_t n_prompt = 0, n_shared = 0, n_new = 0;  ///< n_shared of the prompt's, found in the cache
    };

    std::string id, method, path, user, model = {};
    Clock::time_point arrived = {};
    bool stream = false;
    std::vector<Tokens> of_choice = {};           ///< as far as they have come
    std::uint32_t n_each = 1;                     ///< choices for each prompt
    std::optional<Clock::time_point> first = {};  ///< when the first of an answer was there
    std::string asked = {};                       ///< the request's JSON, where texts are logged,
    std::shared_ptr<const void> taken = {};       ///< its place among all bodies,
    std::vector<std::string> answered = {};       ///< and the text of each choice
};

/// Lines go to the file's end. Used by one thread.
class RequestLog {
public:
    /// Throws host::Error where the file cannot be written. with_texts: lines have requests and answers too.
    RequestLog(const std::string& path, bool with_texts);
    [[nodiscard]] bool with_texts() const { return with_texts_; }
    /// Takes note of what a pass added.
    void add(LoggedRequest& request, const std::vector<Event>& events) const;
    /// status: the answer's; 499 where the client had left, as nginx has it. error: why it failed.
    void write(const LoggedRequest& request, int status, const std::string& error = {});

private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> file_;
    bool with_texts_;
};

}  // namespace fovea::serve

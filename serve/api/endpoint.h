// What may be asked of the server: a path and what it makes of a request. Every endpoint is a row of endpoints.inc, and a function
// in a file of its own.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/api/answer.h"
#include "serve/api/service.h"
#include "serve/jobs/job.h"

namespace fovea::serve {

/// A request, whatever it came by.
struct Call {
    std::string path, query, content_type;
    std::string body;         ///< of a file that is uploaded
    Json json;                ///< of what is posted otherwise
    std::string id;           ///< of its answer
    std::string user;         ///< whose turn its work is
    std::string ignored{};    ///< names of fields that are not known, with commas between them
    bool wants_hash = false;  ///< of the logits that an answer's tokens are chosen from
    bool deletes = false;     ///< what the path names
    bool stopping = false;    ///< the server takes no more work
    Clock::time_point arrived = Clock::now(), deadline = {};
    std::shared_ptr<const void> taken = {};  ///< the place of the body among all bodies
    ModelUse use = {};                       ///< of its model, once it is found
};

/// An answer that is there already; or a job, which is queued next, and what words its events.
struct Reply {
    int status = 200;
    std::string body = {};
    std::string content_type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers = {};
    JobPtr job = {};
    std::size_t model = 0;  ///< that computes the job
    std::unique_ptr<Answer> answer = {};
    bool stream = false;  ///< the answer is sent in pieces

    /// A header with the seed of the job, for who asked for any.
    void tell_seed() { headers.emplace_back("X-Fovea-Seed", std::to_string(job->sampler.seed)); }
};

/// POST, also of a file, which is longer than other bodies; GET, also without a key, or of what may be deleted, too.
enum class Access { post, upload, get, open, item };

struct Endpoint {
    std::string_view path;  ///< where one ends in '/', any name may follow
    Access access;
    /// Throws RequestError, AwaitedModel. By the thread that speaks HTTP, or the one that reads long requests.
    Reply (*begin)(Call& call, Service& service);
};

namespace endpoints {
#define FOVEA_ENDPOINT(path, access, function) Reply function(Call& call, Service& service);
#include "serve/api/endpoints.inc"
#undef FOVEA_ENDPOINT
}  // namespace endpoints

/// Null where no endpoint has this path.
[[nodiscard]] const Endpoint* find_endpoint(std::string_view path);
/// A whole answer of JSON.
[[nodiscard]] Reply reply_of(const Json& json);

/// A job with what the call says of it.
[[nodiscard]] JobPtr job_of(const Call& call);
[[nodiscard]] Reply reply_of(const Call& call, const ModelEntry& entry, JobPtr job, std::unique_ptr<Answer> answer,
                             bool stream);
/// What the exception under way says of a request.
[[nodiscard]] Failure current_failure();
/// Whether a request of Ollama's lets its model go: its keep_alive is 0, or a text such as "0s".
[[nodiscard]] bool lets_go(const Json& body);
/// The request's seed, or a random one, which a header of the reply tells.
[[nodiscard]] std::uint64_t drawn_seed(bool random, std::uint64_t seed);

}  // namespace fovea::serve

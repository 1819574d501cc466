#include "serve/api/endpoint.h"

#include <algorithm>
#include <random>

namespace fovea::serve {

const Endpoint* find_endpoint(std::string_view path) {
    static constexpr Endpoint kAll[] = {
#define FOVEA_ENDPOINT(path, access, function) {path, Access::access, endpoints::function},
#include "serve/api/endpoints.inc"
#undef FOVEA_ENDPOINT
    };
    const auto found = std::find_if(std::begin(kAll), std::end(kAll), [&](const Endpoint& endpoint) {
        const bool has_name = endpoint.path.size() > 1 && endpoint.path.ends_with('/');
        return has_name ? path.starts_with(endpoint.path) : path == endpoint.path;
    });
    return found == std::end(kAll) ? nullptr : found;
}

Reply reply_of(const Json& json) { return {.body = written(json)}; }

JobPtr job_of(const Call& call) {
    auto job = std::make_shared<Job>();
    job->user = call.user;
    job->arrived = call.arrived;
    job->deadline = call.deadline;
    return job;
}

Reply reply_of(const Call& call, const ModelEntry& entry, JobPtr job, std::unique_ptr<Answer> answer, bool stream) {
    Reply reply{.job = std::move(job), .model = entry.index, .answer = std::move(answer), .stream = stream};
    reply.headers.emplace_back("X-Request-Id", call.id);
    return reply;
}

Failure current_failure() {
    try {
        throw;
    } catch (const RequestError& error) {
        return {error.status, error.what(), error.param, error.code};
    } catch (const std::bad_alloc&) {
        return {503, "server: out of memory"};
    } catch (const std::exception& error) {
        return {500, error.what()};
    }
}

bool lets_go(const Json& body) {
    const auto time = body.find("keep_alive");
    if (time == body.end() || time->is_number()) return time != body.end() && *time == 0;
    if (!time->is_string()) return false;
    const std::string& text = time->get_ref<const std::string&>();
    return text.starts_with('0') && text.find_first_of("123456789") == text.npos;
}

std::uint64_t drawn_seed(bool random, std::uint64_t seed) { return random ? std::random_device{}() : seed; }

}  // namespace fovea::serve

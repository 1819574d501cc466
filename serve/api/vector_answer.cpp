#include "serve/api/vector_answer.h"

namespace fovea::serve {

std::string VectorAnswer::take(const Event& event) {
    std::vector<float>& vector = vectors_[event.choice];
    vector = shortened(event.vector, options_.n_dimensions);
    if (options_.unit_length) vector = with_length_1(std::move(vector));
    n_tokens_ += event.n_prompt;
    return {};
}

JobPtr vector_job(const Call& call, ModelEntry& entry, const VectorRequest& request) {
    const JobPtr job = job_of(call);
    job->prompts = entry.prompts.read(request);
    const std::uint32_t width = entry.served.vector_width();
    if (request.n_dimensions > width)
        throw RequestError(
            400,
            "dimensions: expected at most " + std::to_string(width) + ", got " + std::to_string(request.n_dimensions),
            "dimensions");
    return job;
}

VectorAnswerOptions vector_options(const Call& call, const ModelEntry& entry, const VectorRequest& request) {
    return {.id = call.id,
            .model = entry.served.name,
            .n_choices = static_cast<std::uint32_t>(request.prompts.size()),
            .n_dimensions = request.n_dimensions,
            .in_base64 = request.in_base64};
}

}  // namespace fovea::serve

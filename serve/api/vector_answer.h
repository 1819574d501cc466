// Answers made of vectors: embeddings, and the scores of texts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "serve/api/endpoint.h"

namespace fovea::serve {

struct VectorAnswerOptions {
    std::string id, model;
    std::uint32_t n_choices = 1;
    std::uint32_t n_dimensions = 0;  ///< of each vector; 0: all
    bool unit_length = false;        ///< each vector is divided by its length
    bool in_base64 = false;
};

/// Not a stream's: it is whole.
class VectorAnswer : public Answer {
public:
    explicit VectorAnswer(VectorAnswerOptions options)
        : Answer(options.n_choices), options_(std::move(options)), vectors_(options_.n_choices) {}

protected:
    [[nodiscard]] Json usage() const { return {{"prompt_tokens", n_tokens_}, {"total_tokens", n_tokens_}}; }

    const VectorAnswerOptions options_;
    std::vector<std::vector<float>> vectors_;
    std::uint64_t n_tokens_ = 0;  // of all texts

private:
    [[nodiscard]] std::string take(const Event& event) final;
};

/// A job for a request's vectors. Throws RequestError.
[[nodiscard]] JobPtr vector_job(const Call& call, ModelEntry& entry, const VectorRequest& request);
[[nodiscard]] VectorAnswerOptions vector_options(const Call& call, const ModelEntry& entry,
                                                 const VectorRequest& request);

}  // namespace fovea::serve

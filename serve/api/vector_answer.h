// Answers made of vectors: embeddings, the scores of texts, attention.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "serve/api/endpoint.h"

namespace fovea::serve {

/// What a job has given: a vector for each text.
struct Vectors {
    std::vector<std::vector<float>> all;
    std::uint64_t n_tokens = 0;  ///< of all texts
    [[nodiscard]] Json usage() const { return {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}; }
};

/// Not a stream's: it is whole.
class VectorAnswer final : public Answer {
public:
    /// What the body is made of them.
    using Word = std::function<Json(const Vectors&)>;
    /// `n_dimensions`: of each vector, which is divided by its length then; 0: all. `unit_length`: it is in any case. `n_kept`:
    /// bytes of the request that `word` has.
    VectorAnswer(std::uint32_t n_choices, Word word, std::uint32_t n_dimensions = 0, bool unit_length = false,
                 std::size_t n_kept = 0)
        : Answer(n_choices),
          word_(std::move(word)),
          n_dimensions_(n_dimensions),
          unit_length_(unit_length),
          n_kept_(n_kept) {
        vectors_.all.resize(n_choices);
    }
    [[nodiscard]] std::string whole() const override { return written(word_(vectors_)); }
    [[nodiscard]] std::size_t n_kept() const override { return n_kept_; }

private:
    [[nodiscard]] std::string take(const Event& event) override;

    const Word word_;
    const std::uint32_t n_dimensions_;
    const bool unit_length_;
    const std::size_t n_kept_;
    Vectors vectors_;
};

/// A job for the vectors of a request's texts, and its answer. Throws RequestError.
[[nodiscard]] Reply vector_reply(const Call& call, ModelEntry& entry, const VectorRequest& request, bool unit_length,
                                 VectorAnswer::Word word);

}  // namespace fovea::serve

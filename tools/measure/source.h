// Something for an encoder to read, the same on every machine: what certify and bench give models of two stacks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/encode.h"
#include "fovea/model.h"

namespace fovea {

/// n ids below vocab_size, in no order that a model could like.
[[nodiscard]] std::vector<Token> spread_tokens(std::size_t n, std::uint32_t vocab_size);

/// Whether it has an encoder, whose result its decoder reads, and logits token by token.
[[nodiscard]] bool has_two_stacks(const Config& config);

class Source {
public:
    /// Those ids or, where the encoder reads none, a window of sound or vectors. Throws host::Error, naming `name`.
    Source(const Model& model, std::vector<Token> ids, const std::string& name);

    [[nodiscard]] EncodeInput input() const;
    /// Rows of what the encoder makes of it.
    [[nodiscard]] std::uint32_t n_rows() const { return n_rows_; }

private:
    std::vector<Token> ids_;
    std::vector<float> vectors_;
    std::uint32_t length_ = 0, n_rows_ = 0;
};

}  // namespace fovea

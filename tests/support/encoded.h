// An encoder's results for an input, and its file's contents.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/encode.h"
#include "host/model/listing.h"
#include "tests/support/same_bits.h"
#include "tests/support/small_models.h"

namespace fovea::testing {

/// Its n_out numbers, of at most 60 rows of three sequences.
inline std::vector<float> encoded(const Model& model, const EncodeInput& in, std::size_t n_out,
                                  const char* isa = nullptr, std::uint32_t n_threads = 1, const Trace& trace = {}) {
    SmallSession s(model, {.max_batch = 60, .n_threads = n_threads, .max_sequences = 3}, isa);
    set_trace(s.session, trace);
    std::vector<float> out(n_out, NAN);
    const Status status = encode(s.session, in, out);
    CAPTURE(status.what);
    REQUIRE(status.ok());
    return out;
}

/// A model's tensors of f32, element by element.
class ElementReader {
public:
    explicit ElementReader(const Model& model) : model_(model) {
        for (const TensorInfo& t : tensors(model)) tensors_.emplace(std::pair(std::string(t.role), t.layer), t);
    }
    [[nodiscard]] double operator()(const std::string& role, std::uint32_t layer, std::uint64_t row,
                                    std::uint64_t col) const {
        const auto found = tensors_.find(std::pair(role, layer));
        if (found == tensors_.end()) FAIL("no tensor ", role);
        const TensorInfo& t = found->second;
        if (t.type != Type::f32) FAIL("no floats: ", role);
        const bool panels = std::string_view(t.layout) == "panels";
        const std::uint64_t at = panels ? (row / 16 * t.n_cols + col) * 16 + row % 16 : row * t.n_cols + col;
        float value;
        std::memcpy(&value, model_.bytes().data() + t.offset + at * sizeof value, sizeof value);
        return value;
    }

private:
    const Model& model_;
    std::map<std::pair<std::string, std::uint32_t>, TensorInfo> tensors_;
};

}  // namespace fovea::testing

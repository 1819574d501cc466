// A source's own model in memory, to see what it makes of a text.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "convert/calibrate/calibration_text.h"
#include "convert/writer/file_header.h"
#include "fovea/host/runtime.h"

namespace fovea {

/// Throws host::Error that names --calibrate where the status is not ok.
void need_calibration(Status status, const char* what);

/// The model's file, written to memory. Does not move.
struct ModelInMemory {
    FileHead head;
    AlignedBytes file;
    host::Opened opened;

    /// Weights of `type`; without one each as the source stores it.
    ModelInMemory(const ModelSource& source, std::optional<Type> type, std::uint32_t n_threads);
    ModelInMemory(const ModelInMemory&) = delete;
    ModelInMemory& operator=(const ModelInMemory&) = delete;

    /// The bytes of the tensor that `head` lists as number i.
    [[nodiscard]] std::byte* tensor(std::size_t i) noexcept {
        return file.data() + head.bytes.size() + head.records[i].offset;
    }
};

/// What a pass made of its tokens.
struct ReadPass {
    std::uint64_t n_tokens = 0;
    /// An encoder's vectors [n][d_model], one per text or, without pooling, per token; a decoder's logits
    /// [n_tokens][vocab_size], if they were asked for.
    std::span<float> results = {};
};

/// Reads texts: a decoder one after the other, an encoder as many in a pass as have room.
class TextReader {
public:
    /// Weights of `type`; without one each as the source stores it.
    TextReader(const ModelSource& source, std::optional<Type> type, std::uint32_t n_threads);

    [[nodiscard]] ModelInMemory& in_memory() noexcept { return in_memory_; }
    [[nodiscard]] Session& session() noexcept { return *session_; }
    /// Numbers of a result: an encoder's d_model, a decoder's vocabulary, or 0 without logits.
    [[nodiscard]] std::uint32_t result_width(bool with_logits) const noexcept;

    /// Calls `before` with the position of each pass's first row, and `after` with what the pass made. `with_logits` is for
    /// decoders; encoders always have results.
    void read(const Texts& texts, bool with_logits, const std::function<void(std::uint32_t first)>& before,
              const std::function<void(const ReadPass& pass)>& after);

private:
    ModelInMemory in_memory_;
    host::Runtime<Session> session_;
    bool decodes_;
    std::uint32_t batch_;
    std::vector<float> results_;
};

}  // namespace fovea

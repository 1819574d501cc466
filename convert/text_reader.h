// A source's own model in memory, to see what it makes of a text.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "convert/file_header.h"
#include "fovea/session.h"

namespace fovea {

/// Throws Refusal that names --calibrate where the status is not ok.
void need_calibration(Status status, const char* what);

/// The first `most` tokens of a text, all of them for 0. Throws Refusal: no tokenizer, or a text of less than two.
[[nodiscard]] std::vector<Token> text_tokens(const ModelSource& source, std::string_view text, std::uint32_t most);

/// The model, written to memory, and a session on it. Neither moves.
struct TextReader {
    static constexpr std::uint32_t kBatch = 128;   ///< tokens of a pass, at most
    static constexpr std::uint32_t kWindow = 512;  ///< tokens read as one text, at most

    FileHead head;
    AlignedBytes file, arena;
    Model model;
    Session session;
    std::uint32_t window = 0;  ///< kWindow, or the model's positions

    /// Weights of `type`; without one each as the source stores it.
    TextReader(const ModelSource& source, std::optional<Type> type, std::uint32_t n_threads);
    TextReader(const TextReader&) = delete;
    TextReader& operator=(const TextReader&) = delete;

    /// The bytes of the tensor that `head` lists as number i.
    [[nodiscard]] std::byte* tensor(std::size_t i) noexcept {
        return file.data() + head.bytes.size() + head.records[i].offset;
    }
};

}  // namespace fovea

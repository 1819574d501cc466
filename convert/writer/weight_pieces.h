// The weights section in pieces. Each can be made by itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convert/writer/file_header.h"

namespace fovea {

struct MadePiece {
    std::vector<std::byte> bytes;  ///< of the section, right behind the piece before
    std::uint32_t crc = 0;         ///< CRC-32C of those
    std::size_t tensor = 0;        ///< which of FileHead::specs it belongs to
    bool last = false;             ///< of that tensor
    QuantLoss loss;                ///< if it was quantized
};

/// Room that one thread needs while it makes a piece.
struct PieceScratch {
    std::vector<float> rows, panel;
    std::vector<QuantizedGroup> groups;
};

/// Some panels or rows of one tensor each, with the zeros that come before and behind. Source and head must outlive it.
class WeightPieces {
public:
    WeightPieces(const ModelSource& source, const FileHead& head, const Calibration* calibration);

    [[nodiscard]] std::uint64_t count() const noexcept { return first_.back(); }

    /// Makes one piece. Any number of threads may do so at a time, each with its own scratch, if source.read_rows and
    /// read_groups allow it. Throws host::Error if a weight is beyond the type's range, or whatever the source throws.
    void make(std::uint64_t piece, PieceScratch& scratch, MadePiece& made) const;

private:
    void make_quantized_panel(const TensorSpec& spec, Type type, std::uint32_t row, PieceScratch& scratch,
                              std::byte* panel, QuantLoss& loss) const;
    /// The weights of outlier columns, behind the panel's units.
    void put_outliers(const TensorSpec& spec, Type type, std::uint32_t row, PieceScratch& scratch,
                      std::byte* panel) const;
    void make_panel(const TensorSpec& spec, Type type, std::uint32_t row, PieceScratch& scratch,
                    std::byte* panel) const;

    const ModelSource& source_;
    const FileHead& head_;
    const Calibration* calibration_;
    std::vector<std::uint64_t> first_;  // of each tensor's pieces; behind them how many there are
};

}  // namespace fovea

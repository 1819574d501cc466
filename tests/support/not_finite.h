// Files with numbers that no writer writes: NaN and infinities.
#pragma once
#include <cstring>

#include "convert/writer/writer.h"

namespace fovea {

/// A number that random models don't have. Files get another in its place by `with_number`.
inline constexpr float kMarked = 0x1.abcdefp93f;

/// Writes a model whose numbers kMarked become `number`.
inline AlignedBytes with_number(float number, const ModelSource& source, const WriteOptions& options) {
    AlignedBytes file = write_bytes(source, options);
    auto* bytes = reinterpret_cast<unsigned char*>(file.data());
    for (std::size_t i = 0; i + sizeof number <= file.size(); i += sizeof number)
        if (std::memcmp(bytes + i, &kMarked, sizeof number) == 0) std::memcpy(bytes + i, &number, sizeof number);
    return file;
}

}  // namespace fovea

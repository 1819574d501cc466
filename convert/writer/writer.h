// Writes Fovea files, version 1, one panel at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "convert/weights/model_source.h"
#include "host/base/aligned_bytes.h"
#include "host/base/progress.h"

namespace fovea {

struct Calibration;  // convert/quantize/calibration.h

/// Identifies a tensor of a file.
using TensorKey = std::tuple<StackIndex, std::uint32_t, Role>;
[[nodiscard]] inline TensorKey key_of(const TensorSpec& spec) noexcept { return {spec.stack, spec.layer, spec.role}; }

/// A quantized type for each of some matrices; a table of token embeddings among them lies in panels.
using MatrixTypes = std::map<TensorKey, Type>;

/// Called after each quantized tensor with its quantization error: sqrt(Σ(error²) / Σ(weight²)), with a calibration the
/// same of its outputs.
using QuantReport = std::function<void(const TensorSpec& spec, Type type, double relative_error)>;

struct WriteOptions {
    Type type = Type::f32;      ///< of matrices and tables, but see stored_type in convert/quantize/quantize.h
    bool as_source = false;     ///< each matrix as ModelSource::type_of says, if the source has that
    bool exact_tables = false;  ///< with quantized types, tables that are only looked up are f32 instead of f16
    std::uint64_t weights_alignment = kWeightsAlignment;
    std::uint32_t n_threads = 1;         ///< with more, as many call source.read_rows and read_groups at the same time
    const MatrixTypes* types = nullptr;  ///< of those matrices, whatever `type` says; outlives the call
    const Calibration* calibration = nullptr;  ///< quantizes matrices by the inputs it has of them; outlives the call
    Progress progress = {};                    ///< called with bytes of the weights
    QuantReport quantized = {};
};

/// Writes `source` to a temporary file beside `path`, which becomes `path` only when it is whole and on the disk. The
/// same source gives the same bytes, and the same refusal, for any number of threads; `progress` and `quantized` are
/// called on the calling one. Throws host::Error, at once if there is no room for all of it, or the exception of
/// source.read_rows. The temporary file is then removed, as after a signal, and an older file at `path` is untouched.
void write_file(const ModelSource& source, const std::filesystem::path& path, const WriteOptions& options);

/// Bytes of the file that write_file would write.
[[nodiscard]] std::uint64_t file_bytes(const ModelSource& source, const WriteOptions& options);

/// The same bytes in memory.
[[nodiscard]] AlignedBytes write_bytes(const ModelSource& source, const WriteOptions& options);

/// Bytes from one panel to the next.
[[nodiscard]] std::uint64_t panel_stride_for(Type type, std::uint32_t n_cols, std::uint32_t n_outliers = 0) noexcept;

}  // namespace fovea

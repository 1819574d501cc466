// Which type each matrix gets, so that a file stays within a budget and the model loses least.
#pragma once
#include <cstdint>
#include <vector>

#include "convert/calibrate/calibration.h"
#include "convert/writer/writer.h"
#include "host/base/progress.h"

namespace fovea {

/// One of the two is given, the other 0.
struct Budget {
    double bits = 0;          ///< of a weight, over all weights of the file; 8·(their section's bytes) / their number
    std::uint64_t bytes = 0;  ///< of the whole file
};

/// What a matrix may become. Its choices ascend in bytes and descend in cost.
struct MatrixChoices {
    struct Choice {
        Type type = Type::q8;
        std::uint64_t bytes = 0;
        double cost = 0;
    };
    TensorSpec spec;
    std::vector<Choice> choices;
};

/// For each matrix the number of its choice: those of least cost in all whose bytes stay within `bytes`, as near as steps
/// along each matrix's lower convex hull come, the most gain for a byte first (Everett 1963: they are best for the bytes
/// that they take). Empty if the smallest take more. Equal gains are taken in the order of the matrices.
[[nodiscard]] std::vector<std::size_t> least_cost(const std::vector<MatrixChoices>& matrices, std::uint64_t bytes);

/// What a matrix became.
struct ChosenType {
    TensorSpec spec;
    Type type = Type::q8;
    double bits = 0;  ///< of a weight, with what panels add
    /// Estimated: with a calibration divergence in nats a token or, of an encoder, 1 − cosine; else share of weights, as
    /// they are presumed to matter, times squared relative error.
    double cost = 0;
};

struct BudgetOptions {
    Budget budget;
    const Calibration* calibration = nullptr;  ///< with its texts
    const Texts* texts = nullptr;
    std::uint32_t n_threads = 1;
    Progress progress = {};  ///< matrices whose cost is measured
};

/// Throws host::Error, with the least that would do, where no choice fits. `with_columns`: with the column scales that a
/// calibration may yet choose.
void check_budget(const ModelSource& source, WriteOptions write, const Budget& budget, bool with_columns);

/// Chooses among the quantized types for every matrix of `source`, a table of token embeddings too, and returns what
/// became of each; `write.types` is to be made of it (types_of). A matrix's cost in a type is the squared relative error
/// there times its sensitivity, which a calibration measures and which else is presumed. The same on any number of threads.
/// Throws host::Error as check_budget does.
[[nodiscard]] std::vector<ChosenType> choose_types(const ModelSource& source, const WriteOptions& write,
                                                   const BudgetOptions& options);

[[nodiscard]] MatrixTypes types_of(const std::vector<ChosenType>& chosen);

}  // namespace fovea

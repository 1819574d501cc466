// A GGUF file's tensors as rows of ours, each in the shape that the model's configuration calls for.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convert/formats/gguf.h"
#include "convert/sources/lora_file.h"
#include "convert/sources/lora_joiner.h"
#include "convert/weights/mapped_weights.h"

namespace fovea {

class GgufTensors {
public:
    explicit GgufTensors(Gguf file) : file_(std::move(file)) {}

    [[nodiscard]] const Gguf& file() const { return file_; }
    [[nodiscard]] bool has(const std::string& name) const { return file_.tensors().count(name) != 0; }
    /// Whether `view` was asked for it.
    [[nodiscard]] bool used(const std::string& name) const { return used_.count(name) != 0; }
    /// Throws "FILE: tensor NAME: WHY".
    [[noreturn]] void refuse(const std::string& name, const std::string& why) const;

    /// Adds an adapter's products, times its scale, to those of the tensors. Throws host::Error where the file lacks one.
    void add_products(const std::map<std::string, LowRank>& products, float scale);
    /// From now on `view` has an adapter's products in place of tensors.
    LoraJoiner& replace_by(std::map<std::string, LowRank> products) { return products_.emplace(std::move(products)); }
    [[nodiscard]] bool is_replaced() const { return products_.has_value(); }

    /// Rows [row_begin, row_begin + n_rows) of the tensor of that name, which has n_all, after checking it. With `in_rows` a
    /// vector is a matrix there, whose rows are so long; with `n_experts` a matrix has the rows of each one below the other.
    TensorView view(const std::string& name, bool vector, std::uint64_t n_cols, std::uint64_t row_begin,
                    std::uint64_t n_all, std::uint64_t in_rows = 0, std::uint64_t n_experts = 0);
    /// A vector of n numbers above 0.
    std::vector<float> divisors(const std::string& name, std::uint32_t n);

    /// Gives up the mappings, which views need.
    [[nodiscard]] std::vector<Mapping> release() { return file_.release(); }

private:
    Gguf file_;
    std::set<std::string> used_;
    std::map<std::string, std::vector<LowRank>> added_;  // by adapters that are merged
    std::optional<LoraJoiner> products_;                 // of an adapter's file
};

}  // namespace fovea

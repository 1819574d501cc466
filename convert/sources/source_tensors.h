// The assembler of models whose tensors have names: each is there in the shape that the configuration calls for, and none is left
// over.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convert/families/family.h"
#include "convert/formats/safetensors.h"
#include "convert/weights/mapped_weights.h"

namespace fovea {

/// What becomes of a tensor that nothing has viewed.
enum class Unviewed : std::uint8_t {
    refused,   ///< the model is another than the configuration says
    computed,  ///< it follows from the configuration: nothing is lost
    noted,     ///< the user is told, unless it is a copy of one that was viewed
};

/// "FILE: left out, as this model has no use for them: a, b, c and 5 more".
[[nodiscard]] std::string note_of_unused(const std::string& file, const std::vector<std::string>& names);

/// A format's own class says where the model's tensors are among the source's.
class SourceTensors {
public:
    SourceTensors(const SourceTensors&) = delete;
    SourceTensors& operator=(const SourceTensors&) = delete;
    virtual ~SourceTensors() = default;

protected:
    explicit SourceTensors(Safetensors files) : files_(std::move(files)) {}

    /// Gives weights_ the tensor that `spec` asks for, by one of its rules.
    virtual void add(const Stack& stack, const TensorSpec& spec) = 0;
    [[nodiscard]] virtual Unviewed without_view(const std::string&, const SourceTensor&) const {
        return Unviewed::refused;
    }

    /// Makes `source` read all that its config calls for. No tensor is left out in silence: Unviewed. Throws host::Error. The
    /// source keeps the mappings.
    void assemble(ModelSource& source);

    /// The tensor of that name, which must have that shape and, where one is given, that type of elements.
    const SourceTensor& shaped(const Safetensors& from, const std::string& name,
                               const std::vector<std::uint64_t>& wanted, std::string_view dtype = {});
    /// The elements of a tensor of floats, strides still to come; of a packed one nothing.
    TensorView floats(const Safetensors& from, const std::string& name, const std::vector<std::uint64_t>& wanted,
                      bool is_matrix);
    /// Every expert's part of one tensor: of floats [expert, column, row] or [expert, row, column], of a bias [expert, row],
    /// or MXFP4's two. `gated`: each has n_rows of a gate and as many of an up, in one tensor or in another of that name.
    std::function<TensorView(std::uint32_t i, bool up)> experts(const Block& block, const TensorSpec& spec,
                                                                const std::string& name, std::uint32_t n_rows,
                                                                bool gated, Within within,
                                                                const std::string& gate = "");
    [[noreturn]] static void refuse(const Safetensors& from, const std::string& name, const std::string& wanted,
                                    const std::string& got);

    /// Takes over what views of those tensors point into.
    void keep(Safetensors& files) {
        weights_.keep(std::move(files.mappings));
        weights_.keep(std::move(files.copies));
    }

    Safetensors files_;
    MappedWeights weights_;
    bool each_type_ = false;  // some are quantized: each matrix keeps its type

private:
    void check_unviewed(std::vector<std::string>& notes) const;
    std::function<TensorView(std::uint32_t i, bool up)> mxfp4_experts(const Block& block, const std::string& name,
                                                                      std::uint64_t n_rows, std::uint32_t n_cols,
                                                                      std::uint32_t step);

    std::set<std::string> used_;
    std::optional<Type> widest_;  // of the matrices; f32 where they differ
};

}  // namespace fovea

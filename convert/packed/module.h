// The tensors of one module of a quantized folder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "convert/formats/safetensors.h"
#include "convert/packed/packed.h"

namespace fovea {

/// Floats of a tensor by two indices, a row's and a group's.
struct Factors {
    const std::byte* data = nullptr;  // of any alignment
    Type type = Type::f32;            // f32, f16 or bf16
    std::uint64_t row_stride = 0, group_stride = 0;

    [[nodiscard]] float at(std::uint64_t row, std::uint64_t group) const noexcept;
};

/// A module's tensors by the last parts of their names. Tensors that were found make way for the matrix.
class PackedModule {
public:
    PackedModule(Safetensors& weights, std::string name) : weights_(weights), name_(std::move(name)) {}

    [[nodiscard]] const std::string& name() const { return name_; }
    /// Null if there is none.
    [[nodiscard]] const SourceTensor* peek(const std::string& part) const;
    /// One of those dtypes; its shape has `rank` sizes, none of them 0. Throws host::Error.
    const SourceTensor& find(const std::string& part, std::initializer_list<const char*> dtypes, std::size_t rank);
    /// A tensor of floats of one of those shapes, [rows, groups] or, `turned`, the reverse. A shape may have fewer than
    /// two sizes: missing ones are 1, and a dimension of size 1 is repeated.
    Factors find_factors(const std::string& part, const std::vector<std::vector<std::uint64_t>>& shapes,
                         bool turned = false);
    /// Drops a tensor that serving needs and weights do not, if it is there.
    void drop(const std::string& part) {
        if (peek(part)) taken_.push_back(name_ + "." + part);
    }
    /// Throws host::Error unless the tensor's shape is that.
    void need_shape(const std::string& part, const SourceTensor& tensor, const std::vector<std::uint64_t>& shape) const;
    [[noreturn]] void refuse(const std::string& part, const std::string& words) const;

    /// Takes the places of the tensors that were found.
    void replace(std::uint64_t n_rows, std::uint64_t n_cols, PackedMatrix matrix);

private:
    Safetensors& weights_;
    std::string name_;
    std::vector<std::string> taken_;
};

/// Calls `unpack` for every module that has a tensor `part` of that dtype.
void for_each_packed(Safetensors& weights, const std::string& part, const char* dtype,
                     const std::function<void(PackedModule&)>& unpack);

}  // namespace fovea

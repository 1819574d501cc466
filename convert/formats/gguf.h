// GGUF files, versions 2 and 3: metadata and tensors as they lie in the mapped file, checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/formats/gguf_blocks.h"
#include "fovea/mapping.h"

namespace fovea {

/// How a value of the metadata is stored. The numbers stand in the file.
enum class GgufKind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

/// A value in place: a number's bytes, a text's, or a list's elements one after another. Within the file.
struct GgufValue {
    GgufKind kind = GgufKind::u8;
    GgufKind element = GgufKind::u8;  ///< of a list; never a list itself
    std::uint64_t n = 1;              ///< elements of a list
    std::span<const std::byte> bytes;
};

struct GgufTensor {
    const GgufBlocks* blocks = nullptr;
    /// Row-major, without outer sizes of 1: 1 to 4 numbers of at least 1, the last a multiple of a block.
    std::vector<std::uint64_t> shape;
    const std::byte* data = nullptr;  ///< all of it is in the file
};

/// A shape as GGUF knows it. All of its tensors have four sizes, of which writers leave out some that are 1.
[[nodiscard]] std::vector<std::uint64_t> without_outer_ones(std::vector<std::uint64_t> shape);

/// A file's metadata and tensors. The header's counts are checked against the bytes of the file. Reading a value throws
/// host::Error, "FILE: KEY: expected …, got …", if it is missing or of another kind than asked for.
class Gguf {
public:
    /// Throws host::Error naming `path`. The result keeps the mapping.
    Gguf(const std::filesystem::path& path, Mapping mapping);

    [[nodiscard]] bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
    /// Whether the value is a list of elements of that kind.
    [[nodiscard]] bool has_list(std::string_view key, GgufKind element) const;
    /// A whole number in [least, most]; of a list, the one number that all its elements are.
    [[nodiscard]] std::uint32_t count(std::string_view key, std::uint32_t least = 1,
                                      std::uint32_t most = 0xffffffffu) const;
    /// n whole numbers in [least, most], one for each layer: a list of them, or one for all. A list may have n_more behind them,
    /// which are left out.
    [[nodiscard]] std::vector<std::uint32_t> counts(std::string_view key, std::uint32_t n, std::uint32_t least,
                                                    std::uint32_t most, std::uint32_t n_more = 0) const;
    [[nodiscard]] std::uint32_t count_or(std::string_view key, std::uint32_t otherwise) const;
    /// A finite number in [least, most].
    [[nodiscard]] double number(std::string_view key, double least, double most) const;
    [[nodiscard]] double number_or(std::string_view key, double least, double most, double otherwise) const;
    [[nodiscard]] bool flag_or(std::string_view key, bool otherwise) const;
    [[nodiscard]] std::string text(std::string_view key) const;
    [[nodiscard]] std::string text_or(std::string_view key, const std::string& otherwise) const;
    /// How many elements the list of that kind has.
    [[nodiscard]] std::uint64_t list_size(std::string_view key, GgufKind element) const;
    /// Calls `take` with each text of a list.
    void for_each_text(std::string_view key, const std::function<void(std::string_view)>& take) const;
    /// The bytes of a list of numbers of that kind.
    [[nodiscard]] std::span<const std::byte> list_bytes(std::string_view key, GgufKind element) const;

    [[nodiscard]] const std::map<std::string, GgufTensor, std::less<>>& tensors() const { return tensors_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// Throws "FILE: PLACE: expected WANTED, got …", with the metadata's value at `place`; nothing if that is no key.
    [[noreturn]] void refuse(std::string_view place, const std::string& wanted) const;
    /// Takes over another part's tensors, with its mapping. Throws host::Error if one is there already.
    void take_tensors(Gguf part);
    /// Gives up the mappings, which views of the tensors need.
    [[nodiscard]] std::vector<Mapping> release();

private:
    friend class GgufParser;
    [[nodiscard]] const GgufValue& value(std::string_view key, const std::string& wanted) const;

    std::filesystem::path path_;
    Mapping mapping_;
    std::vector<Mapping> others_;  // of parts whose tensors were taken over
    std::map<std::string, GgufValue, std::less<>> values_;
    std::map<std::string, GgufTensor, std::less<>> tensors_;
};

}  // namespace fovea

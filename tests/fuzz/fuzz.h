// What the fuzz targets share. Each tests/fuzz/NAME.cpp is one target: FOVEA_FUZZ_TARGET(NAME) and what it needs.
//
// Built with Clang and -fsanitize=fuzzer each is a program that searches (`./dev fuzz NAME`); built with any compiler and replay.cpp
// all are one program, which runs the seeds and the regression files of the suite.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "convert/open/convert.h"
#include "convert/writer/writer.h"
#include "host/base/error.h"
#include "host/model/parameters.h"

#ifdef FOVEA_FUZZ
#define FOVEA_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define FOVEA_FUZZ_TARGET(name)                                                                           \
    static int fuzz_##name(const std::uint8_t* data, std::size_t size);                                   \
    [[maybe_unused]] static const auto added_##name = fovea::fuzz::targets().emplace(#name, fuzz_##name); \
    static int fuzz_##name(const std::uint8_t* data, std::size_t size)
#endif

namespace fovea::fuzz {

/// The targets of a program that replays. An input's bytes go to one of them, which returns 0.
using Target = int(const std::uint8_t* data, std::size_t size);
std::map<std::string, Target*>& targets();

/// Ends the process where what the engine promises does not hold.
inline void promise(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

/// Bytes taken from the front of an input as they are needed; zeros once it is used up.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
    template<class T>
    T take() {
        T value{};
        const std::size_t n = std::min(sizeof value, size_);
        if (n) std::memcpy(&value, data_, n);
        data_ += n;
        size_ -= n;
        return value;
    }
    [[nodiscard]] std::string_view rest() const { return {reinterpret_cast<const char*>(data_), size_}; }

private:
    const std::uint8_t* data_;
    std::size_t size_;
};

/// The input as a file, for what opens files: under this path, search/mapping.cpp finds these bytes.
struct Held {
    std::string path;
    std::string_view bytes;
};
inline Held held;

/// A folder of this process alone, gone with it, with one file that holds the input: on the disk where seeds are
/// replayed; where a target searches only its name is there.
class Scratch {
public:
    explicit Scratch(const std::string& name)
        : folder_(std::filesystem::temp_directory_path() / ("fovea-fuzz-" + std::to_string(getpid()))),
          path_(folder_ / name) {
        std::filesystem::create_directories(folder_);
        promise(std::ofstream(path_).good(), "a file can be made");
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    const std::filesystem::path& holding(const std::uint8_t* data, std::size_t size) const {
        held = {path_.string(), {reinterpret_cast<const char*>(data), size}};
#ifndef FOVEA_FUZZ
        std::ofstream file(path_, std::ios::binary);
        promise(file.write(held.bytes.data(), static_cast<std::streamsize>(size)).flush().good(), "it holds the input");
#endif
        return path_;
    }
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

private:
    std::filesystem::path folder_, path_;
};

/// Which kind of source an input is part of: that of the first name, of pairs of a name and a kind, that is in the bytes.
inline std::string kind_of(const std::uint8_t* data, std::size_t size,
                           std::initializer_list<std::pair<std::string_view, const char*>> kinds) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& [name, kind] : kinds)
        if (text.find(name) != text.npos) return kind;
    return "llama";
}

inline constexpr std::uint64_t kMostWritten = 1 << 17;  // parameters

/// Reads a source and, unless it asks for a large model, writes it in memory: every tensor is then read.
inline void read_and_write(const ConvertOptions& options) {
    try {
        const ModelSource source = read_source(options);
        if (count_parameters(source.config).total < kMostWritten) (void)write_bytes(source, {.type = source.type});
    } catch (const host::Error&) {  // what a hostile file should get
    }
}

#ifdef FOVEA_FUZZ
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// For a target's LLVMFuzzerCustomMutator: three changes in four are to the first `front` bytes, where what a parser
/// reads is, rather than to the weights that follow; those keep their place.
inline std::size_t mutate_front(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed,
                                std::size_t front) {
    if (!(seed & 3) || front >= size || !front) return LLVMFuzzerMutate(data, size, max_size);
    (void)LLVMFuzzerMutate(data, front, front);
    return size;
}
#endif

}  // namespace fovea::fuzz

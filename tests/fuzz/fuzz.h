// What the fuzz targets share. Each tests/fuzz/NAME.cpp is one target: LLVMFuzzerTestOneInput and what it needs.
//
// Built with Clang and -fsanitize=fuzzer it searches (`./dev fuzz NAME`); built with any compiler and replay.cpp it
// runs the seeds and the regression files of the suite.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "convert/convert.h"
#include "convert/writer.h"
#include "parameters.h"
#include "refusal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fovea::fuzz {

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
        auto* bytes = reinterpret_cast<std::uint8_t*>(&value);
        for (std::size_t i = 0; i < sizeof value && size_; ++i, ++data_, --size_) bytes[i] = *data_;
        return value;
    }
    [[nodiscard]] std::string_view rest() const { return {reinterpret_cast<const char*>(data_), size_}; }

private:
    const std::uint8_t* data_;
    std::size_t size_;
};

/// A folder of this process alone, gone with it, with one file that is rewritten in place: making a file, or a mapping of
/// what is on a disk, takes longer than most inputs do.
class Scratch {
public:
    explicit Scratch(const std::string& name)
        : folder_(std::filesystem::temp_directory_path() / ("fovea-fuzz-" + std::to_string(getpid()))),
          path_(folder_ / name) {
        std::filesystem::create_directories(folder_);
        descriptor_ = open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        close(descriptor_);
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    const std::filesystem::path& holding(const std::uint8_t* data, std::size_t size) const {
        const bool held = ftruncate(descriptor_, static_cast<off_t>(size)) == 0 &&
                          pwrite(descriptor_, data, size, 0) == static_cast<ssize_t>(size);
        promise(held, "the input is in a file");
        return path_;
    }

private:
    std::filesystem::path folder_, path_;
    int descriptor_ = -1;
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
    } catch (const Refusal&) {  // what a hostile file should get
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

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

/// A folder of this process alone, gone with it.
class Scratch {
public:
    Scratch() : path_(std::filesystem::temp_directory_path() / ("fovea-fuzz-" + std::to_string(getpid()))) {
        std::filesystem::create_directories(path_);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path file(const std::string& name, std::string_view bytes) const {
        const std::filesystem::path path = path_ / name;
        std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return path;
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

inline const Scratch& scratch() {
    static const Scratch folder;
    return folder;
}

/// Reads a source and, unless it asks for a large model, writes it in memory: every tensor is then read.
inline void read_and_write(const ConvertOptions& options) {
    try {
        const ModelSource source = read_source(options);
        if (count_parameters(source.config).total < 1u << 18) (void)write_bytes(source, {.type = source.type});
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

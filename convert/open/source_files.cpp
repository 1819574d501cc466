#include "convert/open/source_files.h"

#include <algorithm>
#include <string_view>

#include "convert/formats/gguf_split.h"
#include "convert/open/hub_cache.h"
#include "host/base/output_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// Endings of what a model's folder consists of.
constexpr std::string_view kSourceEndings[] = {".bin", ".gguf", ".jinja", ".json",        ".merges",   ".model",
                                               ".pt",  ".pth",  ".py",    ".safetensors", ".tiktoken", ".txt"};

std::vector<fs::path> files_of_folder(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (at.depth() >= 1 || at->path().filename().string().starts_with('.')) at.disable_recursion_pending();
        if (at->is_regular_file(error)) files.push_back(at->path());
        error.clear();
    }
    return files;
}

}  // namespace

std::vector<fs::path> source_files(const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) return files_of_folder(path);
    if (path.extension() == ".safetensors") return files_of_folder(path.has_parent_path() ? path.parent_path() : ".");
    return gguf_parts(path);
}

void keep_source(const std::string& path) {
    keep_from_writing(path);
    for (const fs::path& file : source_files(find_source(path)))
        if (std::count(std::begin(kSourceEndings), std::end(kSourceEndings), file.extension().string()))
            keep_from_writing(file.string());
}

}  // namespace fovea

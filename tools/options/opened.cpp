#include "tools/options/opened.h"

#include <filesystem>

#include "tools/options/ranks.h"
#include "tools/terminal/progress.h"

extern "C" {
// tools/demo/demo.S
extern const std::byte fovea_demo_model_begin[];
extern const std::byte fovea_demo_model_end[];
}

namespace fovea {
namespace {

/// The file of this rank's part, where it lies in the place of the whole.
std::string file_of_rank(const std::string& path) {
    const Ranks* ranks = joined_ranks();
    std::error_code error;
    if (!ranks || std::filesystem::exists(path, error)) return path;
    const std::string part = path + "." + std::to_string(ranks->rank) + "of" + std::to_string(ranks->n_ranks);
    return std::filesystem::exists(part, error) ? part : path;
}

}  // namespace

std::span<const std::byte> demo_model_bytes() noexcept { return {fovea_demo_model_begin, fovea_demo_model_end}; }

host::Opened open_path(const std::string& path, const OpenOptions& options) {
    // What is converted on the way lies in a cache, which ranks of one machine share.
    return first_rank_first(
        [&] { return host::open(file_of_rank(path), options, progress_line("converting " + path)); });
}

host::Opened open_path_or_demo(const std::string& path, const OpenOptions& options) {
    return path.empty() ? host::open_bytes(demo_model_bytes(), "demo", options) : open_path(path, options);
}

}  // namespace fovea

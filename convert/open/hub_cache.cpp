#include "convert/open/hub_cache.h"

#include <cstdlib>
#include <fstream>

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// A folder that an environment variable names; empty without one.
fs::path folder_of(const char* variable, const char* within) {
    const char* value = std::getenv(variable);
    return value && *value ? fs::path(value) / within : fs::path();
}

/// As huggingface_hub finds it.
fs::path hub_cache() {
    static constexpr std::pair<const char*, const char*> kPlaces[] = {{"HF_HUB_CACHE", ""},
                                                                      {"HUGGINGFACE_HUB_CACHE", ""},  // its older name
                                                                      {"HF_HOME", "hub"},
                                                                      {"XDG_CACHE_HOME", "huggingface/hub"},
                                                                      {"HOME", ".cache/huggingface/hub"}};
    for (const auto& [variable, within] : kPlaces)
        if (fs::path folder = folder_of(variable, within); !folder.empty()) return folder;
    return {};
}

/// The first line of a file, which is short.
std::string line_of(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

}  // namespace

bool is_hub_name(const std::string& path) {
    std::error_code ignored;
    const std::size_t slash = path.find('/');
    return slash != path.npos && slash && slash + 1 < path.size() && path.find('/', slash + 1) == path.npos &&
           path[0] != '.' && path[0] != '~' && !fs::exists(path.substr(0, slash), ignored);
}

std::filesystem::path find_source(const fs::path& path) {
    std::string name = path.string();
    std::error_code ignored;
    const fs::path cache = hub_cache();
    if (cache.empty() || fs::exists(path, ignored) || !is_hub_name(name)) return path;
    name.replace(name.find('/'), 1, "--");
    const fs::path folder = cache / ("models--" + name);
    const std::string revision = line_of(folder / "refs" / "main");
    const fs::path found = folder / "snapshots" / revision;
    return !revision.empty() && revision.find('/') == revision.npos && fs::is_directory(found, ignored) ? found : path;
}

}  // namespace fovea

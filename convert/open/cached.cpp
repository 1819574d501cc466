#include "convert/open/cached.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "convert/formats/gguf_split.h"
#include "engine/format/format.h"
#include "fovea/mapping.h"
#include "fovea/model.h"
#include "fovea/version.h"
#include "host/base/file_error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// Raised where conversions of the same source come to something else, so that what older programs made is not used.
constexpr int kConversions = 4;

/// FNV-1a with 64 bits (Fowler, Noll, Vo), in hexadecimal. Two starts give two hashes of one text.
std::string hashed(const std::string& text, std::uint64_t start) {
    std::uint64_t hash = 0xcbf29ce484222325u ^ start;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    return digits;
}

std::string absolute_path(const fs::path& path) {
    std::error_code error;
    const fs::path canonical = fs::canonical(path, error);
    if (error) throw host::FileError(path.string(), system_error(error.value()), error.value());
    return canonical.string();
}

/// A line with a file's size and time, links followed.
std::string state_of_file(const fs::path& path) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path, error);
    if (error) return {};
    const auto time = fs::last_write_time(path, error).time_since_epoch().count();
    if (error) return {};
    return path.string() + '\0' + std::to_string(size) + '\0' + std::to_string(time) + '\n';
}

/// Every file of a folder and of the folders in it, where sentence-transformers keeps parts of a model.
std::string state_of_folder(const fs::path& folder) {
    std::vector<std::string> states;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (at.depth() >= 1 || at->path().filename().string().starts_with('.')) at.disable_recursion_pending();
        if (at->is_regular_file(error)) states.push_back(state_of_file(at->path()));
        error.clear();
    }
    std::sort(states.begin(), states.end());
    std::string all;
    for (const std::string& state : states) all += state;
    return all;
}

std::string state_of(const fs::path& path) {
    std::error_code error;
    if (path.empty()) return "\n";
    if (fs::is_directory(path, error)) return state_of_folder(path);
    // Beside weights lie the files that say what they are.
    if (path.extension() == ".safetensors") return state_of_folder(path.parent_path());
    std::string all;
    for (const fs::path& part : gguf_parts(path)) all += state_of_file(part);
    return all;
}

void make_folder(const fs::path& folder) {
    std::error_code error;
    if (fs::is_directory(folder, error)) return;
    fs::create_directories(folder, error);
    if (error) throw host::FileError(folder.string(), "cannot be made: " + system_error(error.value()), error.value());
    fs::permissions(folder, fs::perms::owner_all, error);  // as the XDG base directory specification has it
}

/// A file that is there and can be opened; what a full disk or a meddler left is made anew.
bool is_whole(const fs::path& file) {
    std::error_code error;
    if (!fs::exists(file, error)) return false;
    Mapping mapping;
    Model model;
    return map_file(file.c_str(), mapping).ok() && open_model(mapping.bytes(), model).ok();
}

/// What the same source was before it changed. Who has such a file mapped keeps it.
void remove_older(const fs::path& file, const std::string& prefix) {
    std::error_code error;
    for (fs::directory_iterator at(file.parent_path(), error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        if (name.starts_with(prefix) && name.ends_with(".fovea") && at->path() != file) fs::remove(at->path(), ignored);
    }
}

}  // namespace

fs::path cache_folder() {
    const auto named = [](const char* variable) {
        const char* value = std::getenv(variable);
        return fs::path(value ? value : "");
    };
    // A relative path is to be ignored (XDG base directory specification).
    if (const fs::path cache = named("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "fovea";
    if (const fs::path home = named("HOME"); home.is_absolute()) return home / ".cache" / "fovea";
    throw host::Error("cache folder: expected XDG_CACHE_HOME or HOME in the environment, got neither");
}

fs::path cached_file(ConvertOptions options, const std::function<void(const fs::path&)>& made) {
    const std::string source = absolute_path(options.source);
    const auto beside = [](const fs::path& path) { return path.empty() ? std::string() : absolute_path(path); };
    const std::string tokenizer = beside(options.tokenizer), config = beside(options.config);
    const std::string what =
        source + '\0' + (options.type ? type_name(*options.type) : "as source") + '\0' + tokenizer + '\0' + config;
    const std::string state = std::string(FOVEA_VERSION) + ' ' + std::to_string(kFormatMajor) + '.' +
                              std::to_string(kFormatMinor) + ' ' + std::to_string(kConversions) + '\n' +
                              state_of(source) + state_of(tokenizer) + state_of(config);
    std::string prefix = fs::path(source).filename().string();
    if (prefix.size() > 80) prefix.resize(80);
    prefix += "-" + hashed(what, 0) + "-";
    const fs::path folder = cache_folder();
    options.output = folder / (prefix + hashed(state, 0) + hashed(what + state, 1) + ".fovea");
    if (is_whole(options.output)) return options.output;
    std::error_code ignored;
    fs::remove(options.output, ignored);  // what is left of one
    make_folder(folder);
    convert_source(options);
    remove_older(options.output, prefix);
    made(options.output);
    return options.output;
}

}  // namespace fovea

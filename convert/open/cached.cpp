#include "convert/open/cached.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "convert/open/source_files.h"
#include "engine/format/format.h"
#include "fovea/checksum.h"
#include "fovea/mapping.h"
#include "fovea/model.h"
#include "fovea/version.h"
#include "host/base/file_error.h"
#include "host/base/hash.h"
#include "host/base/unfinished.h"
#include "host/base/words.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// Raised where conversions of the same source come to something else, so that what older programs made is not used.
constexpr int kConversions = 7;

/// Two starts give two hashes of one text.
std::string hashed(const std::string& text, std::uint64_t start) { return hex(hash_text(text, kHashSeed ^ start)); }

std::string absolute_path(const fs::path& path) {
    std::error_code error;
    const fs::path canonical = fs::canonical(path, error);
    if (error) throw host::FileError(path.string(), system_error(error.value()), error.value());
    return canonical.string();
}

/// A checksum of a file's beginning, middle and end. Images of file systems that are made reproducibly give another file of
/// that size the same times and number.
std::uint32_t sampled(const fs::path& path, std::uintmax_t size) {
    constexpr std::uintmax_t kSample = 4096;  // bytes
    std::ifstream file(path, std::ios::binary);
    std::uint32_t crc = 0;
    for (const std::uintmax_t at : {std::uintmax_t{0}, size / 2, size - std::min(size, kSample)}) {
        char bytes[kSample];
        file.clear();
        file.seekg(static_cast<std::streamoff>(at));
        file.read(bytes, kSample);
        crc = crc32c(std::as_bytes(std::span(bytes, static_cast<std::size_t>(file.gcount()))), crc);
    }
    return crc;
}

/// A line that another file of that name would have otherwise, links followed: `cp -p` keeps size and time of writing, but
/// not the time of change.
std::string state_of_file(const fs::path& path) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) return {};
#if defined(__APPLE__)
    const timespec written = file.st_mtimespec, changed = file.st_ctimespec;
#else
    const timespec written = file.st_mtim, changed = file.st_ctim;
#endif
    const auto size = static_cast<std::uintmax_t>(file.st_size);
    std::string line = path.string();
    for (const auto number : {size, static_cast<std::uintmax_t>(file.st_ino), std::uintmax_t{sampled(path, size)}})
        line += '\0' + std::to_string(number);
    for (const timespec& time : {written, changed})
        line += '\0' + std::to_string(time.tv_sec) + '.' + std::to_string(time.tv_nsec);
    return line + '\n';
}

std::string state_of(const fs::path& path) {
    if (path.empty()) return "\n";
    std::vector<std::string> states;
    for (const fs::path& file : source_files(path)) states.push_back(state_of_file(file));
    std::sort(states.begin(), states.end());
    std::string all;
    for (const std::string& state : states) all += state;
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

constexpr std::chrono::hours kDay(24), kUnused = 30 * kDay;

fs::file_time_type::duration age_of(const fs::path& file) {
    std::error_code error;
    const auto written = fs::last_write_time(file, error);
    return error ? fs::file_time_type::duration{} : fs::file_time_type::clock::now() - written;
}

/// A conversion's time of writing is that of its last use, to a day.
void note_use(const fs::path& file) {
    std::error_code ignored;
    if (age_of(file) > kDay) fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
}

/// What the same source was before it changed, and conversions of it by other versions that nobody has used for a month. Who
/// has such a file mapped keeps it.
void remove_older(const fs::path& file, const std::string& of_source, const std::string& of_version) {
    std::error_code error;
    for (fs::directory_iterator at(file.parent_path(), error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (!name.starts_with(of_source) || !name.ends_with(".fovea") || at->path() == file) continue;
        std::error_code ignored;
        if (name.starts_with(of_version) || age_of(at->path()) > kUnused) fs::remove(at->path(), ignored);
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
    const std::string version = std::string(FOVEA_VERSION) + ' ' + std::to_string(kFormatMajor) + '.' +
                                std::to_string(kFormatMinor) + ' ' + std::to_string(kConversions) + '\n';
    const std::string state = state_of(source) + state_of(tokenizer) + state_of(config);
    std::string of_source = fs::path(source).filename().string();
    if (of_source.size() > 80) of_source.resize(80);
    of_source += "-" + hashed(what, 0) + "-";
    const std::string of_version = of_source + hashed(version, 0) + "-";
    const fs::path folder = cache_folder();
    options.output = folder / (of_version + hashed(state, 0) + hashed(what + state, 1) + ".fovea");
    if (is_whole(options.output)) {
        note_use(options.output);
        return options.output;
    }
    std::error_code ignored;
    fs::remove(options.output, ignored);  // what is left of one
    make_folder(folder);
    remove_left_parts(folder, of_source, [](const fs::path&) { return true; });  // nobody else writes there
    convert_source(options);
    remove_older(options.output, of_source, of_version);
    made(options.output);
    return options.output;
}

}  // namespace fovea

#include "bindings/c/handles.h"

#include <cstdlib>
#include <new>
#include <stdexcept>
namespace fovea::host_c {
namespace {

std::string& error_line() {
    static thread_local std::string line;
    return line;
}

int say(int code, const char* line) noexcept {
    try {
        error_line() = line;
    } catch (...) {
        error_line().clear();
    }
    return code;
}

}  // namespace

int run_caught(void (*work)(void*), void* context) noexcept try {
    work(context);
    return FOVEA_HOST_OK;
} catch (const Cancelled&) {
    return say(FOVEA_HOST_CANCELLED, "ended by the caller");
} catch (const host::ArgumentError& error) {
    return say(FOVEA_HOST_ARGUMENT, error.what());
} catch (const std::bad_alloc&) {
    return say(FOVEA_HOST_NO_MEMORY, "out of memory");
} catch (const std::exception& error) {
    return say(FOVEA_HOST_FAILED, error.what());
} catch (...) {
    return say(FOVEA_HOST_FAILED, "unknown failure");
}

void check(const fovea_status& status, const std::string& subject) {
    if (status.code == FOVEA_OK) return;
    char line[256];
    fovea_describe(status, line, sizeof line);
    throw host::Error(subject + ": " + line);
}

void* take_memory(std::size_t n_bytes) {
    void* memory = std::malloc(std::max<std::size_t>(n_bytes, 1));
    if (!memory) throw std::bad_alloc();
    return memory;
}

char* copy_of(std::string_view text) {
    auto* copy = static_cast<char*>(take_memory(text.size() + 1));
    if (!text.empty()) std::memcpy(copy, text.data(), text.size());
    copy[text.size()] = 0;
    return copy;
}

}  // namespace fovea::host_c

extern "C" {

const char* fovea_host_error(void) { return fovea::host_c::error_line().c_str(); }
void fovea_host_free(void* memory) { std::free(memory); }
}

// What the handles of fovea_host.h are, and how its functions end.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/fovea_host.h"
#include "fovea/host/chat.h"
#include "fovea/host/form.h"
#include "fovea/host/opened.h"
#include "fovea/host/texts.h"

namespace fovea::host_c {

/// An opened file for the engine's C functions. It stays where it is.
struct EngineModel {
    explicit EngineModel(const host::OpenedFile& file);
    EngineModel(const EngineModel&) = delete;
    EngineModel& operator=(const EngineModel&) = delete;

    fovea_model* model = nullptr;  // in memory
    alignas(8) std::byte memory[FOVEA_MODEL_BYTES];
};

}  // namespace fovea::host_c

struct fovea_host_model {
    explicit fovea_host_model(fovea::host::Opened made);

    const fovea::host::Opened opened;
    const fovea::host_c::EngineModel engine;
    std::deque<fovea::host_c::EngineModel> adapters;
    std::optional<fovea::Head> head;
    const fovea::host::Forms forms{opened};

    /// The model's chat template, read when it is first wanted. Throws what ModelChat::of does.
    [[nodiscard]] const fovea::ModelChat& chat() const;

private:
    mutable std::once_flag chat_made_;
    mutable std::optional<fovea::ModelChat> chat_;
};

namespace fovea::host_c {

/// A callback of the caller's wants no more.
struct Cancelled {};

/// Runs `work` and makes of what it throws a result and this thread's line.
int run_caught(void (*work)(void*), void* context) noexcept;
template<class Work>
int run(Work work) noexcept {
    return run_caught([](void* context) { (*static_cast<Work*>(context))(); }, &work);
}

/// A caller's struct of perhaps another size: fields that it lacks are zero. Throws host::ArgumentError where it has further
/// ones that are not zero. `given` may be null.
template<class Struct>
[[nodiscard]] Struct read_struct(const Struct* given) {
    Struct own{};
    if (!given) return own;
    const std::size_t n = given->struct_size;
    const auto* bytes = reinterpret_cast<const char*>(given);
    if (n < sizeof given->struct_size || n > 1024)
        throw host::ArgumentError("struct_size: expected 4 to 1024, got " + std::to_string(n));
    if (n > sizeof own && std::any_of(bytes + sizeof own, bytes + n, [](char byte) { return byte != 0; }))
        throw host::ArgumentError("struct_size: expected zeros behind the fields that this version has, got others");
    std::memcpy(&own, bytes, std::min(n, sizeof own));
    return own;
}

/// Throws host::ArgumentError where a pointer that must not be is null.
template<class Pointer>
Pointer need(Pointer pointer, const char* name) {
    if (!pointer) throw host::ArgumentError(std::string(name) + ": expected a pointer, got NULL");
    return pointer;
}
/// An array of n values; null if n is 0.
template<class Value>
[[nodiscard]] std::span<Value> need_array(Value* values, std::size_t n, const char* name) {
    return {n ? need(values, name) : values, n};
}
/// A text that may be null.
[[nodiscard]] inline std::string_view or_empty(const char* text) { return text ? text : ""; }

/// Throws host::Error unless `status` is FOVEA_OK.
void check(const fovea_status& status, const std::string& subject);

/// Memory that fovea_host_free gives back, with the same contents. Throws std::bad_alloc.
[[nodiscard]] void* take_memory(std::size_t n_bytes);
template<class Value>
[[nodiscard]] Value* copy_of(std::span<const Value> values) {
    auto* copy = static_cast<Value*>(take_memory(values.size_bytes()));
    if (!values.empty()) std::memcpy(copy, values.data(), values.size_bytes());
    return copy;
}
/// With a zero byte behind it.
[[nodiscard]] char* copy_of(std::string_view text);

/// One block of memory: structs, and the texts that they point to.
class TextBlock {
public:
    TextBlock(std::size_t struct_bytes, std::size_t text_bytes)
        : begin_(static_cast<char*>(take_memory(struct_bytes + text_bytes))), text_(begin_ + struct_bytes) {}
    [[nodiscard]] void* begin() const { return begin_; }
    /// With a zero byte behind it.
    const char* add(std::string_view text) {
        char* copy = text_;
        text_ = std::copy(text.begin(), text.end(), text_);
        *text_++ = 0;
        return copy;
    }

private:
    char *begin_, *text_;
};

}  // namespace fovea::host_c

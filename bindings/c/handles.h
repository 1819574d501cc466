// What the handles of fovea_host.h are, and how its functions end.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/fovea_host.h"
#include "host/base/error.h"
#include "host/chat/model_chat.h"
#include "host/model/head_results.h"
#include "host/model/opened.h"

struct fovea_host_model {
    fovea::host::Opened opened;
    fovea_model* engine_model = nullptr;  // in engine_memory
    std::optional<fovea::Head> head;      // of a model with labels
    mutable std::once_flag chat_made, index_made;
    mutable std::optional<fovea::ModelChat> chat_;
    mutable std::vector<std::byte> index_;
    alignas(8) std::byte engine_memory[FOVEA_MODEL_BYTES];

    /// The model's chat template, read when it is first wanted. Throws what ModelChat::of does.
    [[nodiscard]] const fovea::ModelChat& chat() const;
    /// The tree of the vocabulary's tokens, for forms, made when it is first wanted.
    [[nodiscard]] const std::vector<std::byte>& vocabulary_index() const;
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

/// Memory that fovea_host_free gives back, with the same contents. Throws std::bad_alloc.
[[nodiscard]] void* take_memory(std::size_t n_bytes);
template<class Value>
[[nodiscard]] Value* copy_of(const Value* values, std::size_t n) {
    auto* copy = static_cast<Value*>(take_memory(n * sizeof(Value)));
    if (n) std::memcpy(copy, values, n * sizeof(Value));
    return copy;
}
/// With a zero byte behind it.
[[nodiscard]] char* copy_of(std::string_view text);

}  // namespace fovea::host_c

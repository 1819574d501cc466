#include "tools/measure/trace_hash.h"

#include <algorithm>

namespace fovea {

Trace Tracer::tap() noexcept { return {&Tracer::call, this}; }

// The position need not be hashed: rows come in order, whatever the calls they came in.
void Tracer::call(void* context, std::uint32_t, std::uint32_t layer, const char* operation,
                  std::span<const float> row) {
    auto& operations = static_cast<Tracer*>(context)->operations_;
    const auto same = [&](const TracedOperation& o) { return o.layer == layer && o.operation == operation; };
    auto found = std::find_if(operations.begin(), operations.end(), same);
    if (found == operations.end()) found = operations.insert(found, {layer, operation, kHashSeed});
    found->hash = hash_bits(row, found->hash);
}

const TracedOperation* first_difference(std::span<const TracedOperation> a,
                                        std::span<const TracedOperation> b) noexcept {
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (i == b.size()) return &a[i];
        if (a[i].layer != b[i].layer || a[i].operation != b[i].operation || a[i].hash != b[i].hash) return &a[i];
    }
    return a.size() < b.size() ? &b[a.size()] : nullptr;
}

}  // namespace fovea

// Fingerprints of floats: what two runs are compared by.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/session.h"
#include "host/base/hash.h"

namespace fovea {

/// One operation of one layer over all the rows that went through it, in order: the same however a prompt was split.
struct TracedOperation {
    std::uint32_t layer = 0;
    std::string operation;
    std::uint64_t hash = kHashSeed;
};

/// Collects a session's tap. Set with set_trace(session, tracer.tap()); must outlive its use.
class Tracer {
public:
    [[nodiscard]] Trace tap() noexcept;
    [[nodiscard]] const std::vector<TracedOperation>& operations() const noexcept { return operations_; }

private:
    static void call(void* context, std::uint32_t pos, std::uint32_t layer, const char* operation,
                     std::span<const float> row);
    std::vector<TracedOperation> operations_;  // in the order of their first appearance
};

/// The first operation whose hash is not the same in both, or that only one has; null if all are equal.
/// Points into `a`, or into `b` if it is longer.
[[nodiscard]] const TracedOperation* first_difference(std::span<const TracedOperation> a,
                                                      std::span<const TracedOperation> b) noexcept;

}  // namespace fovea

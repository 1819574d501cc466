// The same logits, computed in one way after another.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "tools/measure/trace_hash.h"

namespace fovea {

/// One way to compute the same thing.
struct Way {
    static constexpr std::uint32_t kAll = 0xffffffffu;  ///< a piece as long as the text

    const char* isa;
    std::uint32_t n_threads;
    std::uint32_t piece;      ///< tokens in a pass
    bool in_company = false;  ///< beside other sequences, over pages that are forked on the way
    std::uint64_t hash = 0;

    [[nodiscard]] std::string name() const;
};

class Certifier {
public:
    virtual ~Certifier() = default;
    /// The hash of the logits after every token. Throws host::Error.
    [[nodiscard]] virtual std::uint64_t run(const Way& way, Tracer* tracer = nullptr) = 0;
    /// The first operation whose results are not the same.
    [[nodiscard]] std::string where_they_part(const Way& a, const Way& b);
};

/// A model of one stack continues `tokens`. A decoder of two stacks reads them beside what its encoder makes of them, or of a sound or
/// vectors if it reads those. Both arguments must outlive it. Throws host::Error.
[[nodiscard]] std::unique_ptr<Certifier> make_certifier(const host::Opened& opened, std::span<const Token> tokens);

}  // namespace fovea

// What `fovea bench` measures: a prompt's pass, then tokens one at a time, and how much work that is; or many sequences.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "tools/options/options.h"

namespace fovea {

struct BenchOptions {
    CommonOptions common;
    std::string model, preset, sequences;
    std::vector<std::uint32_t> counts;  // of --sequences
    std::optional<Type> type;
    std::optional<std::uint32_t> asked_prompt, asked_new;
    std::uint32_t n_prompt = 512, n_new = 64, context = 0, n_repeats = 5;
};

/// What must be computed and read, by the model's shape alone.
struct BenchWork {
    double prefill_operations = 0;  ///< 2 a multiply-add; the output head for the last token only
    double decode_bytes = 0;        ///< read for one token, halfway through the new ones
};

class BenchSubject {
public:
    virtual ~BenchSubject() = default;
    /// Forgets all, and reads the prompt: of two stacks the encoder reads its source.
    virtual void read_prompt() = 0;
    /// The next token, whose logits are computed. Throws host::Error, as read_prompt does.
    virtual void write_token() = 0;

    BenchWork work;
    std::uint32_t n_prompt = 0;  ///< rows that read_prompt computes
    std::uint64_t arena_bytes = 0;
    const char* isa = "";
};

/// `opened` must outlive it. Throws host::Error.
[[nodiscard]] std::unique_ptr<BenchSubject> bench_session(const host::Opened& opened, const BenchOptions& options,
                                                          const Limits& limits);
/// The same of a model of two stacks; one that hears reads a window.
[[nodiscard]] std::unique_ptr<BenchSubject> bench_two_stacks(const host::Opened& opened, const BenchOptions& options);

/// Decodes each number of sequences together and one alone, in alternating pairs, and prints the medians.
void bench_sequences(const host::Opened& opened, const BenchOptions& options);

}  // namespace fovea

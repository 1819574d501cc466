// What bench measures of many sequences, beside one.
#pragma once
#include <cstdint>
#include <vector>

#include "fovea/host/opened.h"

namespace fovea {

struct SequencesOptions {
    std::vector<std::uint32_t> counts;  ///< how many sequences are decoded together, one measurement each
    std::uint32_t n_prompt = 0, n_new = 0, n_repeats = 0, n_threads = 1;
    Type kv_type = Type::f32;
    const char* isa = nullptr;
    bool json = false;
};

/// Decodes each number of sequences together and one alone, in alternating pairs, and prints the medians.
void bench_sequences(const host::Opened& opened, const SequencesOptions& options);

}  // namespace fovea

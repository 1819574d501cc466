// `fovea run --batch`: many requests, many at a time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/host/opened.h"
#include "serve/api/batch_requests.h"
#include "tools/options/answer_form.h"
#include "tools/options/options.h"

namespace fovea {

struct BatchOptions {
    std::string input, output;
    std::uint32_t n_sequences = 16;
    std::uint32_t context = 0;  ///< 0: the model's, of which only what the requests need is taken
    Type kv_type = Type::f32;
    serve::BatchDefaults defaults;
    FormOptions form;
    bool quiet = false;
};

/// Answers every request that the output does not hold yet. Throws host::Error: before anything is computed where a line is not
/// what it must be, and later where an answer cannot be made or written; the output keeps what is done.
void run_batch(const BatchOptions& options, const CommonOptions& common, const host::Opened& opened);

}  // namespace fovea

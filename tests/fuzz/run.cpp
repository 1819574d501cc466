// Any bytes that make a model: it plans, takes exactly its plan, runs, and its text is encoded and decoded.
#include "tests/fuzz/fovea_file.h"
#include "tests/fuzz/run_model.h"

FOVEA_FUZZ_TARGET(run) {
    (void)fovea::fuzz::run_model(fovea::fuzz::Aligned(data, size), {.arena_bytes = 1 << 19, .parameters = 1 << 15});
    return 0;
}

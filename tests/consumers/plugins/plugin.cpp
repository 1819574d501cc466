// A plugin with a Fovea of its own, which it names by the C interface and by the C++ one.
#include <cstdio>

#include "fovea/fovea.h"
#include "fovea/status.h"
#include "fovea/workspace.h"

namespace {

alignas(64) unsigned char memory[FOVEA_MODEL_BYTES], arena[1 << 20];

/// Three threads, where the library has any.
bool make_threads() {
    const fovea_attention_shape shape{.struct_size = sizeof shape, .n_heads = 1, .head_dim = 16};
    const fovea_limits limits{.struct_size = sizeof limits, .max_batch = 8, .n_threads = 3};
    fovea_model* model = nullptr;
    fovea_workspace* workspace = nullptr;
    return fovea_attention_model(&shape, memory, sizeof memory, &model).code == FOVEA_OK &&
           fovea_make_workspace(model, &limits, arena, sizeof arena, &workspace).code == FOVEA_OK;
}

}  // namespace

/// Writes a line. 0: there were no threads.
extern "C" __attribute__((visibility("default"))) int use_plugin(int ends_threads) {
    const fovea::StatusLine line(fovea::Status{.code = fovea::Code::bad_magic});
    std::printf("%s: %s: %s\n", fovea_version(), fovea_code_name(FOVEA_BAD_MAGIC), line.c_str());
    std::fflush(stdout);
    const bool made = make_threads();
    if (ends_threads) fovea::end_threads();
    return made;
}

// Which texts an answer may be: form.c has the demo's commands, free.c lets the model say what it likes.
#pragma once
#include "fovea/fovea.h"

/// Makes the form's state in `memory` [n_bytes], 8-byte aligned, and says how much of it that takes.
fovea_status form_make(const struct fovea_model* model, unsigned char* memory, size_t n_bytes, uint64_t* used);
/// Back to the form's start, for another answer; fills what fovea_start wants of it.
fovea_status form_restart(fovea_token_filter* filter);
/// Not 0: the answer so far is one of the form.
int form_fits(void);

// Answers of a form: the JSON schema of the demo's commands, which `fovea grammar` compiled for its vocabulary and
// `fovea embed` turned into a section. Whatever the prompt, what comes out is a command. The form is read where it lies.
#include "form.h"

extern const unsigned char fovea_form[], fovea_form_end[];

__attribute__((aligned(8))) static unsigned char constraint_memory[FOVEA_CONSTRAINT_BYTES];
static fovea_constraint_state* state;

fovea_status form_make(const struct fovea_model* model, unsigned char* memory, size_t n_bytes, uint64_t* used) {
    fovea_constraint* constraint = NULL;
    const size_t form_bytes = (size_t)(fovea_form_end - fovea_form);
    const fovea_status status = fovea_open_constraint(model, fovea_form, form_bytes, NULL, 0, constraint_memory,
                                                      sizeof constraint_memory, &constraint);
    if (status.code != FOVEA_OK) return status;
    *used = fovea_constraint_state_bytes(constraint);
    return fovea_make_constraint_state(constraint, memory, n_bytes, &state);
}

fovea_status form_restart(fovea_token_filter* filter) {
    const fovea_status status = fovea_restart_constraint(state);
    return status.code == FOVEA_OK ? fovea_constraint_filter(state, filter) : status;
}

int form_fits(void) { return fovea_constraint_can_end(state); }

// Answers of no form: any token may be chosen, and the form's code is not in the program.
#include "form.h"

fovea_status form_make(const struct fovea_model* model, unsigned char* memory, size_t n_bytes, uint64_t* used) {
    (void)model, (void)memory, (void)n_bytes;
    *used = 0;
    return (fovea_status){.code = FOVEA_OK};
}

fovea_status form_restart(fovea_token_filter* filter) {
    (void)filter;  // as it is
    return (fovea_status){.code = FOVEA_OK};
}

int form_fits(void) { return 1; }

/* A C program of somebody else's, which a C compiler links without help of a C++ one. */
#include <stdio.h>

#include "fovea/fovea.h"
#include "fovea/version.h"

int main(void) {
    static const uint64_t file[8];
    fovea_limits limits = {0};
    fovea_plan plan = {0};
    fovea_session* session = NULL;
    fovea_status status;
    char line[160];
    limits.struct_size = sizeof limits;
    limits.n_threads = 2;
    plan.struct_size = sizeof plan;
    status = fovea_make_plan(file, 0, &limits, &plan);
    fovea_describe(status, line, sizeof line);
    printf("%s %s\n", FOVEA_VERSION, line);
    if (fovea_make_session(file, 0, &limits, &plan, 0, &session).code != FOVEA_TRUNCATED || session) return 1;
    return status.code == FOVEA_TRUNCATED && fovea_api_version() == FOVEA_API_VERSION ? 0 : 1;
}

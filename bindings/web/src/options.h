// Sampling options by their names, for what JavaScript calls.
#pragma once
#include <stdint.h>

#include "fovea/fovea.h"

/// Whether a name in camel case, topK, is that of a field, top_k.
static inline int is_camel_case(const char* name, const char* field) {
    for (; *field; ++field, ++name)
        if (*name != (*field == '_' ? *++field - 'a' + 'A' : *field)) return 0;
    return !*name;
}

/// Sets a sampler's option by its name in camel case; 1 if there is none of that name.
static inline int set_sampler_option(fovea_sampler* sampler, fovea_more_samplers* more, const char* name,
                                     double value) {
#define FOVEA_SAMPLER_REAL(field, ...) \
    if (is_camel_case(name, #field)) return sampler->field = (float)value, 0;
#define FOVEA_SAMPLER_COUNT(field, ...) \
    if (is_camel_case(name, #field)) return sampler->field = (uint32_t)value, 0;
#define FOVEA_SAMPLER_SEED(field) \
    if (is_camel_case(name, #field)) return sampler->field = (uint64_t)value, 0;
#define FOVEA_SAMPLER_MORE_REAL(field, ...) \
    if (is_camel_case(name, #field)) return more->field = (float)value, 0;
#define FOVEA_SAMPLER_MORE_COUNT(field, ...) \
    if (is_camel_case(name, #field)) return more->field = (uint32_t)value, 0;
#include "fovea/sampler_options.inc"
    return 1;
}

// The rows of sampler_options.inc and the structs' fields are the same options.
#include <doctest/doctest.h>

#include "fovea/fovea.h"
#include "fovea/sampler.h"

namespace fovea {
namespace {

/// A value of any field.
struct Any {
    template<class T>
    operator T() const;
};

template<class Struct, class... Known>
consteval std::size_t n_fields() {
    if constexpr (requires { Struct{Known{}..., Any{}}; })
        return n_fields<Struct, Known..., Any>();
    else
        return sizeof...(Known);
}

constexpr const char* kOptions[] = {
#define FOVEA_SAMPLER_REAL(field, ...) #field,
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#define FOVEA_SAMPLER_SEED FOVEA_SAMPLER_REAL
#include "fovea/sampler_options.inc"
};
constexpr const char* kMore[] = {
#define FOVEA_SAMPLER_REAL(...)
#define FOVEA_SAMPLER_COUNT(...)
#define FOVEA_SAMPLER_MORE_REAL(field, ...) #field,
#define FOVEA_SAMPLER_MORE_COUNT FOVEA_SAMPLER_MORE_REAL
#include "fovea/sampler_options.inc"
};
static_assert(n_fields<MoreSamplers>() == std::size(kMore) && n_fields<fovea_more_samplers>() == std::size(kMore));
static_assert(n_fields<SamplerOptions>() + std::size(kMore) == std::size(kOptions) + 2, "bias and more have no row");
static_assert(n_fields<fovea_sampler>() + std::size(kMore) == std::size(kOptions) + 4,
              "struct_size, the biases and more have no row");

}  // namespace

TEST_CASE("sampler options: what is neutral is the default") {
    const SamplerOptions plain;
#define FOVEA_SAMPLER_REAL(field, neutral, ...) CHECK(plain.field == neutral);
#define FOVEA_SAMPLER_MORE_REAL(...)
#include "fovea/sampler_options.inc"
}

}  // namespace fovea

// The suites, one file each, and what they share.
#pragma once
#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/suites/rounds.h"
#include "engine/kernels/kernels.h"
#include "host/base/aligned_bytes.h"

namespace fovea {

void add_matmul_suite();
void add_attention_suite();
void add_model_suite();
void add_constraint_suite();
void add_speculation_suite();
void add_team_suite();

using AlignedFloats = std::vector<float, Aligned64<float>>;

/// Registers one benchmark, which run_rounds times.
void add(const std::string& name, std::function<void(benchmark::State&)> run);

/// Calls use for every kernel table that this CPU can run.
void for_each_table(const std::function<void(const Kernels&)>& use);

/// Elements of `type`, those of q8 and q4 as panels without gaps; floats of either sign, in size from an eighth to 2.
void fill_elements(Type type, Numbers& numbers, std::span<std::byte> bytes);

}  // namespace fovea

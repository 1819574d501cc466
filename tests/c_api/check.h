/* What the files of this test share. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fovea/fovea.h"
#include "tests/c_api/by_cpp.h"

extern int n_failed;
void check(int good, const char* what, const char* file, int line);
#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)
/* A call and the code that it must come to. */
void check_code(fovea_status status, uint32_t code, const char* what, const char* file, int line);
#define GIVES(expected, call) check_code(call, expected, #call, __FILE__, __LINE__)

/* Zeroed memory, 64-byte aligned, of exactly n bytes, between guards that check_guards looks at. Never released. */
void* take(uint64_t n_bytes);
void check_guards(void);
float* take_floats(size_t n);
int same_floats(const float* a, const float* b, size_t n);

/* A model's handle in memory of its own. */
struct fovea_model* open_test_model(test_file file);
fovea_workspace* make_test_workspace(const struct fovea_model* model, const fovea_limits* limits);

void test_models(void);
void test_text(const struct fovea_model* demo);
void test_sampler(void);
void test_pools(void);
void test_steps(void);
void test_step_structs(void);
void test_row_steps(void);
void test_saved(void);
void test_cancel(const struct fovea_model* demo);
void test_executor(const struct fovea_model* demo);
void test_generator_plan(void);
void test_texts(const struct fovea_model* demo);
void test_tokens(void);
void test_speculation(void);
void test_generators(void);
void test_constraint(const struct fovea_model* demo);
void test_adapters(void);
void test_encode(void);
void test_kept_memory(void);
void test_memory(void);
void test_attend(void);
void test_attention(void);

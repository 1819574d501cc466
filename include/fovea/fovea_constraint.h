// The C interface's answers of a form: which tokens may come next so that the text fits a grammar, a regular expression or a
// JSON schema. Included by fovea.h, whose rules hold here too; constraint.h says more.
//
//     fovea_open_constraint(model, form, form_bytes, index, index_bytes, memory, sizeof memory, &constraint);   // once
//     fovea_make_constraint_state(constraint, arena, arena_bytes, &state);        // size: fovea_constraint_state_bytes
//     fovea_token_filter filter = {.struct_size = sizeof filter};
//     fovea_constraint_filter(state, &filter);
//     const fovea_generate_options options = {.struct_size = sizeof options, .filter = &filter};
//     fovea_start(generator, prompt, n_prompt, &options);                         // the answer fits the form
//
// `fovea grammar` writes forms, with the index of the vocabulary in them.
#ifndef FOVEA_FOVEA_CONSTRAINT_H
#define FOVEA_FOVEA_CONSTRAINT_H
#include "fovea/fovea_generator.h"

#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// A checked form for a model's vocabulary. It never changes; any number of states and threads share one.
typedef struct fovea_constraint fovea_constraint;
/// One text's place in its form.
typedef struct fovea_constraint_state fovea_constraint_state;

/// Bytes of memory for a constraint's handle, the same on every machine.
#define FOVEA_CONSTRAINT_BYTES 64

/// Checks every byte of a form, and of an index if the form has none of its own (else NULL and 0); both are 4-byte
/// aligned and must stay, as the model's file. `memory` is of at least FOVEA_CONSTRAINT_BYTES and 8-byte aligned.
/// Errors, `memory` and *constraint unchanged: those of open_constraint; FOVEA_ARENA_TOO_SMALL, FOVEA_MISALIGNED.
fovea_status fovea_open_constraint(const struct fovea_model* model, const void* form, size_t form_bytes,
                                   const void* index, size_t index_bytes, void* memory, size_t memory_bytes,
                                   fovea_constraint** constraint);

/// Exactly what a state needs, the same on every machine; 0 for NULL.
uint64_t fovea_constraint_state_bytes(const fovea_constraint* constraint);
/// A state at the form's start, in the caller's memory, 8-byte aligned. The constraint's memory must stay.
/// Errors, the memory unchanged: those of make_constraint_state.
fovea_status fovea_make_constraint_state(const fovea_constraint* constraint, void* memory, size_t memory_bytes,
                                         fovea_constraint_state** state);
/// Back to the form's start, for another text.
fovea_status fovea_restart_constraint(fovea_constraint_state* state);
/// The same place in the form, for a text that forks. Errors, nothing changed: those of copy_state.
fovea_status fovea_copy_constraint(const fovea_constraint_state* from, fovea_constraint_state* to);

/// Clears the bits of tokens that may not come next: mask [n_mask], as fovea_token_filter has it.
fovea_status fovea_allow_tokens(fovea_constraint_state* state, uint32_t* mask, size_t n_mask);
/// Not 0: the text goes on with `token`, or may end with it. 0: the form does not allow it, and nothing changes.
int fovea_advance_constraint(fovea_constraint_state* state, uint32_t token);
/// Not 0: the text fits the form as it is; for must_end, and nothing but its end can follow.
int fovea_constraint_can_end(const fovea_constraint_state* state);
int fovea_constraint_must_end(const fovea_constraint_state* state);
/// Writes tokens that are certain to come next, at most `capacity`, and returns how many.
size_t fovea_forced_tokens(const fovea_constraint_state* state, uint32_t* tokens, size_t capacity);

/// Sets allow, accept, forced and context of a filter for fovea_start; `allowed` stays. The state must be at the form's start
/// when the text starts, and stay where it is.
fovea_status fovea_constraint_filter(const fovea_constraint_state* state, fovea_token_filter* filter);

#ifdef __cplusplus
}
#endif
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif
#endif

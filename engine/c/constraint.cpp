// The C interface's answers of a form.
#include <cstring>
#include <new>

#include "engine/c/handles.h"
#include "fovea/constraint.h"

using namespace fovea;

struct fovea_constraint {
    Constraint constraint;
};

struct fovea_constraint_state {
    ConstraintState state;
};

namespace {

constexpr std::uint64_t kHandleBytes = 64;
static_assert(sizeof(fovea_constraint) <= FOVEA_CONSTRAINT_BYTES && sizeof(fovea_constraint_state) <= kHandleBytes);

[[nodiscard]] Status no_state() noexcept { return is_null("constraint's state: NULL"); }

[[nodiscard]] Status check_place(const void* memory, std::size_t had, std::uint64_t wanted) noexcept {
    if (!memory) return is_null("memory: NULL");
    if (had < wanted) return {Code::arena_too_small, "bytes of memory at least", wanted, had};
    const std::uint64_t past = reinterpret_cast<std::uintptr_t>(memory) % 8;
    return past ? Status{Code::misaligned, "the memory's address modulo 8", 0, past} : Status{};
}

[[nodiscard]] std::span<const std::byte> bytes_of(const void* bytes, std::size_t n) noexcept {
    return {static_cast<const std::byte*>(bytes), bytes ? n : 0};
}

// The callbacks of a filter, with a state as their context.
void allow_by_form(void* context, const std::uint32_t*, std::size_t, std::uint32_t* mask, std::size_t n_mask) noexcept {
    allow_tokens(static_cast<fovea_constraint_state*>(context)->state, {mask, n_mask});
}
void accept_by_form(void* context, std::uint32_t token) noexcept {
    (void)advance(static_cast<fovea_constraint_state*>(context)->state, token);
}
std::size_t force_by_form(void* context, std::uint32_t* tokens, std::size_t capacity) noexcept {
    return forced_tokens(static_cast<fovea_constraint_state*>(context)->state, {tokens, capacity});
}

}  // namespace

fovea_status fovea_open_constraint(const fovea_model* model, const void* form, size_t form_bytes, const void* index,
                                   size_t index_bytes, void* memory, size_t memory_bytes,
                                   fovea_constraint** constraint) {
    if (!model) return refuse_null("model: NULL");
    if (Status s = check_place(memory, memory_bytes, FOVEA_CONSTRAINT_BYTES); !s.ok()) return to_c(s);
    Constraint opened;
    if (Status s = open_constraint(model->tokenizer, bytes_of(form, form_bytes), bytes_of(index, index_bytes), opened);
        !s.ok())
        return to_c(s);
    *constraint = new (memory) fovea_constraint{opened};
    return success();
}

uint64_t fovea_constraint_state_bytes(const fovea_constraint* constraint) {
    return constraint ? kHandleBytes + constraint_state_bytes(constraint->constraint) : 0;
}

fovea_status fovea_make_constraint_state(const fovea_constraint* constraint, void* memory, size_t memory_bytes,
                                         fovea_constraint_state** state) {
    if (!constraint) return refuse_null("constraint: NULL");
    if (Status s = check_place(memory, memory_bytes, fovea_constraint_state_bytes(constraint)); !s.ok()) return to_c(s);
    ConstraintState made;
    const std::span<std::byte> rest{static_cast<std::byte*>(memory) + kHandleBytes,
                                    memory_bytes - static_cast<std::size_t>(kHandleBytes)};
    if (Status s = make_constraint_state(constraint->constraint, rest, made); !s.ok()) return to_c(s);
    *state = new (memory) fovea_constraint_state{made};
    return success();
}

fovea_status fovea_restart_constraint(fovea_constraint_state* state) {
    if (!state) return to_c(no_state());
    restart(state->state);
    return success();
}

fovea_status fovea_copy_constraint(const fovea_constraint_state* from, fovea_constraint_state* to) {
    if (!from || !to) return to_c(no_state());
    return to_c(copy_state(from->state, to->state));
}

fovea_status fovea_allow_tokens(fovea_constraint_state* state, uint32_t* mask, size_t n_mask) {
    if (!state) return to_c(no_state());
    allow_tokens(state->state, {mask, n_mask});
    return success();
}

int fovea_advance_constraint(fovea_constraint_state* state, uint32_t token) {
    return state && advance(state->state, token);
}

int fovea_constraint_can_end(const fovea_constraint_state* state) { return state && can_end(state->state); }
int fovea_constraint_must_end(const fovea_constraint_state* state) { return state && must_end(state->state); }

size_t fovea_forced_tokens(const fovea_constraint_state* state, uint32_t* tokens, size_t capacity) {
    return state ? forced_tokens(state->state, {tokens, capacity}) : 0;
}

fovea_status fovea_constraint_filter(const fovea_constraint_state* state, fovea_token_filter* filter) {
    if (!state) return to_c(no_state());
    if (Status s = check_struct(filter); !s.ok()) return to_c(s);
    fovea_token_filter own;
    if (Status s = read_struct(filter, own); !s.ok()) return to_c(s);
    own.allow = allow_by_form;
    own.accept = accept_by_form;
    own.forced = force_by_form;
    own.context = const_cast<fovea_constraint_state*>(state);  // callbacks are the state's own
    write_struct(&own, sizeof own, filter);
    return success();
}

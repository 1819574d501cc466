// Constrained answers: which tokens may come next so that the text fits a form, made of a grammar, a regular expression
// or a JSON schema.
//
//     // form and index: bytes that host/grammar/grammar.h (or `fovea grammar`) made for this vocabulary
//     Constraint constraint;
//     open_constraint(tokenizer, form, index, constraint);            // once, any number of texts share it
//     std::vector<std::byte> memory(constraint_state_bytes(constraint));
//     ConstraintState state;
//     make_constraint_state(constraint, memory, state);               // one for each text; allocates nothing from here on
//     start(generator, prompt, {.filter = filter_of(state)});
//
// A text that ends by itself then fits the form, whatever the model: an end token is allowed only where the form may end, and
// there is always a token that is allowed. A text cut by a limit may be incomplete: can_end tells.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/config.h"
#include "fovea/generator.h"
#include "fovea/status.h"
#include "fovea/tokenizer.h"

namespace fovea {
struct ConstraintAccess;  // the engine's own: a friend that is not shown
}
#if defined(FOVEA_SHARED)
#pragma GCC visibility push(default)  // a shared library shows what is declared here
#endif

namespace fovea {

struct ConstraintHeader;  // engine/format/constraint_format.h
struct ConstraintRun;     // lives at the start of a state's memory; engine/text/constraint_run.h

/// A checked view of a form, the index of its vocabulary and the tokenizer; trivially copyable. Their bytes must outlive it,
/// and never change: any number of states and threads share one.
class Constraint {
public:
    [[nodiscard]] bool valid() const noexcept { return form_ != nullptr; }

private:
    friend struct ConstraintAccess;
    const ConstraintHeader* form_ = nullptr;
    const std::byte* index_ = nullptr;
    Tokenizer tokenizer_;
};

/// Checks every byte of `form` and `index`, both aligned to 4 bytes. `index` may be empty if the form brings its own.
/// Errors, `constraint` unchanged: bad_argument (tokenizer not opened), section_missing (no index), misaligned, truncated,
/// bad_magic, version_unsupported, section_invalid, session_mismatch (made for another vocabulary or index), unsupported (a
/// vocabulary without an end token).
[[nodiscard]] Status open_constraint(const Tokenizer& tokenizer, std::span<const std::byte> form,
                                     std::span<const std::byte> index, Constraint& constraint) noexcept;

/// Bytes that a state needs, the same on every machine; 0 for a constraint that is not open. A bit for each token, some kilobytes
/// that depend on the form's depth and the longest token, 4 KB where items are told apart (uniqueItems), and 150 KB where the
/// vocabulary has 4,096 tokens or more.
[[nodiscard]] std::uint64_t constraint_state_bytes(const Constraint& constraint) noexcept;

/// One text's place in its form. A handle to the caller's memory, trivially copyable; there is no destructor.
class ConstraintState {
public:
    [[nodiscard]] bool valid() const noexcept { return run_ != nullptr; }

private:
    friend struct ConstraintAccess;
    ConstraintRun* run_ = nullptr;
};

/// A state at the form's start in `memory`, of at least constraint_state_bytes, aligned to 8 bytes.
/// Errors, `state` unchanged: bad_argument (constraint not open), arena_too_small, misaligned.
[[nodiscard]] Status make_constraint_state(const Constraint& constraint, std::span<std::byte> memory,
                                           ConstraintState& state) noexcept;
/// Back to the form's start, for another text.
void restart(ConstraintState& state) noexcept;
/// The same place in the form, for a text that forks. Errors, `to` unchanged: bad_argument (not made, another constraint).
[[nodiscard]] Status copy_state(const ConstraintState& from, ConstraintState& to) noexcept;

/// Clears the bits of tokens that may not come next: bit id % 32 of word id / 32 of `mask`, [(vocab_size + 31) / 32] of the
/// model; ids that the tokenizer does not know are among them. If the form forces several tokens' bytes, one is
/// allowed.
void allow_tokens(ConstraintState& state, std::span<std::uint32_t> mask) noexcept;
/// The text goes on with `token`. False, and nothing changes, if the form does not allow it. An end token changes
/// nothing, and is allowed if can_end is true. Any tokens that spell the form are allowed, even if allow_tokens
/// would leave only other tokens of the same bytes.
bool advance(ConstraintState& state, Token token) noexcept;
/// Whether the text fits the form as it is.
[[nodiscard]] bool can_end(const ConstraintState& state) noexcept;
/// Whether it fits and nothing but an end token can follow.
[[nodiscard]] bool must_end(const ConstraintState& state) noexcept;
/// Writes the tokens that are certain to come next, one after the other, and returns how many.
[[nodiscard]] std::size_t forced_tokens(const ConstraintState& state, std::span<Token> tokens) noexcept;

/// The filter for a generator. The state's memory must stay, and be at the form's start when the text starts.
[[nodiscard]] TokenFilter filter_of(const ConstraintState& state) noexcept;

}  // namespace fovea
#if defined(FOVEA_SHARED)
#pragma GCC visibility pop
#endif

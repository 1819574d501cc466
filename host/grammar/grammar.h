// From JSON schemas, grammars and regular expressions to forms that the engine runs (fovea/constraint.h): a library of its
// own, fovea::grammar, for the command line, servers and bindings. Takes memory and throws; the engine does neither.
//
//     const std::vector<std::byte> index = grammar::index_vocabulary(tokenizer);            // once for a tokenizer
//     const std::vector<std::byte> form = grammar::compile(grammar::read_json_schema(text), tokenizer, index);
//     open_constraint(tokenizer, form, index, constraint);
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/host/error.h"
#include "fovea/tokenizer.h"
#include "host/grammar/expression.h"

namespace fovea::grammar {

/// Why a schema, a grammar or an expression is refused: one line, "expected X, got Y", with the place in it.
struct GrammarError : host::ArgumentError {
    using ArgumentError::ArgumentError;
};

struct SchemaOptions {
    /// No space between the parts of an answer. Else what models write: one space, or a line end and up to 20 spaces.
    bool compact = false;
};

/// A JSON schema (drafts 4 to 2020-12) as a grammar of JSON texts, each of which validates. Properties come in the schema's
/// order, and only those it names unless additionalProperties says otherwise. Numbers have at most 15 digits before and after
/// the point. Throws GrammarError, with a JSON pointer to the place, if it is no schema, has something that is not supported,
/// or nothing can fit it.
[[nodiscard]] Grammar read_json_schema(std::string_view json, const SchemaOptions& options = {});
/// The texts that fit a schema of strings, as they are: without quotes, without escapes, and none with `mark` in it. Throws
/// GrammarError, also where too many states would tell them apart.
[[nodiscard]] Grammar read_text_schema(std::string_view json, std::string_view mark);
/// A GBNF grammar as llama.cpp has it; its rule `root` is the answer. Throws GrammarError.
[[nodiscard]] Grammar read_gbnf(std::string_view text);
/// A regular expression that the whole answer matches. Throws GrammarError.
[[nodiscard]] Grammar read_regex(std::string_view pattern);
/// Any text up to the first `mark`, which has its first character once, up to four blanks, and a text of `grammar`.
[[nodiscard]] Grammar behind(std::string_view mark, Grammar grammar);

/// Every token's bytes as a tree, for one vocabulary. Some 8 bytes for each byte that tokens do not share. Throws
/// GrammarError if there are 2^24 tokens or more.
[[nodiscard]] std::vector<std::byte> index_vocabulary(const Tokenizer& tokenizer);

struct CompileOptions {
    bool own_index = false;            ///< the index becomes part of the form, for a board
    bool known_masks = true;           ///< masks of states with many tokens are made now; costs their bytes
    std::uint32_t max_depth = 64;      ///< rules within rules, at most 200; more only if the grammar needs it
    std::uint32_t max_states = 60000;  ///< of all automata; a grammar of more is refused before it costs more
};

/// The automaton of a grammar over a vocabulary: open_constraint's `form`. The same bytes on every machine.
/// Throws GrammarError if the grammar has no text at all (with this vocabulary's bytes), recurs at its left, or is too
/// large.
[[nodiscard]] std::vector<std::byte> compile(const Grammar& grammar, const Tokenizer& tokenizer,
                                             std::span<const std::byte> index, const CompileOptions& options = {});

/// Whether these bytes begin as a form does.
[[nodiscard]] bool begins_form(std::span<const std::byte> bytes) noexcept;
/// Throws GrammarError if a form is cut or has no index of its own, which a board needs. Whether it is sound and for
/// which vocabulary is open_constraint's to say.
void check_form_for_board(std::span<const std::byte> form);

}  // namespace fovea::grammar

// Options that several verbs have, and how their values are read: a bad one is refused in one line, exit status 2.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "fovea/config.h"
#include "fovea/model.h"

// CLI11 stays within options.cpp and main.cpp: each file that sees its templates takes a compiler five seconds longer.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fovea {

/// What is called with the text of an option.
using ReadText = std::function<void(const std::string& text)>;

/// An option of a verb.
class Option {
public:
    explicit Option(CLI::Option* option) : option_(option) {}
    /// The word that stands for the value in the help, such as FILE.
    Option type_name(const char* name) const;
    /// Has `seen` called with each text that is given.
    Option each(ReadText seen) const;
    /// How many times it was given.
    [[nodiscard]] std::size_t count() const;

private:
    CLI::Option* option_;
};

/// Adds a verb to the program; `description` is its line in the program's help.
CLI::App& add_verb(CLI::App& app, const char* name, const std::string& description);
/// What the verb does once its options are read.
void set_action(CLI::App& verb, std::function<void()> action);

void add_flag(CLI::App& verb, const std::string& names, bool& value, const std::string& help);
/// An option whose text `read` takes, or refuses by throwing.
Option add_value(CLI::App& verb, const std::string& names, ReadText read, const std::string& help);
/// The same for an option that may be given several times.
Option add_values(CLI::App& verb, const std::string& names, ReadText read, const std::string& help);
Option add_texts(CLI::App& verb, const std::string& names, std::vector<std::string>& values, const std::string& help);
/// What is given without an option's name: one text, or all that are left.
Option add_argument(CLI::App& verb, const std::string& name, std::string& value, const std::string& help);
Option add_arguments(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                     const std::string& help);
/// Each adds an option that is given at most once (of several the last counts). `names` as CLI11 spells them.
Option add_text(CLI::App& verb, const std::string& names, std::string& value, const std::string& help);
Option add_count(CLI::App& verb, const std::string& names, std::uint32_t& value, std::uint32_t least,
                 std::uint32_t most, const std::string& help);
/// Bytes: a whole number, or one with K, M or G for 2^10, 2^20 or 2^30 of them; KB and KiB mean the same.
Option add_size(CLI::App& verb, const std::string& names, std::uint64_t& value, const std::string& help);
Option add_real(CLI::App& verb, const std::string& names, float& value, float least, float most,
                const std::string& help);
/// "f32, f16 or q8".
[[nodiscard]] std::string type_names(const std::vector<Type>& types);
/// --tokens: ids such as 1,2,3, at least one.
Option add_tokens(CLI::App& verb, std::vector<Token>& tokens, const std::string& help);
Option add_type(CLI::App& verb, const std::string& names, Type& value, const std::vector<Type>& types,
                const std::string& help);
/// A path, and what it is weighed with.
struct ScaledPath {
    std::string path;
    float scale = 1.0f;
};
/// An option that may be given several times: PATH or PATH:SCALE, a file with that whole name coming first.
Option add_scaled_paths(CLI::App& verb, const std::string& names, std::vector<ScaledPath>& values,
                        const std::string& help);
/// --kv, how keys and values are cached.
void add_kv(CLI::App& verb, Type& value);
/// The positional MODEL. A verb that can't do without one asks need_model for it.
Option add_model(
    CLI::App& verb, std::string& path,
    const std::string& help = "a Fovea file, or a Hugging Face folder or GGUF file, which is converted once");
void need_model(const std::string& path);

/// A whole number in decimal within [least, most], or host::Error that names `what`.
[[nodiscard]] std::uint64_t read_count(const std::string& what, const std::string& text, std::uint64_t least,
                                       std::uint64_t most);
/// "0,2-3" becomes {0, 2, 3}; commas or spaces part the numbers.
[[nodiscard]] std::vector<std::uint32_t> read_list(const std::string& what, const std::string& text,
                                                   std::uint32_t most);

struct FormOptions;
/// --json-schema, --grammar, --regex and --compact: a form of answers.
void add_form(CLI::App& verb, FormOptions& form);

/// What every verb takes.
struct CommonOptions {
    std::uint32_t n_threads = 0;  ///< 0 until settled
    std::string cpus;
    std::string isa;      ///< empty: the best
    std::string workers;  ///< see SharedWork; empty: none
    bool json = false, verify = false;

    /// How the verb opens its model.
    [[nodiscard]] OpenOptions opening() const { return {.verify_checksums = verify}; }
    [[nodiscard]] const char* isa_or_best() const { return isa.empty() ? nullptr : isa.c_str(); }
};
void add_common(CLI::App& verb, CommonOptions& common);
/// --verify, of verbs that open their model with common.opening().
void add_verify(CLI::App& verb, CommonOptions& common);

/// Pins the process where --cpus says so, checks --isa against what can be had, and fills in the number of threads.
void settle(CommonOptions& common);

}  // namespace fovea

// Options that several verbs have, and how their values are read: a bad one is refused in one line, exit status 2.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/config.h"
#include "fovea/model.h"
#include "fovea/plan.h"
#include "fovea/session.h"

// CLI11 stays within options.cpp and command_line.cpp, which are compiled together: its templates take a compiler five seconds.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fovea {

/// The largest count, which stands for "all" and "no limit" too.
inline constexpr std::uint32_t kAny = 0xffffffffu;

/// What is called with the text of an option.
using ReadText = std::function<void(const std::string& text)>;

/// Where an option's value goes: a variable, or one that stays empty unless the option is given.
template<class T>
class Into {
public:
    Into(T& value) : value_(&value) {}
    Into(std::optional<T>& maybe) : maybe_(&maybe) {}
    void set(T read) const { maybe_ ? maybe_->emplace(std::move(read)) : * value_ = std::move(read); }

private:
    T* value_ = nullptr;
    std::optional<T>* maybe_ = nullptr;
};

/// A path, and what it is weighed with.
struct ScaledPath {
    std::string path;
    float scale = 1.0f;
};

/// What every verb takes.
struct CommonOptions {
    std::uint32_t n_threads = 0;  ///< 0 until settled
    std::string cpus;
    /// Empty: OpenMP's team where it is built in. A verb may name another before it adds the options.
    std::string executor;
    std::string isa;     ///< empty: the best
    std::string shares;  ///< of ranks; empty: even ones
    std::uint32_t n_stages = 1;
    Type kv_type = Type::f32;
    bool json = false, verify = false;

    /// How the verb opens its model.
    [[nodiscard]] OpenOptions opening() const { return {.verify_checksums = verify}; }
    [[nodiscard]] const char* isa_or_best() const { return isa.empty() ? nullptr : isa.c_str(); }
    /// How a session or workspace of so many positions is made.
    [[nodiscard]] Limits limits(std::uint32_t max_kv_len = 0) const {
        return {.max_kv_len = max_kv_len, .n_threads = n_threads, .kv_type = kv_type};
    }
    [[nodiscard]] SessionOptions session() const { return {.isa = isa_or_best()}; }
};

/// An option of a verb.
class Option {
public:
    explicit Option(CLI::Option* option) : option_(option) {}
    /// Has `seen` called each time that it is given.
    void each(std::function<void()> seen) const;

private:
    friend class Verb;
    CLI::Option* option_;
};

/// A verb of the command line, and how its options are added. `names` are as CLI11 spells them, and `kind` is the word that stands
/// for the value in the help, such as FILE.
class Verb {
public:
    /// Adds it to the program; `description` is its line in the program's help.
    Verb(CLI::App& app, const char* name, const char* description);
    /// What the verb does once its options are read.
    void set_action(std::function<void()> action) const;

    void flag(const char* names, bool& value, const char* help) const;
    /// A flag that is looked for by `each`.
    Option flag(const char* names, const char* help) const;
    /// An option whose text `read` takes, or refuses by throwing. The last counts, if several are given; so below.
    Option option(const char* names, std::string_view help, const char* kind, ReadText read) const;
    /// The same for an option that may be given several times.
    Option repeated(const char* names, const char* help, const char* kind, ReadText read) const;
    /// What is given without an option's name: a text.
    Option argument(const char* name, std::string& value, const char* help) const;
    /// The same of inputs.
    void input_argument(const char* name, std::string& value, const char* help) const;
    void input_arguments(const char* name, std::vector<std::string>& values, const char* help) const;

    /// A text may be empty, what is of another kind may not.
    Option text(const char* names, Into<std::string> value, std::string_view help, const char* kind = "TEXT") const;
    /// A file, or folder, that is read: the verb writes over nothing of it, by whatever name (host/base/output_file.h).
    Option input(const char* names, Into<std::string> value, std::string_view help, const char* kind = "FILE") const;
    /// A file that is written. Before the verb does anything it is refused where it is an input, or another output too.
    Option output(const char* names, Into<std::string> value, std::string_view help) const;
    void texts(const char* names, std::vector<std::string>& values, const char* help) const;
    Option count(const char* names, Into<std::uint32_t> value, std::uint32_t least, std::uint32_t most,
                 const char* help) const;
    /// From `least` on, below kAny; -1 is kAny.
    Option count_or_any(const char* names, Into<std::uint32_t> value, std::uint32_t least, const char* help) const;
    /// Bytes: a whole number, or one with K, M or G for 2^10, 2^20 or 2^30 of them; KB and KiB mean the same.
    void size(const char* names, Into<std::uint64_t> value, const char* help) const;
    Option real(const char* names, Into<float> value, float least, float most, const char* help) const;
    /// --tokens: ids such as 1,2,3, at least one.
    Option tokens(std::vector<Token>& tokens, const char* help) const;
    void type(const char* names, Into<Type> value, const std::vector<Type>& types, std::string_view help) const;
    /// --type, a type of weights: "of " and what the help says of them, then all types.
    void weight_type(Into<Type> value, const std::string& help) const;
    /// --kv, how keys and values are cached.
    void kv(Type& value) const;
    /// Inputs, maybe several: PATH or PATH:SCALE, a file with that whole name coming first.
    void scaled_paths(const char* names, std::vector<ScaledPath>& values, const char* help) const;
    /// The positional MODEL, an input. A verb that can't do without one asks need_model for it.
    void model(std::string& path,
               const char* help = "a Fovea file, or a Hugging Face folder or GGUF file, which is converted once") const;
    /// What every verb takes; `opening` is for those that open their model with common.opening(): --verify too.
    void common(CommonOptions& common) const;
    void opening(CommonOptions& common) const;

private:
    CLI::App& app_;
    std::shared_ptr<std::vector<std::string>> outputs_ =
        std::make_shared<std::vector<std::string>>();  // that are given
};

void need_model(const std::string& path);

/// A whole number in decimal within [least, most], or host::Error that names `what`.
[[nodiscard]] std::uint64_t read_count(const std::string& what, const std::string& text, std::uint64_t least,
                                       std::uint64_t most);
/// "0,2-3" becomes {0, 2, 3}; commas or spaces part the numbers.
[[nodiscard]] std::vector<std::uint32_t> read_list(const std::string& what, const std::string& text,
                                                   std::uint32_t most);

/// Pins the process where --cpus says so, has --executor's threads compute, checks --isa against what can be had, and fills in the
/// number of threads.
void settle(CommonOptions& common);

}  // namespace fovea

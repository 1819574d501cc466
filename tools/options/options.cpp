#include "tools/options/options.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#ifdef __linux__
#include <sched.h>
#endif

#include "fovea/session.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "tools/options/answer_form.h"
#include "tools/terminal/usage_error.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMaxCpu = 1023;  // what a cpu_set_t holds

std::string last_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

UsageError bad_value(const std::string& what, const std::string& wanted, const std::string& had) {
    return UsageError(what + ": expected " + wanted + ", got " + (had.empty() ? "nothing" : had));
}

std::string range_words(double least, double most) {
    std::ostringstream out;
    if (most >= 1e30)
        out << least << " or more";
    else
        out << least << " to " << most;
    return out.str();
}

}  // namespace

Option Option::type_name(const char* name) const {
    option_->type_name(name);
    return *this;
}

Option Option::each(ReadText seen) const {
    option_->each(std::move(seen));
    return *this;
}

std::size_t Option::count() const { return option_->count(); }

CLI::App& add_verb(CLI::App& app, const char* name, const std::string& description) {
    return *app.add_subcommand(name, description);
}

void set_action(CLI::App& verb, std::function<void()> action) { verb.callback(std::move(action)); }

void add_flag(CLI::App& verb, const std::string& names, bool& value, const std::string& help) {
    verb.add_flag(names, value, help);
}

// Texts are taken as they stand, so that what is wrong with one is said in our words.
Option add_value(CLI::App& verb, const std::string& names, ReadText read, const std::string& help) {
    return Option(verb.add_option_function<std::string>(names, std::move(read), help)->take_last());
}

Option add_values(CLI::App& verb, const std::string& names, ReadText read, const std::string& help) {
    const auto read_each = [read = std::move(read)](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) read(text);
    };
    return Option(verb.add_option_function<std::vector<std::string>>(names, read_each, help)
                      ->expected(1)
                      ->allow_extra_args(false)
                      ->take_all());
}

Option add_texts(CLI::App& verb, const std::string& names, std::vector<std::string>& values, const std::string& help) {
    return add_values(
               verb, names, [&values](const std::string& text) { values.push_back(text); }, help)
        .type_name("TEXT");
}

Option add_argument(CLI::App& verb, const std::string& name, std::string& value, const std::string& help) {
    return Option(verb.add_option(name, value, help)->type_name("")->option_text(" "));
}

Option add_arguments(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                     const std::string& help) {
    return Option(verb.add_option(name, values, help)->type_name("")->option_text(" "));
}

std::uint64_t read_count(const std::string& what, const std::string& text, std::uint64_t least, std::uint64_t most) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc{} && stopped == end && value >= least && value <= most) return value;
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    const std::string range = std::to_string(least) + " to " + std::to_string(most);
    throw bad_value(what, is_number ? range : "a whole number from " + range, text);
}

std::vector<std::uint32_t> read_list(const std::string& what, const std::string& text, std::uint32_t most) {
    constexpr std::size_t kLongest = 1u << 24;
    std::vector<std::uint32_t> list;
    const auto part_ends = [&](std::size_t from) { return std::min(text.find_first_of(", ", from), text.size()); };
    for (std::size_t from = 0; from <= text.size(); from = part_ends(from) + 1) {
        const std::string part = text.substr(from, part_ends(from) - from);
        const std::size_t dash = part.find('-');
        const std::uint64_t first = read_count(what, part.substr(0, dash), 0, most);
        const std::uint64_t last = dash == part.npos ? first : read_count(what, part.substr(dash + 1), first, most);
        if (last - first >= kLongest - list.size()) throw bad_value(what, "a shorter list", "one of 2^24 or more");
        for (std::uint64_t i = first; i <= last; ++i) list.push_back(static_cast<std::uint32_t>(i));
    }
    return list;
}

Option add_text(CLI::App& verb, const std::string& names, std::string& value, const std::string& help) {
    CLI::Option* option = verb.add_option_function<std::string>(
                                  names, [&value](const std::string& text) { value = text; }, help)
                              ->type_name("TEXT")
                              ->take_last();
    // A text may be empty, a name may not: most often a script's variable has no value.
    option->check([option](const std::string& text) {
        const bool is_name = option->get_type_name() != "TEXT";
        return text.empty() && is_name ? "expected " + option->get_type_name() + ", got nothing" : std::string();
    });
    return Option(option);
}

Option add_scaled_paths(CLI::App& verb, const std::string& names, std::vector<ScaledPath>& values,
                        const std::string& help) {
    const auto take = [&values, option = names](const std::string& text) {
        if (text.empty()) throw bad_value(option, "PATH or PATH:SCALE", text);
        ScaledPath value{text};
        const std::size_t colon = text.rfind(':');
        std::error_code error;
        if (colon != text.npos && !std::filesystem::exists(text, error)) {
            const char* end = text.data() + text.size();
            const auto [stopped, failed] = std::from_chars(text.data() + colon + 1, end, value.scale);
            if (failed == std::errc{} && stopped == end && std::abs(value.scale) <= 1e6f)
                value.path.resize(colon);
            else if (std::filesystem::exists(text.substr(0, colon), error))
                throw bad_value(option, "PATH:SCALE with a scale of at most 1000000", text);
            else
                value.scale = 1.0f;
        }
        values.push_back(std::move(value));
    };
    return add_values(verb, names, take, help).type_name("PATH[:SCALE]");
}

Option add_count(CLI::App& verb, const std::string& names, std::uint32_t& value, std::uint32_t least,
                 std::uint32_t most, const std::string& help) {
    return add_value(
               verb, names,
               [&value, least, most, name = last_name(names)](const std::string& text) {
                   value = static_cast<std::uint32_t>(read_count(name, text, least, most));
               },
               help)
        .type_name("N");
}

Option add_size(CLI::App& verb, const std::string& names, std::uint64_t& value, const std::string& help) {
    return add_value(
               verb, names,
               [&value, name = last_name(names)](const std::string& text) {
                   constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
                   const std::size_t n_digits = std::min(text.find_first_not_of("0123456789"), text.size());
                   std::string unit = text.substr(n_digits);  // K, KB, KiB, in small letters too
                   for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
                   const std::size_t power = unit.empty() ? std::string::npos : std::string("kmg").find(unit.front());
                   const bool is_unit = power != std::string::npos &&
                                        (unit.size() == 1 || unit.substr(1) == "b" || unit.substr(1) == "ib");
                   const int shift = is_unit ? 10 * (static_cast<int>(power) + 1) : 0;
                   value = read_count(name, is_unit ? text.substr(0, n_digits) : text, 1, kMost >> shift) << shift;
               },
               help)
        .type_name("BYTES");
}

Option add_real(CLI::App& verb, const std::string& names, float& value, float least, float most,
                const std::string& help) {
    return add_value(
               verb, names,
               [&value, least, most, name = last_name(names)](const std::string& text) {
                   float read = 0;
                   const char* end = text.data() + text.size();
                   const auto [stopped, error] = std::from_chars(text.data(), end, read);
                   if (error != std::errc{} || stopped != end || !(read >= least && read <= most))
                       throw bad_value(name, "a number, " + range_words(least, most), text);
                   value = read;
               },
               help)
        .type_name("X");
}

Option add_tokens(CLI::App& verb, std::vector<Token>& tokens, const std::string& help) {
    return add_value(
               verb, "--tokens",
               [&tokens](const std::string& text) { tokens = read_list("--tokens", text, 0xffffffffu); }, help)
        .type_name("IDS");
}

std::string type_names(const std::vector<Type>& types) {
    std::vector<const char*> words;
    for (const Type type : types) words.push_back(type_name(type));
    return joined(words);
}

namespace {

/// A type as llama.cpp's users and others write it, in our spelling: Q8_0, Q4_K_M, FP16.
std::string usual_spelling(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    static constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
        {"q8_0", "q8"},  {"q4_0", "q4"},     {"fp32", "f32"},     {"float32", "f32"},
        {"fp16", "f16"}, {"float16", "f16"}, {"bfloat16", "bf16"}};
    for (const auto& other : kOthers)
        if (text == other.first) return std::string(other.second);
    const bool is_mixed = text.ends_with("_k_s") || text.ends_with("_k_m") || text.ends_with("_k_l");
    return is_mixed ? text.substr(0, text.size() - 2) : text;
}

}  // namespace

Option add_type(CLI::App& verb, const std::string& names, Type& value, const std::vector<Type>& types,
                const std::string& help) {
    return add_value(
               verb, names,
               [&value, types, name = last_name(names)](const std::string& text) {
                   const std::string usual = usual_spelling(text);
                   const auto found =
                       std::find_if(types.begin(), types.end(), [&](Type type) { return usual == type_name(type); });
                   if (found == types.end()) throw bad_value(name, "one of " + type_names(types), text);
                   value = *found;
               },
               help)
        .type_name("TYPE");
}

void add_kv(CLI::App& verb, Type& value) {
    add_type(verb, "--kv", value, {Type::f32, Type::f16, Type::q8, Type::q4},
             "how keys and values are cached: f32, f16, q8 or q4");
}

Option add_model(CLI::App& verb, std::string& path, const std::string& help) {
    const auto read = [&path](const std::string& given) {
        if (given.empty()) throw bad_value("MODEL", "a file", "an empty name");
        path = given;
    };
    return Option(verb.add_option_function<std::string>("MODEL", read, help)->type_name("")->option_text(" "));
}

void need_model(const std::string& path) {
    if (path.empty()) throw bad_value("MODEL", "a Fovea file", "none");
}

void add_form(CLI::App& verb, FormOptions& form) {
    add_text(verb, "--json-schema", form.schema_path, "a file: the answer is JSON that this schema validates")
        .type_name("FILE");
    add_text(verb, "--grammar", form.grammar_path, "a file: the answer fits this grammar (GBNF)").type_name("FILE");
    add_value(
        verb, "--regex",
        [&form](const std::string& text) {
            form.regex = text;
            form.has_regex = true;
        },
        "the answer matches this regular expression")
        .type_name("TEXT");
    add_flag(verb, "--compact", form.compact, "with --json-schema: no space between the answer's parts");
}

void add_common(CLI::App& verb, CommonOptions& common) {
    add_count(verb, "--threads", common.n_threads, 1, kMaxThreads, "threads (default: this machine's fast cores)");
    add_text(verb, "--cpus", common.cpus, "run on these CPUs only, such as 0,2-3").type_name("LIST");
    add_text(verb, "--isa", common.isa, "instruction set (default: the best): " + joined(isa_names()))
        .type_name("NAME");
    add_flag(verb, "--json", common.json, "print one JSON object on standard output");
}

void add_verify(CLI::App& verb, CommonOptions& common) {
    add_flag(verb, "--verify", common.verify, "check every byte of the model's file against its checksums first");
}

void settle(CommonOptions& common) {
    if (!common.cpus.empty()) {
        const std::vector<std::uint32_t> cpus = read_list("--cpus", common.cpus, kMaxCpu);
#ifdef __linux__
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
        // The kernel quietly drops CPUs that are not there; a pin that is not what was asked for is an error.
        cpu_set_t had;
        if (sched_setaffinity(0, sizeof set, &set) != 0)
            throw host::Error("--cpus: expected CPUs that this process may use, got " + common.cpus);
        if (sched_getaffinity(0, sizeof had, &had) != 0 || !CPU_EQUAL(&set, &had))
            throw host::Error("--cpus: expected all of " + common.cpus + ", got " + std::to_string(CPU_COUNT(&had)) +
                              " of them");
#else
        throw host::Error("--cpus: expected a system that can pin threads, got one that cannot");
#endif
    }
    if (!common.isa.empty()) {
        bool available = false;
        for (const char* name : isa_names()) available = available || common.isa == name;
        if (!available) throw host::Error("--isa: expected one of " + joined(isa_names()) + ", got " + common.isa);
    }
    if (common.n_threads == 0) common.n_threads = default_threads();
}

}  // namespace fovea

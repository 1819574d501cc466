#include "tools/options/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#ifdef __linux__
#include <sched.h>
#endif

#include "convert/open/source_files.h"
#include "fovea/executors.h"
#include "fovea/host/runtime.h"
#include "host/base/ascii.h"
#include "host/base/decimal.h"
#include "host/base/error.h"
#include "host/base/output_file.h"
#include "host/base/words.h"
#include "tools/options/ranks.h"
#include "tools/terminal/usage_error.h"

namespace fovea {
namespace {

constexpr std::uint32_t kMaxCpu = 1023;  // what a cpu_set_t holds
constexpr char kThreads[] = "FOVEA_THREADS";

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

/// The executors of this build, the default first.
std::span<const char* const> executor_names() {
    static constexpr const char* kNames[] = {"openmp", "own"};
    return std::span(kNames).subspan(openmp_executor().run ? 0 : 1);
}

/// "f32, f16 or q8".
std::string type_names(const std::vector<Type>& types) {
    std::vector<const char*> words;
    for (const Type type : types) words.push_back(type_name(type));
    return joined(words);
}

/// A type as llama.cpp's users and others write it, in our spelling: Q8_0, Q4_K_M, FP16.
std::string usual_spelling(const std::string& given) {
    const std::string text = lower(given);
    static constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
        {"q8_0", "q8"},  {"q4_0", "q4"},     {"fp32", "f32"},     {"float32", "f32"},
        {"fp16", "f16"}, {"float16", "f16"}, {"bfloat16", "bf16"}};
    for (const auto& other : kOthers)
        if (text == other.first) return std::string(other.second);
    const bool is_mixed = text.ends_with("_k_s") || text.ends_with("_k_m") || text.ends_with("_k_l");
    return is_mixed ? text.substr(0, text.size() - 2) : text;
}

bool works_by_ranks(std::string_view verb) {
    static constexpr std::string_view kVerbs[] = {"run",     "chat", "serve",  "logits",    "bench",
                                                  "certify", "eval", "encode", "transcribe"};
    return std::find(std::begin(kVerbs), std::end(kVerbs), verb) != std::end(kVerbs);
}

}  // namespace

void Option::each(std::function<void()> seen) const {
    option_->each([seen = std::move(seen)](const std::string&) { seen(); });
}

Verb::Verb(CLI::App& app, const char* name, const char* description) : app_(*app.add_subcommand(name, description)) {}

void Verb::set_action(std::function<void()> action) const {
    app_.callback([action = std::move(action), outputs = outputs_, name = app_.get_name()] {
        if (!works_by_ranks(name)) refuse_by_ranks(name);
        check_outputs(*outputs);
        action();
    });
}

void Verb::flag(const char* names, bool& value, const char* help) const { app_.add_flag(names, value, help); }

Option Verb::flag(const char* names, const char* help) const {
    return Option(app_.add_flag_callback(
        names, [] {}, help));
}

// Texts are taken as they stand, so that what is wrong with one is said in our words.
Option Verb::option(const char* names, std::string_view help, const char* kind, ReadText read) const {
    CLI::Option* option = app_.add_option_function<std::string>(names, std::move(read), std::string(help));
    return Option(option->take_last()->type_name(kind));
}

Option Verb::repeated(const char* names, const char* help, const char* kind, ReadText read) const {
    const auto read_each = [read = std::move(read)](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) read(text);
    };
    CLI::Option* option = app_.add_option_function<std::vector<std::string>>(names, read_each, help);
    return Option(option->expected(1)->allow_extra_args(false)->take_all()->type_name(kind));
}

Option Verb::argument(const char* name, std::string& value, const char* help) const {
    return Option(app_.add_option(name, value, help)->type_name("")->option_text(" "));
}

void Verb::input_argument(const char* name, std::string& value, const char* help) const {
    argument(name, value, help).option_->each(keep_source);
}

void Verb::input_arguments(const char* name, std::vector<std::string>& values, const char* help) const {
    app_.add_option(name, values, help)->type_name("")->option_text(" ")->each(keep_source);
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

Option Verb::text(const char* names, Into<std::string> value, std::string_view help, const char* kind) const {
    const Option made = option(names, help, kind, [value](const std::string& text) { value.set(text); });
    if (std::string_view(kind) != "TEXT")  // most often a script's variable has no value
        made.option_->check([kind](const std::string& text) {
            return text.empty() ? std::string("expected ") + kind + ", got nothing" : std::string();
        });
    return made;
}

Option Verb::input(const char* names, Into<std::string> value, std::string_view help, const char* kind) const {
    const Option made = text(names, value, help, kind);
    made.option_->each(keep_source);
    return made;
}

Option Verb::output(const char* names, Into<std::string> value, std::string_view help) const {
    const Option made = text(names, value, help, "FILE");
    made.option_->transform(output_of_rank);
    made.option_->each([outputs = outputs_](const std::string& path) { outputs->push_back(path); });
    return made;
}

void Verb::texts(const char* names, std::vector<std::string>& values, const char* help) const {
    repeated(names, help, "TEXT", [&values](const std::string& text) { values.push_back(text); });
}

Option Verb::count(const char* names, Into<std::uint32_t> value, std::uint32_t least, std::uint32_t most,
                   const char* help) const {
    return option(names, help, "N", [value, least, most, name = last_name(names)](const std::string& text) {
        value.set(static_cast<std::uint32_t>(read_count(name, text, least, most)));
    });
}

Option Verb::count_or_any(const char* names, Into<std::uint32_t> value, std::uint32_t least, const char* help) const {
    return option(names, help, "N", [value, least, names](const std::string& text) {
        value.set(text == "-1" ? kAny : static_cast<std::uint32_t>(read_count(names, text, least, kAny - 1)));
    });
}

void Verb::size(const char* names, Into<std::uint64_t> value, const char* help) const {
    option(names, help, "BYTES", [value, name = last_name(names)](const std::string& text) {
        constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
        const std::size_t n_digits = std::min(text.find_first_not_of("0123456789"), text.size());
        const std::string unit = lower(text.substr(n_digits));  // K, KB, KiB, in small letters too
        const std::size_t power = unit.empty() ? std::string::npos : std::string("kmg").find(unit.front());
        const bool is_unit =
            power != std::string::npos && (unit.size() == 1 || unit.substr(1) == "b" || unit.substr(1) == "ib");
        const int shift = is_unit ? 10 * (static_cast<int>(power) + 1) : 0;
        value.set(read_count(name, is_unit ? text.substr(0, n_digits) : text, 1, kMost >> shift) << shift);
    });
}

Option Verb::real(const char* names, Into<float> value, float least, float most, const char* help) const {
    return option(names, help, "X", [value, least, most, name = last_name(names)](const std::string& text) {
        float read = 0;
        if (!read_decimal(text, read) || !(read >= least && read <= most))
            throw bad_value(name, "a number, " + range_words(least, most), text);
        value.set(read);
    });
}

Option Verb::tokens(std::vector<Token>& tokens, const char* help) const {
    return option("--tokens", help, "IDS",
                  [&tokens](const std::string& text) { tokens = read_list("--tokens", text, kAny); });
}

void Verb::type(const char* names, Into<Type> value, const std::vector<Type>& types, std::string_view help) const {
    option(names, help, "TYPE", [value, types, names](const std::string& text) {
        const std::string usual = usual_spelling(text);
        for (const Type type : types)
            if (usual == type_name(type)) return value.set(type);
        throw bad_value(names, "one of " + type_names(types), text);
    });
}

void Verb::weight_type(Into<Type> value, const std::string& help) const {
    const std::vector<Type> all(std::begin(kTypes), std::end(kTypes));
    type("--type", value, all, "of " + help + ": " + type_names(all));
}

void Verb::kv(Type& value) const {
    type("--kv", value, {Type::f32, Type::f16, Type::q8, Type::q4},
         "how keys and values are cached: f32, f16, q8 or q4");
}

void Verb::scaled_paths(const char* names, std::vector<ScaledPath>& values, const char* help) const {
    repeated(names, help, "PATH[:SCALE]", [&values, names](const std::string& text) {
        if (text.empty()) throw bad_value(names, "PATH or PATH:SCALE", text);
        ScaledPath value{text};
        const std::size_t colon = text.rfind(':');
        std::error_code ignored;
        if (colon != text.npos && !std::filesystem::exists(text, ignored)) {
            if (read_decimal(text.substr(colon + 1), value.scale) && std::abs(value.scale) <= 1e6f)
                value.path.resize(colon);
            else if (std::filesystem::exists(text.substr(0, colon), ignored))
                throw bad_value(names, "PATH:SCALE with a scale of at most 1000000", text);
            else
                value.scale = 1.0f;
        }
        keep_source(value.path);
        values.push_back(std::move(value));
    });
}

void Verb::model(std::string& path, const char* help) const {
    const auto read = [&path](const std::string& given) {
        if (given.empty()) throw bad_value("MODEL", "a file", "an empty name");
        path = given;
    };
    app_.add_option_function<std::string>("MODEL", read, help)->type_name("")->option_text(" ")->each(keep_source);
}

void need_model(const std::string& path) {
    if (path.empty()) throw bad_value("MODEL", "a Fovea file", "none");
}

void Verb::common(CommonOptions& common) const {
    count("--threads", common.n_threads, 1, kMaxThreads,
          "threads (default: FOVEA_THREADS, or this machine's fast cores)");
    text("--cpus", common.cpus, "run on these CPUs only, such as 0,2-3", "LIST");
    const std::string executor = common.executor.empty() ? executor_names()[0] : common.executor;
    text("--executor", common.executor,
         "whose threads compute (default: " + executor + "): " + joined(executor_names()), "NAME");
    text("--isa", common.isa, "instruction set (default: the best): " + joined(isa_names()), "NAME");
    flag("--json", common.json, "print one JSON object on standard output");
    if (!works_by_ranks(app_.get_name())) return;
    text("--shares", common.shares, "parts of the work for each rank, such as 3,1, or speed: as fast as each is",
         "LIST");
    count("--stages", common.n_stages, 1, kMaxRanks, "ranks in so many stages, a run of layers in each (default: 1)");
}

void Verb::opening(CommonOptions& options) const {
    flag("--verify", options.verify, "check every byte of the model's file against its checksums first");
    common(options);
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
    share_by_ranks(common.shares, common.n_stages);
    const std::span<const char* const> executors = executor_names();
    if (!common.executor.empty() && std::find(executors.begin(), executors.end(), common.executor) == executors.end())
        throw host::Error("--executor: expected one of " + joined(executors) + ", got " + common.executor);
    host::use_executor(common.executor == "own" ? kOwnThreads : openmp_executor());
    if (!common.isa.empty()) {
        const std::span<const char* const> names = isa_names();
        if (std::find(names.begin(), names.end(), common.isa) == names.end())
            throw host::Error("--isa: expected one of " + joined(isa_names()) + ", got " + common.isa);
    }
    const char* threads = std::getenv(kThreads);
    if (common.n_threads == 0 && threads && *threads)
        common.n_threads = static_cast<std::uint32_t>(read_count(kThreads, threads, 1, kMaxThreads));
    if (common.n_threads == 0) common.n_threads = threads_of_rank(default_threads());
}

}  // namespace fovea

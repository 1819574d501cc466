// fovea plan: exact memory and parameters, before any memory is taken and for shapes no file is needed for; and whether
// a board has that memory.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "fovea/constraint.h"
#include "fovea/fovea.h"
#include "fovea/mapping.h"
#include "fovea/sampler.h"
#include "host/base/error.h"
#include "host/base/words.h"
#include "host/grammar/grammar.h"
#include "host/model/report.h"
#include "host/show/picture.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/options/presets.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

struct PlanOptions {
    CommonOptions common;
    std::string model, preset, picture, form;
    Limits limits;
    std::uint64_t flash = 0, ram = 0;  // what a board has; 0: not asked
};

// What the library itself may take; tests/bare_metal holds it to that.
constexpr std::uint64_t kLibraryBytes = 64 << 10, kStackBytes = 8 << 10, kFormCodeBytes = 8 << 10;

/// What answers of a form take beside the model.
struct FormBytes {
    std::uint64_t flash = 0;  ///< the form's file and the engine's code for it
    std::uint64_t ram = 0;    ///< the state of one answer, and the C interface's handles

    [[nodiscard]] bool any() const { return flash != 0; }
};

[[nodiscard]] FormBytes form_bytes(const std::string& path, const host::Opened& opened) {
    if (path.empty()) return {};
    Mapping file;
    require(map_file(path.c_str(), file), path);
    if (!grammar::begins_form(file.bytes()))
        throw host::Error(path + ": expected a form that fovea grammar wrote, got another kind");
    Constraint constraint;
    require(open_constraint(opened.need_tokenizer(), file.bytes(), {}, constraint), path);
    return {file.bytes().size() + kFormCodeBytes, constraint_state_bytes(constraint) + 2 * FOVEA_CONSTRAINT_BYTES};
}

/// What a firmware of a model, the library and one session takes, and whether a board has it.
class Board {
public:
    Board(const Config& config, std::uint64_t file_bytes, FormBytes form, const PlanOptions& options)
        : config_(config), options_(options), form_(form) {
        flash_ = file_bytes + kLibraryBytes + form.flash;
        ram_ = ram_for(options.limits);
        if (options.flash && flash_ > options.flash)
            misses("flash", flash_, options.flash);
        else if (options.ram && ram_ > options.ram)
            misses_ram();
    }

    [[nodiscard]] bool fits() const { return misses_.empty(); }
    /// "fits", or what does not.
    [[nodiscard]] std::string verdict() const { return fits() ? "fits" : "does not fit: " + misses_; }

    void print() const {
        std::printf("\nboard:\n");
        if (options_.flash)
            print_line("flash", flash_, options_.flash, form_.any() ? "model, library, form" : "model, library");
        if (options_.ram)
            print_line("RAM", ram_, options_.ram,
                       form_.any() ? "arena, logits, sampler, form, stack" : "arena, logits, sampler, stack");
        std::printf("%s\n", verdict().c_str());
    }
    [[nodiscard]] nlohmann::ordered_json json() const {
        nlohmann::ordered_json object{{"fits", fits()}, {"flash_bytes", flash_}, {"ram_bytes", ram_}};
        if (!fits()) object["misses"] = misses_;
        if (largest_context_) object["largest_context"] = largest_context_;
        return object;
    }

private:
    static void print_line(const char* what, std::uint64_t wanted, std::uint64_t had, const char* parts) {
        std::printf("  %-14s %20s of %17s  %s\n", what, with_separators(wanted).c_str(), with_separators(had).c_str(),
                    parts);
    }

    [[nodiscard]] std::uint64_t ram_for(const Limits& limits) const {
        Plan plan;
        require(make_plan(config_, limits, plan));
        const std::uint64_t n_logits = config_.decoder.has_output_head ? config_.decoder.vocab_size : 0;
        return plan.arena_bytes + n_logits * (sizeof(float) + sizeof(Candidate)) + form_.ram + kStackBytes;
    }

    void misses(const char* what, std::uint64_t wanted, std::uint64_t had) {
        misses_ = std::string(what) + ": expected " + with_separators(wanted) + " bytes, got " + with_separators(had);
    }

    /// Looks for the most positions that would do, with at most as many tokens together as asked for.
    void misses_ram() {
        misses("RAM", ram_, options_.ram);
        const bool counts_positions = config_.decoder.has_output_head && !config_.encoder.n_layers;
        std::uint32_t too_many = counts_positions ? config_.decoder.max_positions + 1 : 1;
        while (too_many - largest_context_ > 1) {  // an arena never shrinks with its positions
            Limits limits = options_.limits;
            limits.max_kv_len = largest_context_ + (too_many - largest_context_) / 2;
            limits.max_batch = std::min(limits.max_batch, limits.max_kv_len);
            (ram_for(limits) <= options_.ram ? largest_context_ : too_many) = limits.max_kv_len;
        }
        if (largest_context_)
            misses_ += "; the largest context that would: " + std::to_string(largest_context_);
        else
            misses_ += "; no context would";
    }

    const Config& config_;
    const PlanOptions& options_;
    const FormBytes form_;
    std::uint64_t flash_ = 0, ram_ = 0;
    std::string misses_;
    std::uint32_t largest_context_ = 0;
};

void print_json(const std::string& name, const Plan& plan, const ParameterCount& count, const Board* board) {
    nlohmann::ordered_json object{{"model", name},
                                  {"arena_bytes", plan.arena_bytes},
                                  {"max_kv_len", plan.limits.max_kv_len},
                                  {"max_batch", plan.limits.max_batch},
                                  {"n_threads", plan.limits.n_threads},
                                  {"parts", nlohmann::ordered_json::array()}};
    for (std::uint32_t i = 0; i < plan.n_parts; ++i)
        object["parts"].push_back(
            {{"name", plan.parts[i].name}, {"offset", plan.parts[i].offset}, {"bytes", plan.parts[i].bytes}});
    object["parameters"] = {{"head", count.head},
                            {"layer_attention", count.layer_attention},
                            {"attention", count.attention},
                            {"feed_forward", count.feed_forward},
                            {"embedding", count.embedding},
                            {"output", count.output},
                            {"biases_and_norms", count.biases_and_norms},
                            {"total", count.total}};
    if (board) object["board"] = board->json();
    std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_arena(const Plan& plan) {
    std::printf("\narena: %u positions, %u tokens together, %u %s\n", plan.limits.max_kv_len, plan.limits.max_batch,
                plan.limits.n_threads, plan.limits.n_threads == 1 ? "thread" : "threads");
    std::printf("  %-14s %20s %20s\n", "part", "offset", "bytes");
    for (std::uint32_t i = 0; i < plan.n_parts; ++i)
        std::printf("  %-14s %20s %20s\n", plan.parts[i].name, with_separators(plan.parts[i].offset).c_str(),
                    with_separators(plan.parts[i].bytes).c_str());
    std::printf("  %-14s %20s %20s\n", "total", "", with_separators(plan.arena_bytes).c_str());
}

void print_plan(const std::string& name, const Config& config, std::uint64_t file_bytes, FormBytes form,
                const PlanOptions& options) {
    Plan plan;
    require(make_plan(config, options.limits, plan), name);
    const ParameterCount count = count_parameters(config);
    std::optional<Board> board;
    if (options.flash || options.ram) board.emplace(config, file_bytes, form, options);
    if (!options.picture.empty() && options.picture != "-")
        write_picture(options.picture,
                      draw_arena("arena of " + token_label(name), plan, picture_kind(options.picture)));
    if (options.common.json) {
        print_json(name, plan, count, board ? &*board : nullptr);
    } else {
        std::printf("%s\n%s\n%s", one_line(name).c_str(), describe_config(config).c_str(),
                    describe_parameters(count, config).c_str());
        if (options.picture == "-")
            std::printf("\n%s", draw_arena("arena", plan, PictureKind::text).c_str());
        else
            print_arena(plan);
        if (board) board->print();
    }
    if (board && !board->fits()) throw host::Error(name + ": " + board->verdict());
}

void make_and_print(PlanOptions& options) {
    if (options.model.empty() == options.preset.empty())
        throw UsageError(std::string("MODEL or --preset NAME: expected one of them, got ") +
                         (options.model.empty() ? "neither" : "both"));
    if (!options.picture.empty() && picture_kind(options.picture) == PictureKind::text && options.common.json)
        throw UsageError("--picture: expected a file beside --json, got -");
    if (options.flash && options.model.empty())
        throw UsageError("--flash: expected a MODEL whose bytes count, got none");
    if (!options.form.empty() && (options.model.empty() || !(options.flash || options.ram)))
        throw UsageError("--form: expected a MODEL with --flash or --ram, got none");
    if (!options.common.n_threads && (options.flash || options.ram)) options.common.n_threads = 1;  // a board, not this
    settle(options.common);
    options.limits.n_threads = options.common.n_threads;
    if (!options.preset.empty()) return print_plan(options.preset, preset_config(options.preset), 0, {}, options);
    const host::Opened opened = open_path(options.model);
    if (options.limits.max_kv_len) opened.need_logits();  // others cache no positions
    print_plan(opened.name, opened.model.config(), opened.model.bytes().size(), form_bytes(options.form, opened),
               options);
}

}  // namespace

void add_plan(CLI::App& app) {
    constexpr std::uint32_t kAny = 0xffffffffu;
    auto options = std::make_shared<PlanOptions>();
    CLI::App& verb = add_verb(app, "plan", "Exact memory and parameters, of a file or of a published shape");
    add_model(verb, options->model);
    add_text(verb, "--preset", options->preset, "instead of a file: " + joined(preset_names())).type_name("NAME");
    add_count(verb, "--context", options->limits.max_kv_len, 1, kAny, "positions to hold (default: all the model has)");
    add_count(verb, "--batch", options->limits.max_batch, 1, kAny,
              "tokens computed together (default: chosen by the plan)");
    add_kv(verb, options->limits.kv_type);
    add_text(verb, "--picture", options->picture, "draw the arena: .svg, .html or - (here)").type_name("FILE");
    add_size(verb, "--flash", options->flash, "does the model with the library fit into this: 2M");
    add_size(verb, "--ram", options->ram, "does a session fit into this: 512K");
    add_text(verb, "--form", options->form, "and answers of this form, which fovea grammar wrote").type_name("FILE");
    add_common(verb, options->common);
    set_action(verb, [options] { make_and_print(*options); });
}

}  // namespace fovea

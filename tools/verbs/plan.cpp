// fovea plan: exact memory and parameters, before any memory is taken and for shapes no file is needed for; and whether
// a board has that memory.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "fovea/mapping.h"
#include "host/base/error.h"
#include "host/base/json.h"
#include "host/base/words.h"
#include "host/grammar/grammar.h"
#include "host/model/report.h"
#include "host/show/picture.h"
#include "host/translate/beam_search.h"
#include "tools/measure/board.h"
#include "tools/options/opened.h"
#include "tools/options/presets.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/plan_memory.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

/// The form's file, where one is given.
Mapping map_form(const std::string& path) {
    Mapping file;
    if (path.empty()) return file;
    require(map_file(path.c_str(), file), path);
    if (!grammar::begins_form(file.bytes()))
        throw host::Error(path + ": expected a form that fovea grammar wrote, got another kind");
    return file;
}

void print_json(const std::string& name, const MemoryPlan& memory, const ParameterCount& count, const Board* board) {
    const Plan& plan = memory.plan;
    Json object{{"model", name},
                {"arena_bytes", plan.arena_bytes},
                {"max_kv_len", plan.limits.max_kv_len},
                {"max_batch", plan.limits.max_batch},
                {"n_threads", plan.limits.n_threads},
                {"parts", Json::array()}};
    object.update(memory.settings);
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
    std::printf("%s\n", json_text(object).c_str());
}

void print_arena(const MemoryPlan& memory) {
    const Plan& plan = memory.plan;
    std::printf("\n%s\n", one_line(memory.heading).c_str());
    std::printf("  %-15s %20s %20s\n", "part", "offset", "bytes");
    for (std::uint32_t i = 0; i < plan.n_parts; ++i)
        std::printf("  %-15s %20s %20s\n", plan.parts[i].name, with_separators(plan.parts[i].offset).c_str(),
                    with_separators(plan.parts[i].bytes).c_str());
    std::printf("  %-15s %20s %20s\n", "total", "", with_separators(plan.arena_bytes).c_str());
}

void print_plan(const std::string& name, const Config& config, const MemoryPlan& memory, const Board* board,
                const PlanOptions& options) {
    const ParameterCount count = count_parameters(config);
    if (!options.picture.empty() && options.picture != "-")
        write_picture(options.picture,
                      draw_arena("arena of " + token_label(name), memory.plan, picture_kind(options.picture)));
    if (options.common.json) {
        print_json(name, memory, count, board);
    } else {
        std::printf("%s\n%s\n%s", one_line(name).c_str(), describe_config(config).c_str(),
                    describe_parameters(count, config).c_str());
        if (options.picture == "-")
            std::printf("\n%s", draw_arena("arena", memory.plan, PictureKind::text).c_str());
        else
            print_arena(memory);
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
    const bool asks_board = options.flash || options.ram;
    if (asks_board && options.model.empty())
        throw UsageError(std::string(options.flash ? "--flash" : "--ram") +
                         ": expected a MODEL whose bytes count, got none");
    if (!options.form.empty() && !asks_board)
        throw UsageError("--form: expected a MODEL with --flash or --ram, got none");
    if (!options.common.n_threads && asks_board) options.common.n_threads = 1;  // a board, not this
    settle(options.common);
    options.limits.n_threads = options.common.n_threads;
    if (!options.preset.empty()) {
        const Config config = preset_config(options.preset);
        return print_plan(options.preset, config, plan_session(options.preset, config, options.limits), nullptr,
                          options);
    }
    const host::Opened opened = open_path(options.model);
    const MemoryPlan memory = plan_memory(opened, options);
    const Mapping form = map_form(options.form);
    std::optional<Board> board;
    if (asks_board)
        board.emplace(BoardProgram{.model = opened.model,
                                   .form = form.bytes(),
                                   .limits = options.limits,
                                   .max_text_bytes = options.max_text_bytes},
                      BoardMemory{.flash = options.flash, .ram = options.ram}, opened.name);
    print_plan(opened.name, opened.model.config(), memory, board ? &*board : nullptr, options);
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
    add_count(verb, "--beams", options->n_beams, 1, kMostBeams,
              "of run, by a model that writes one text from another (default: what the model says)");
    add_real(verb, "--seconds", options->seconds, 0.01f, 86400,
             "of a recording, by a model that hears (default: a window, 30); transcribe decodes files beside that");
    add_flag(verb, "--words", options->words, "and the times of its words");
    add_text(verb, "--picture", options->picture, "draw the arena: .svg, .html or - (here)").type_name("FILE");
    add_size(verb, "--flash", options->flash, "do the model and the library fit into this: 2M");
    add_size(verb, "--ram", options->ram, "does all that a program needs fit into this: 512K");
    add_count(verb, "--text-bytes", options->max_text_bytes, 0, kAny,
              "with --ram: of the longest text to make tokens of (default: 64)");
    add_text(verb, "--form", options->form, "and answers of this form, which fovea grammar wrote").type_name("FILE");
    add_common(verb, options->common);
    set_action(verb, [options] { make_and_print(*options); });
}

}  // namespace fovea

// fovea plan: exact memory and parameters, before any memory is taken and for shapes no file is needed for.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "opened.h"
#include "options.h"
#include "picture.h"
#include "presets.h"
#include "refusal.h"
#include "report.h"
#include "verbs.h"

namespace fovea {
namespace {

struct PlanOptions {
    CommonOptions common;
    std::string model, preset, picture;
    Limits limits;
};

void print_json(const std::string& name, const Plan& plan, const ParameterCount& count) {
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

void print_plan(const std::string& name, const Config& config, const PlanOptions& options) {
    Plan plan;
    require(make_plan(config, options.limits, plan), name);
    const ParameterCount count = count_parameters(config);
    if (!options.picture.empty() && options.picture != "-")
        write_picture(options.picture, draw_arena("arena of " + one_line(name), plan, picture_kind(options.picture)));
    if (options.common.json) return print_json(name, plan, count);
    std::printf("%s\n%s\n%s", one_line(name).c_str(), describe_config(config).c_str(),
                describe_parameters(count, config).c_str());
    if (options.picture == "-")
        std::printf("\n%s", draw_arena("arena", plan, PictureKind::text).c_str());
    else
        print_arena(plan);
}

void make_and_print(PlanOptions& options) {
    if (options.model.empty() == options.preset.empty())
        throw Refusal(std::string("MODEL or --preset NAME, want one of them, had ") +
                          (options.model.empty() ? "neither" : "both"),
                      2);
    if (!options.picture.empty() && picture_kind(options.picture) == PictureKind::text && options.common.json)
        throw Refusal("--picture, want a file beside --json, had -", 2);
    settle(options.common);
    options.limits.n_threads = options.common.n_threads;
    if (!options.preset.empty()) return print_plan(options.preset, preset_config(options.preset), options);
    const OpenedModel opened = open_path(options.model);
    print_plan(opened.name, opened.model.config(), options);
}

}  // namespace

void add_plan(CLI::App& app) {
    constexpr std::uint32_t kAny = 0xffffffffu;
    auto options = std::make_shared<PlanOptions>();
    CLI::App& verb = *app.add_subcommand("plan", "Exact memory and parameters, of a file or of a published shape");
    add_model(verb, options->model);
    add_text(verb, "--preset", options->preset, "instead of a file: " + joined(preset_names()))->type_name("NAME");
    add_count(verb, "--context", options->limits.max_kv_len, 1, kAny, "positions to hold (default: all the model has)");
    add_count(verb, "--batch", options->limits.max_batch, 1, kAny,
              "tokens computed together (default: chosen by the plan)");
    add_kv(verb, options->limits.kv_type);
    add_text(verb, "--picture", options->picture, "draw the arena: .svg, .html or - (here)")->type_name("FILE");
    add_common(verb, options->common);
    verb.callback([options] { make_and_print(*options); });
}

}  // namespace fovea

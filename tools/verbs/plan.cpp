// fovea plan: exact memory and parameters, before any memory is taken and for shapes no file is needed for; and whether
// a board has that memory.
#include <cmath>

#include "fovea/mapping.h"
#include "fovea/ranks.h"
#include "fovea/sound.h"
#include "host/grammar/grammar.h"
#include "host/model/report.h"
#include "host/show/picture.h"
#include "host/speech/speech_engine.h"
#include "host/translate/beam_search.h"
#include "host/translate/source_memory.h"
#include "tools/measure/board.h"
#include "tools/options/presets.h"
#include "tools/options/ranks.h"
#include "tools/verbs/run_options.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct PlanOptions {
    CommonOptions common;
    std::string model, preset, picture, form;
    Limits limits;
    std::uint32_t n_beams = 0;  ///< 0: as many as the model says
    float seconds = 0;          ///< of a recording; 0: a window
    bool words = false;
    std::uint64_t flash = 0, ram = 0;  ///< what a board has; 0: not asked
    std::uint32_t max_text_bytes = 64;
    std::uint32_t n_machines = 0;  ///< 0: not asked
    std::uint32_t n_stages = 1;
    std::string shares;  ///< empty: even ones
};

/// All that the verb for a model takes beside its file.
struct MemoryPlan {
    Plan plan;                       ///< parts one after the other
    std::string heading;             ///< for what
    Json settings = Json::object();  ///< beside the limits
};

/// Parts of a plan, one after the other.
class PartList {
public:
    explicit PartList(const Limits& limits) { made_.plan.limits = limits; }
    PartList& add(const char* name, std::uint64_t bytes) {
        Plan& plan = made_.plan;
        if (bytes) plan.parts[plan.n_parts++] = {name, plan.arena_bytes, bytes};
        plan.arena_bytes += bytes;
        return *this;
    }
    PartList& add(const TwoStackPlan& stacks) {
        return add("workspace", stacks.workspace.arena_bytes)
            .add("memory", stacks.memories.arena_bytes)
            .add("text", stacks.texts.arena_bytes);
    }
    [[nodiscard]] MemoryPlan take(const std::string& heading, Json settings) {
        made_.heading = heading + ", " + counted(made_.plan.limits.n_threads, "thread");
        made_.settings = std::move(settings);
        return std::move(made_);
    }

private:
    MemoryPlan made_;
};

MemoryPlan plan_run(const host::Opened& opened, const PlanOptions& options) {
    const TargetPlan plan =
        Translator::plan(opened, {.limits = {.n_threads = options.limits.n_threads, .kv_type = options.limits.kv_type},
                                  .generator = RunOptions().limits(),
                                  .n_beams = options.n_beams});
    const std::uint32_t n_beams = plan.stacks.texts.limits.max_sequences;
    return PartList(plan.stacks.workspace.limits)
        .add(plan.stacks)
        .add("generator", plan.generator.arena_bytes)
        .add("beams", plan.search_bytes)
        .take("memory of run: sources of " + std::to_string(plan.stacks.memories.limits.max_kv_len) +
                  " tokens, texts of " + std::to_string(plan.stacks.texts.limits.max_kv_len) + ", " +
                  counted(n_beams, "beam"),
              {{"n_beams", n_beams}});
}

MemoryPlan plan_transcribe(const host::Opened& opened, const PlanOptions& options) {
    const Sound& sound = opened.model.config().encoder.sound;
    const SpeechPlan plan = SpeechWorkspace::plan(
        opened, {.n_threads = options.limits.n_threads, .kv_type = options.limits.kv_type, .words = options.words});
    const double window = static_cast<double>(window_samples(sound)) / sound.sample_rate;
    const double seconds = options.seconds > 0 ? static_cast<double>(options.seconds) : window;
    const auto n_samples = static_cast<std::size_t>(std::ceil(seconds * sound.sample_rate));
    const RecordingBytes recording = recording_bytes(opened.model, n_samples, opened.name);
    char length[40];
    std::snprintf(length, sizeof length, "%.10g", seconds);
    return PartList(plan.stacks.workspace.limits)
        .add(plan.stacks)
        .add("logits", plan.logits_bytes)
        .add("words", plan.word_bytes)
        .add("samples", recording.samples)
        .add("frames", recording.frames)
        .add("frames' scratch", recording.scratch)
        .take("memory of transcribe: a recording of " + std::string(length) +
                  (options.seconds > 0 ? " seconds" : " seconds, a window (--seconds says another length)"),
              {{"seconds", seconds}});
}

// Files without the metadata that those verbs read are for `encode` alone.
bool translates_by_run(const host::Opened& opened) {
    return opened.kind() == host::Kind::translation && !find_info(opened.model, "target").empty();
}
bool transcribes(const host::Opened& opened) {
    return opened.tokenizer.valid() && !find_info(opened.model, "speech").empty();
}

void check(const host::Opened& opened, const PlanOptions& options, bool translates, bool hears) {
    const auto refuse = [&](bool given, const char* name, const char* expected) {
        if (given)
            throw UsageError(std::string(name) + ": expected a model that " + expected + ", got " + opened.name +
                             ", which does not");
    };
    refuse(options.n_beams && !translates, "--beams", "writes one text from another");
    refuse(options.seconds > 0 && !hears, "--seconds", "hears and writes");
    refuse(options.words && !hears, "--words", "hears and writes");
    refuse(options.limits.max_batch && (translates || hears), "--batch", "has one stack");
    if (options.limits.max_kv_len) opened.need_logits();  // others cache no positions, or as many as they have
}

/// A session's.
MemoryPlan plan_session(const std::string& name, const Config& config, const Limits& limits) {
    MemoryPlan made;
    require(make_plan(config, limits, made.plan), name);
    const Limits& settled = made.plan.limits;
    made.heading = "arena: " + std::to_string(settled.max_kv_len) + " positions, " + std::to_string(settled.max_batch) +
                   " tokens together, " + counted(settled.n_threads, "thread");
    return made;
}

/// What `run` takes of a model that writes one text from another, `transcribe` of one that hears, and of others a session.
/// Refuses options that do nothing for such a model.
MemoryPlan plan_memory(const host::Opened& opened, const PlanOptions& options) {
    const bool translates = translates_by_run(opened), hears = transcribes(opened);
    check(opened, options, translates, hears);
    if (translates) return plan_run(opened, options);
    return hears ? plan_transcribe(opened, options) : plan_session(opened.name, opened.model.config(), options.limits);
}

/// The form's file, where one is given.
Mapping map_given_form(const std::string& path) {
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
    print_line(object);
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

/// What each of several ranks takes: its arena, the bytes of the file that its products read, and a row of logits where it follows
/// the first, as run and chat have it.
void print_ranks(const host::Opened& opened, const PlanOptions& options) {
    Json all = Json::array();
    const host::RankShares shares = read_shares(options.shares, options.n_stages, options.n_machines);
    const RankSplit split{shares.each.empty() ? nullptr : shares.each.data(), shares.n_stages};
    if (shares.by_speed) throw UsageError("--shares: expected numbers, got speed, which a plan does not know");
    for (std::uint32_t rank = 0; rank < options.n_machines; ++rank) {
        Limits limits = options.limits;
        limits.rank = static_cast<std::uint8_t>(rank), limits.n_ranks = static_cast<std::uint8_t>(options.n_machines);
        limits.split = &split;
        const MemoryPlan memory = plan_session(opened.name, opened.config(), limits);
        if (rank == 0 && !options.common.json)
            std::printf("%s\n%s\n  %-6s %20s %20s %20s\n", one_line(opened.name).c_str(),
                        one_line(memory.heading).c_str(), "rank", "arena bytes", "matrices' bytes", "logits' bytes");
        const std::uint64_t arena = memory.plan.arena_bytes, file = rank_bytes(opened.model, limits);
        const bool follows = rank && opened.kind() == host::Kind::text;
        const std::uint64_t logits = follows ? std::uint64_t{opened.config().decoder.vocab_size} * sizeof(float) : 0;
        all.push_back({{"rank", rank}, {"arena_bytes", arena}, {"matrix_bytes", file}, {"logits_bytes", logits}});
        if (!options.common.json)
            std::printf("  %-6u %20s %20s %20s\n", rank, with_separators(arena).c_str(), with_separators(file).c_str(),
                        with_separators(logits).c_str());
    }
    if (options.common.json) print_line({{"model", opened.name}, {"ranks", all}});
}

void make_and_print(PlanOptions& options) {
    if ((!options.shares.empty() || options.n_stages > 1) && !options.n_machines)
        throw UsageError(std::string(options.shares.empty() ? "--stages" : "--shares") +
                         ": expected --machines with it, got none");
    if (options.n_machines && (!options.preset.empty() || options.flash || options.ram || !options.picture.empty()))
        throw UsageError("--machines: expected a MODEL with --context, --batch and --kv at most, got more");
    check_one_source(options.model, options.preset);
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
    if (options.n_machines) return print_ranks(opened, options);
    const MemoryPlan memory = plan_memory(opened, options);
    const Mapping form = map_given_form(options.form);
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
    const auto declare = [](const Verb& verb, PlanOptions& o) {
        verb.model(o.model);
        verb.text("--preset", o.preset, "instead of a file: " + joined(preset_names()), "NAME");
        verb.count("--context", o.limits.max_kv_len, 1, kAny, "positions to hold (default: all the model has)");
        verb.count("--batch", o.limits.max_batch, 1, kAny, "tokens computed together (default: chosen by the plan)");
        verb.kv(o.limits.kv_type);
        verb.count("--beams", o.n_beams, 1, kMostBeams,
                   "of run, by a model that writes one text from another (default: what the model says)");
        verb.real(
            "--seconds", o.seconds, 0.01f, 86400,
            "of a recording, by a model that hears (default: a window, 30); transcribe decodes files beside that");
        verb.flag("--words", o.words, "and the times of its words");
        verb.count("--machines", o.n_machines, 2, kMaxRanks,
                   "what each of so many ranks takes (mpirun fovea run MODEL)");
        verb.text("--shares", o.shares, "with --machines: parts of the work for each, such as 3,1 (default: even)",
                  "LIST");
        verb.count("--stages", o.n_stages, 1, kMaxRanks, "with --machines: in so many stages, a run of layers in each");
        verb.output("--picture", o.picture, "draw the arena: .svg, .html or - (here)");
        verb.size("--flash", o.flash, "do the model and the library fit into this: 2M");
        verb.size("--ram", o.ram, "does all that a program needs fit into this: 512K");
        verb.count("--text-bytes", o.max_text_bytes, 0, kAny,
                   "with --ram: of the longest text to make tokens of (default: 64)");
        verb.input("--form", o.form, "and answers of this form, which fovea grammar wrote");
        verb.common(o.common);
    };
    add_verb<PlanOptions>(app, "plan", "Exact memory and parameters, of a file or of a published shape", make_and_print,
                          declare);
}

}  // namespace fovea

// fovea encode: vectors of encoders, of decoders beside a memory, of both; of texts where the model reads ids.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "host/base/error.h"
#include "host/model/stacks.h"
#include "host/model/texts.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/show/arrays.h"
#include "tools/show/view.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/usage_error.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

using Shape = std::vector<std::uint64_t>;

/// The files of one side: its rows, and what hides parts of them.
struct SideFiles {
    std::string rows, mask, padding;
    [[nodiscard]] bool given() const { return !rows.empty() || !mask.empty() || !padding.empty(); }
};

struct VectorOptions {
    CommonOptions common;
    ViewOptions view;
    std::string model, text, texts, output;
    SideFiles source, target, memory;
    std::vector<Token> tokens;  // of --tokens
    std::optional<std::string> prompt_name;
    bool has_text = false, causal = false, seq_first = false, cross = false, of_encoder = false, head = false;
    std::uint32_t repeat = 1;
    Type kv_type = Type::f32;
};

/// Rows of one side, packed sequence by sequence.
struct Side {
    FloatArray array;
    std::vector<Token> ids, types;
    std::vector<std::uint32_t> lengths;
    bool batched = true;

    [[nodiscard]] std::uint32_t longest() const {
        return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    }
    [[nodiscard]] std::uint64_t n_rows() const {
        std::uint64_t n = 0;
        for (const std::uint32_t length : lengths) n += length;
        return n;
    }
};

Side read_side(const std::string& path, std::uint32_t d_model, bool seq_first) {
    Side side;
    side.array = read_floats(path);
    const Shape& s = side.array.shape;
    if ((s.size() != 2 && s.size() != 3) || s.back() != d_model)
        throw host::Error(path + ": shape: expected [batch, seq, " + std::to_string(d_model) + "] or [seq, " +
                          std::to_string(d_model) + "], got " + in_words(s));
    side.batched = s.size() == 3;
    if (seq_first && side.batched) side.array = swap_first_two(side.array);
    const auto n_rows = static_cast<std::uint32_t>(side.array.shape[side.array.shape.size() - 2]);
    side.lengths.assign(side.batched ? side.array.shape[0] : 1, n_rows);
    return side;
}

/// -p's text, or the lines of --texts, cut to what the model takes; or the ids of --tokens as they are.
std::vector<TextTokens> read_texts(const VectorOptions& options, const host::Opened& opened) {
    if (!options.tokens.empty()) {
        TextTokens given;
        given.ids = options.tokens;
        given.n_whole = given.ids.size();
        if (options.prompt_name)
            throw UsageError("--prompt-name: expected none with --tokens, got " + *options.prompt_name);
        return {given};
    }
    std::vector<Text> texts;
    if (options.has_text) texts.push_back({options.text, {}});
    if (!options.texts.empty()) texts = read_text_lines(options.texts);
    std::vector<TextTokens> tokens;
    const std::string prompt = prompt_before(prompts_of(opened.model, opened.name), options.prompt_name);
    for (Text& text : texts) {
        if (!text.pair) text.text.insert(0, prompt);
        tokens.push_back(tokens_of(opened, text));
    }
    note_cut(opened, tokens);
    return tokens;
}

/// Whether there is one text, whose result has no dimension of texts.
bool is_one(const VectorOptions& options) { return options.has_text || !options.tokens.empty(); }

/// Texts as one call's rows.
Side packed(const VectorOptions& options, const std::vector<TextTokens>& texts) {
    Side side;
    const bool typed = std::any_of(texts.begin(), texts.end(), [](const TextTokens& t) { return !t.types.empty(); });
    for (const TextTokens& text : texts) {
        side.lengths.push_back(static_cast<std::uint32_t>(text.ids.size()));
        side.ids.insert(side.ids.end(), text.ids.begin(), text.ids.end());
        if (typed) side.types.insert(side.types.end(), text.types.begin(), text.types.end());
        if (typed) side.types.resize(side.ids.size());
    }
    side.batched = !is_one(options);
    return side;
}

struct MaskPair {
    MaskArray attention, padding;
    [[nodiscard]] Masks view(bool causal) const {
        return {.attention = attention.mask, .padding = padding.mask, .causal = causal};
    }
};

/// Everything a call needs, and what its arrays are.
struct EncodeJob {
    Sides sides;
    Side source, target, memory;
    MaskPair source_masks, target_masks, memory_masks;
    EncodeInput input;
    const Stack* last = nullptr;
    [[nodiscard]] const Side& memory_rows() const { return sides.encodes ? source : memory; }
};

void need_text(const VectorOptions& options) {
    const int n_given = options.has_text + !options.texts.empty() + !options.tokens.empty();
    if (n_given != 1)
        throw UsageError("-p, --texts or --tokens: expected one of them, got " +
                         std::string(n_given ? "several" : "none"));
}

/// What predicts from an encoder is fovea classify's: vectors are those before it, unless --head asks for what it makes.
bool before_head(const VectorOptions& options, const host::Opened& opened) {
    if (options.head && !opened.has_task())
        throw UsageError("--head: expected a model with a head, got " + opened.name + " without one");
    return !options.head && opened.has_task();
}

/// A file that an option names, and why some models have no use for it.
struct GivenFile {
    const char* option;
    const std::string& path;
    bool is_used;
    const char* why;
};

void refuse_unused(const GivenFile& file) {
    if (!file.is_used && !file.path.empty())
        throw UsageError(std::string(file.option) + ": expected none with " + file.why + ", got " + file.path);
}

void refuse_unused_masks(const VectorOptions& options, const Sides& sides) {
    constexpr auto kNoSource = "a decoder alone", kNoTarget = "an encoder alone",
                   kNoMemory = "a model that reads no memory";
    const GivenFile masks[] = {{"--source-mask", options.source.mask, sides.encodes, kNoSource},
                               {"--source-padding-mask", options.source.padding, sides.encodes, kNoSource},
                               {"--target-mask", options.target.mask, sides.decodes, kNoTarget},
                               {"--target-padding-mask", options.target.padding, sides.decodes, kNoTarget},
                               {"--memory-mask", options.memory.mask, sides.reads_memory, kNoMemory},
                               {"--memory-padding-mask", options.memory.padding, sides.reads_memory, kNoMemory}};
    for (const GivenFile& mask : masks) refuse_unused(mask);
}

void read_rows(const VectorOptions& options, const host::Opened& opened, EncodeJob& job) {
    const Config& config = opened.model.config();
    const Sides& sides = job.sides;
    const bool reads_text = input_stack(config).vocab_size != 0;
    if (reads_text) need_text(options);
    if (!reads_text && (is_one(options) || !options.texts.empty()))
        throw host::Error(opened.name + ": text: expected a model with a vocabulary, got one without");
    refuse_unused({"--source", options.source.rows, !reads_text, "a model that reads text"});
    const auto rows = [&](const GivenFile& file, const Stack& stack) {
        refuse_unused(file);
        if (!file.is_used) return Side{};
        if (file.path.empty()) throw UsageError(std::string(file.option) + ": expected an .npy file, got none");
        return read_side(file.path, stack.d_model, options.seq_first);
    };
    if (sides.encodes && reads_text)
        job.source = packed(options, read_texts(options, opened));
    else
        job.source = rows({"--source", options.source.rows, sides.encodes, "a decoder alone"}, config.encoder);
    job.target = rows({"--target", options.target.rows, sides.decodes, "an encoder alone"}, config.decoder);
    const bool is_memory_given = sides.reads_memory && !sides.encodes;
    job.memory =
        rows({"--memory", options.memory.rows, is_memory_given, "a model that makes or reads none"}, config.decoder);
}

void read_masks(const VectorOptions& options, const Config& config, EncodeJob& job) {
    const auto masks = [](const SideFiles& files, const Side& queries, const Side& keys, const Stack& stack) {
        const AttentionSize size{queries.lengths.size(), heads_of_all(stack), queries.longest(), keys.longest()};
        return MaskPair{read_mask(files.mask, false, size), read_padding(files.padding, size)};
    };
    if (job.sides.encodes) job.source_masks = masks(options.source, job.source, job.source, config.encoder);
    if (job.sides.decodes) job.target_masks = masks(options.target, job.target, job.target, config.decoder);
    if (!job.sides.reads_memory) return;
    const std::size_t want = job.memory_rows().lengths.size(), had = job.target.lengths.size();
    if (want != had)
        throw host::Error(options.target.rows + ": sequences: expected " + std::to_string(want) +
                          " as there are of the memory, got " + std::to_string(had));
    job.memory_masks = masks(options.memory, job.target, job.memory_rows(), config.decoder);
}

/// The job's rows and masks as the engine takes them.
void view_inputs(bool causal, EncodeJob& job) {
    const auto view = [](const Side& side, const MaskPair& masks, bool is_causal) {
        return Sequences{.ids = side.ids,
                         .vectors = side.array.data,
                         .types = side.types,
                         .lengths = side.lengths,
                         .masks = masks.view(is_causal)};
    };
    const Sides& sides = job.sides;
    if (sides.encodes) job.input.source = view(job.source, job.source_masks, causal && !sides.decodes);
    if (sides.decodes) job.input.target = view(job.target, job.target_masks, causal);
    job.input.memory = job.memory.array.data;
    job.input.memory_lengths = job.memory.lengths;
    job.input.memory_masks = job.memory_masks.view(false);
}

void read_job(const VectorOptions& options, const host::Opened& opened, EncodeJob& job) {
    const Config& config = opened.model.config();
    job.sides = sides_of(config);
    job.last = &output_stack(config);
    if (job.last->has_output_head && job.sides.decodes)
        throw host::Error(opened.name + ": model: expected an encoder or a decoder of vectors, got one " +
                          (config.encoder.sound.is_speech() ? "that hears (see fovea transcribe)" : "for logits"));
    read_rows(options, opened, job);
    refuse_unused_masks(options, job.sides);
    job.input.before_head = before_head(options, opened);
    read_masks(options, config, job);
    view_inputs(options.causal, job);
}

/// Room for this call and no more.
Limits limits_for(const VectorOptions& options, const EncodeJob& job) {
    constexpr std::uint64_t kMost = (1u << 22) + 1;  // one more than a plan takes, and refuses
    const auto fit = [&](std::uint64_t n) { return static_cast<std::uint32_t>(std::min(n, kMost)); };
    Limits limits;
    limits.n_threads = options.common.n_threads;
    limits.kv_type = options.kv_type;
    limits.max_batch = fit(std::max(job.source.n_rows(), job.target.n_rows()));
    limits.max_key_rows = fit(std::max(job.memory.n_rows(), job.sides.reads_memory ? job.source.n_rows() : 1));
    limits.max_sequences = fit(std::max(job.source.lengths.size(), job.target.lengths.size()));
    return limits;
}

/// Every attention that there is, so that a picture of all layers has it.
std::vector<Attended> attentions_of(const host::Opened& opened, const EncodeJob& job) {
    const Config& config = opened.model.config();
    const auto labels = [&](const Side& side) {
        std::vector<std::vector<std::string>> all;
        std::size_t at = 0;
        for (const std::uint32_t n : side.lengths) {
            all.push_back(side.ids.empty() ? position_labels(n)
                                           : token_labels(opened, std::span(side.ids).subspan(at, n)));
            at += n;
        }
        return all;
    };
    std::vector<Attended> all;
    if (job.sides.encodes)
        all.push_back({.stack = &config.encoder,
                       .model = opened.name,
                       .title = job.sides.decodes ? "encoder" : "",
                       .in_encoder = true,
                       .batched = job.source.batched,
                       .queries = labels(job.source),
                       .keys = labels(job.source)});
    if (!job.sides.decodes) return all;
    const auto add = [&](const char* title, const Side& keys, bool cross) {
        all.push_back({.stack = &config.decoder,
                       .model = opened.name,
                       .title = title,
                       .cross = cross,
                       .batched = job.target.batched,
                       .queries = labels(job.target),
                       .keys = labels(keys)});
    };
    add("decoder", job.target, false);
    if (job.sides.reads_memory) add("decoder to memory", job.memory_rows(), true);
    return all;
}

/// Whether texts go through batches: no array or picture of their attention is wanted, and nothing hides a part of it.
bool are_plain_texts(const VectorOptions& options, const Config& config) {
    const SideFiles* sides[] = {&options.source, &options.target, &options.memory};
    const bool given = std::any_of(std::begin(sides), std::end(sides), [](const SideFiles* s) { return s->given(); });
    return config.encoder.n_layers && !config.decoder.n_layers && config.encoder.vocab_size && !given &&
           !options.view.wanted() && !options.causal && !options.seq_first;
}

/// Texts in batches: the memory is one batch's and the result's, however many there are.
void encode_texts(const VectorOptions& options, const host::Opened& opened) {
    need_text(options);
    const std::vector<TextTokens> texts = read_texts(options, opened);
    const Stack& stack = opened.model.config().encoder;
    const bool bare = before_head(options, opened), pooled = stack.pooling != Pooling::none;
    TextBatches batches(opened, texts, {options.common.n_threads, options.common.isa_or_best(), options.kv_type, bare});
    const std::uint64_t width = bare ? stack.d_model : stack.result_width(), n = texts.size();
    const std::uint64_t rows = pooled ? 1 : texts.front().ids.size();
    for (const TextTokens& text : texts)
        if (!pooled && text.ids.size() != rows)
            throw host::Error(
                "--texts: expected a model that pools, or -p, for vectors of every token, got texts of several "
                "lengths");
    Shape shape = pooled ? Shape{n, width} : Shape{n, rows, width};
    if (is_one(options)) shape.erase(shape.begin());
    FloatArray result{options.output, shape, std::vector<float>(n * rows * width)};
    Progress progress = progress_line("encoding");
    std::uint64_t n_done = 0;
    const double seconds = timed(options.repeat, [&] {
        batches.run([&](std::size_t i, std::span<const float> vectors) {
            std::copy(vectors.begin(), vectors.end(),
                      result.data.begin() + static_cast<std::ptrdiff_t>(i * rows * width));
            if (progress) progress(++n_done, n * options.repeat);
        });
    });
    progress = {};  // ends its line
    finish_arrays(options.output, std::move(result), false, options.common.json, {}, batches.running, seconds);
}

void encode_arrays(VectorOptions& options) {
    need_model(options.model);
    if (options.output.empty() && !options.view.wanted() && !options.common.json)
        throw UsageError("-o: expected a file for the result, or --json to print it, got neither");
    check_output(options.output, options.common.json);
    check_view(options.view, options.common);
    if ((options.cross || options.of_encoder) && !options.view.wanted())
        throw UsageError("--cross and --encoder: expected --weights or --picture with them, got none");
    settle(options.common);
    const host::Opened opened = open_path(options.model, options.common.opening());
    if (are_plain_texts(options, opened.model.config())) return encode_texts(options, opened);
    EncodeJob job;
    read_job(options, opened, job);
    host::Runtime<Session> running =
        start_session(opened, limits_for(options, job), {.isa = options.common.isa_or_best()});

    const Side& rows = job.sides.decodes ? job.target : job.source;
    const bool pooled = job.last->pooling != Pooling::none;
    const std::uint64_t n = rows.lengths.size();
    const std::uint64_t width = job.input.before_head ? job.last->d_model : job.last->result_width();
    if (!pooled && rows.batched && rows.n_rows() != n * rows.longest())
        throw host::Error(
            "--texts: expected a model that pools, or -p, for vectors of every token, got texts of several lengths");
    Shape shape = pooled ? Shape{n, width} : Shape{n, rows.longest(), width};
    if (!rows.batched) shape.erase(shape.begin());
    FloatArray result{options.output, shape, std::vector<float>((pooled ? n : rows.n_rows()) * width)};
    double seconds = 0;
    const auto pass = [&](const AttentionWeights& asked) {
        require(capture_attention(*running, asked), "--layer");
        seconds = timed(options.repeat, [&] { require(encode(*running, job.input, result.data), opened.name); });
    };
    std::vector<Attended> all = attentions_of(opened, job);
    const auto chosen = std::find_if(all.begin(), all.end(), [&](const Attended& a) {
        return a.cross == options.cross && a.in_encoder == (!job.sides.decodes || options.of_encoder);
    });
    if (options.view.wanted() && chosen == all.end())
        throw UsageError("--cross or --encoder: expected an attention that the model has, got another");
    if (options.view.wanted())
        show_attention(options.view, all, static_cast<std::size_t>(chosen - all.begin()), pass);
    else
        pass({});
    finish_arrays(options.output, std::move(result), options.seq_first && rows.batched && !pooled, options.common.json,
                  options.view.weights.empty() ? Shape{} : chosen->weights_shape(options.view), running, seconds);
}

}  // namespace

void add_encode(CLI::App& app) {
    auto options = std::make_shared<VectorOptions>();
    CLI::App& verb = add_verb(app, "encode", "Vectors of a text, or of what an encoder or decoder is given");
    add_model(verb, options->model);
    const Option text =
        add_text(verb, "-p,--prompt", options->text, "a text, cut, with a note, where the model takes no more");
    const auto file = [&](const char* name, std::string& path, const char* help) {
        add_text(verb, name, path, help).type_name("FILE");
    };
    add_tokens(verb, options->tokens, "ids such as 1,2,3, instead of a text");
    add_value(
        verb, "--prompt-name", [options](const std::string& name) { options->prompt_name = name; },
        "put the model's prompt of that name before texts (default: the one that its folder chooses; \"\": none)")
        .type_name("NAME");
    file("--texts", options->texts, "a file of texts, a line each, or - for standard input");
    file("--source", options->source.rows, "what the encoder reads: [batch, seq, d_model] or [seq, d_model]");
    file("--target", options->target.rows, "what the decoder reads");
    file("--memory", options->memory.rows, "what a decoder without an encoder attends to");
    file("--source-mask", options->source.mask, "[query, key] or larger: true hides a pair, numbers are added");
    file("--target-mask", options->target.mask, "of the target's rows to themselves");
    file("--memory-mask", options->memory.mask, "of the target's rows to the memory");
    file("--source-padding-mask", options->source.padding, "[batch, key]: true hides a row of the source");
    file("--target-padding-mask", options->target.padding, "of the target");
    file("--memory-padding-mask", options->memory.padding, "of the memory");
    add_flag(verb, "--causal", options->causal, "the target's rows, or an encoder's alone, see none that come later");
    add_flag(verb, "--head", options->head,
             "the logits of a model for classes, words, answers or masks, not its vectors");
    add_flag(verb, "--seq-first", options->seq_first, "arrays are [seq, batch, d_model], the result too");
    file("-o,--output", options->output, "an .npy file for the vectors, float32; - for standard output");
    add_view(verb, options->view, true);
    add_flag(verb, "--cross", options->cross, "its attention to the memory");
    add_flag(verb, "--encoder", options->of_encoder, "a layer of the encoder, where there is a decoder too");
    add_kv(verb, options->kv_type);
    add_count(verb, "--repeat", options->repeat, 1, 1000000, "times to compute it; --json tells their median");
    add_verify(verb, options->common);
    add_common(verb, options->common);
    set_action(verb, [options, text] {
        options->has_text = text.count() > 0;
        encode_arrays(*options);
    });
}

}  // namespace fovea

// fovea encode: vectors of encoders, of decoders beside a memory, of both; of texts where the model reads ids.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "arrays.h"
#include "convert/refusal.h"
#include "opened.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "show/view.h"
#include "texts.h"
#include "verbs/verbs.h"

namespace fovea {
namespace {

using Shape = std::vector<std::uint64_t>;

struct VectorOptions {
    CommonOptions common;
    ViewOptions view;
    std::string model, text, texts, source, target, memory, output;
    std::string source_mask, target_mask, memory_mask, source_padding, target_padding, memory_padding;
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
        throw Refusal(path + ": shape: expected [batch, seq, " + std::to_string(d_model) + "] or [seq, " +
                      std::to_string(d_model) + "], got " + in_words(s));
    side.batched = s.size() == 3;
    if (seq_first && side.batched) side.array = swap_first_two(side.array);
    const auto n_rows = static_cast<std::uint32_t>(side.array.shape[side.array.shape.size() - 2]);
    side.lengths.assign(side.batched ? side.array.shape[0] : 1, n_rows);
    return side;
}

/// -p's text, or the lines of --texts, cut to what the model takes; or the ids of --tokens as they are.
std::vector<TextTokens> read_texts(const VectorOptions& options, const OpenedModel& opened) {
    if (!options.tokens.empty()) {
        TextTokens given;
        given.ids = options.tokens;
        given.n_whole = given.ids.size();
        if (options.prompt_name)
            throw Refusal("--prompt-name: expected none with --tokens, got " + *options.prompt_name, 2);
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
};
MaskPair read_masks(const std::string& mask, const std::string& padding, const AttentionSize& size) {
    return {read_mask(mask, false, size), read_padding(padding, size)};
}

void refuse_given(const char* option, const std::string& path, const char* why) {
    if (!path.empty()) throw Refusal(std::string(option) + ": expected none with " + why + ", got " + path, 2);
}

/// Everything a call needs, and what its arrays are.
struct Job {
    Side source, target, memory;
    MaskPair source_masks, target_masks, memory_masks;
    EncodeInput input;
    const Stack* last = nullptr;
    bool encodes = false, decodes = false, reads_memory = false;
};

/// How many heads every attention of a stack has; 1 where layers differ, so that no mask tells heads apart.
std::uint32_t heads_of_all(const Stack& stack) {
    std::uint32_t n_heads = 0;
    for (const Block& block : std::span(stack.blocks).first(stack.n_blocks)) {
        if (n_heads && block.n_heads && block.n_heads != n_heads) return 1;
        if (block.n_heads) n_heads = block.n_heads;
    }
    return std::max(n_heads, 1u);
}

void need_text(const VectorOptions& options) {
    const int n_given = options.has_text + !options.texts.empty() + !options.tokens.empty();
    if (n_given != 1)
        throw Refusal("-p, --texts or --tokens: expected one of them, got " + std::string(n_given ? "several" : "none"),
                      2);
}

/// What predicts from an encoder is fovea classify's: vectors are those before it, unless --head asks for what it makes.
bool before_head(const VectorOptions& options, const OpenedModel& opened) {
    const bool has_head = !find_info(opened.model, "task").empty();
    if (options.head && !has_head)
        throw Refusal("--head: expected a model with a head, got " + opened.name + " without one", 2);
    return !options.head && has_head;
}

void read_job(const VectorOptions& options, const OpenedModel& opened, Job& job) {
    const Config& config = opened.model.config();
    job.encodes = config.encoder.n_layers != 0;
    job.decodes = config.decoder.n_layers != 0;
    job.last = job.decodes ? &config.decoder : &config.encoder;
    for (const Block& block : std::span(job.last->blocks).first(job.last->n_blocks))
        job.reads_memory |= job.decodes && block.cross_attention;
    if (job.last->has_output_head && job.decodes)
        throw Refusal(opened.name + ": model: expected an encoder or a decoder of vectors, got one " +
                      (config.encoder.sound.hears() ? "that hears (see fovea transcribe)" : "for logits"));
    const Stack& first = job.encodes ? config.encoder : config.decoder;
    const bool reads_ids = first.vocab_size != 0;
    if (reads_ids) need_text(options);
    if (!reads_ids && (is_one(options) || !options.texts.empty()))
        throw Refusal(opened.name + ": text: expected a model with a vocabulary, got one without");
    if (reads_ids) refuse_given("--source", options.source, "a model that reads text");
    const auto vectors = [&](const char* option, const std::string& path, const Stack& stack) {
        if (path.empty()) throw Refusal(std::string(option) + ": expected an .npy file, got none", 2);
        return read_side(path, stack.d_model, options.seq_first);
    };
    if (job.encodes)
        job.source = reads_ids ? packed(options, read_texts(options, opened))
                               : vectors("--source", options.source, config.encoder);
    else
        refuse_given("--source", options.source, "a decoder alone");
    if (job.decodes)
        job.target = vectors("--target", options.target, config.decoder);
    else
        refuse_given("--target", options.target, "an encoder alone");
    if (job.reads_memory && !job.encodes)
        job.memory = vectors("--memory", options.memory, config.decoder);
    else
        refuse_given("--memory", options.memory, "a model that makes or reads none");
    if (!job.encodes) {
        refuse_given("--source-mask", options.source_mask, "a decoder alone");
        refuse_given("--source-padding-mask", options.source_padding, "a decoder alone");
    }
    if (!job.decodes) {
        refuse_given("--target-mask", options.target_mask, "an encoder alone");
        refuse_given("--target-padding-mask", options.target_padding, "an encoder alone");
    }
    if (!job.reads_memory) {
        refuse_given("--memory-mask", options.memory_mask, "a model that reads no memory");
        refuse_given("--memory-padding-mask", options.memory_padding, "a model that reads no memory");
    }

    const auto size = [](const Side& queries, const Side& keys, const Stack& stack) {
        return AttentionSize{queries.lengths.size(), heads_of_all(stack), queries.longest(), keys.longest()};
    };
    EncodeInput& in = job.input;
    in.before_head = before_head(options, opened);
    if (job.encodes) {
        job.source_masks =
            read_masks(options.source_mask, options.source_padding, size(job.source, job.source, config.encoder));
        in.source = {job.source.ids,
                     job.source.array.data,
                     job.source.types,
                     job.source.lengths,
                     {job.source_masks.attention.mask, job.source_masks.padding.mask, options.causal && !job.decodes}};
    }
    if (!job.decodes) return;
    job.target_masks =
        read_masks(options.target_mask, options.target_padding, size(job.target, job.target, config.decoder));
    in.target = {{},
                 job.target.array.data,
                 {},
                 job.target.lengths,
                 {job.target_masks.attention.mask, job.target_masks.padding.mask, options.causal}};
    const Side& memory = job.encodes ? job.source : job.memory;
    if (!job.reads_memory) return;
    if (memory.lengths.size() != job.target.lengths.size())
        throw Refusal(options.target + ": sequences: expected " + std::to_string(memory.lengths.size()) +
                      " as there are of "
                      "the memory, got " +
                      std::to_string(job.target.lengths.size()));
    job.memory_masks =
        read_masks(options.memory_mask, options.memory_padding, size(job.target, memory, config.decoder));
    in.memory = job.memory.array.data;
    if (!job.encodes) in.memory_lengths = job.memory.lengths;
    in.memory_masks = {job.memory_masks.attention.mask, job.memory_masks.padding.mask, false};
}

/// Room for this call and no more.
Limits limits_for(const VectorOptions& options, const Job& job) {
    constexpr std::uint64_t kMost = (1u << 22) + 1;  // one more than a plan takes, and refuses
    const auto fit = [&](std::uint64_t n) { return static_cast<std::uint32_t>(std::min(n, kMost)); };
    Limits limits;
    limits.n_threads = options.common.n_threads;
    limits.kv_type = options.kv_type;
    limits.max_batch = fit(std::max(job.source.n_rows(), job.target.n_rows()));
    limits.max_key_rows = fit(std::max(job.memory.n_rows(), job.reads_memory ? job.source.n_rows() : 1));
    limits.max_sequences = fit(std::max(job.source.lengths.size(), job.target.lengths.size()));
    return limits;
}

/// Every attention that there is, so that a picture of all layers has it.
std::vector<Attended> attentions_of(const OpenedModel& opened, const Job& job) {
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
    if (job.encodes)
        all.push_back({.stack = &config.encoder,
                       .model = opened.name,
                       .title = job.decodes ? "encoder" : "",
                       .in_encoder = true,
                       .batched = job.source.batched,
                       .queries = labels(job.source),
                       .keys = labels(job.source)});
    if (!job.decodes) return all;
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
    if (job.reads_memory) add("decoder to memory", job.encodes ? job.source : job.memory, true);
    return all;
}

/// Whether texts go through batches: no array or picture of their attention is wanted, and nothing hides a part of it.
bool are_plain_texts(const VectorOptions& options, const Config& config) {
    const std::string* arrays[] = {&options.source,         &options.target,         &options.memory,
                                   &options.source_mask,    &options.target_mask,    &options.memory_mask,
                                   &options.source_padding, &options.target_padding, &options.memory_padding};
    const bool given =
        std::any_of(std::begin(arrays), std::end(arrays), [](const std::string* a) { return !a->empty(); });
    return config.encoder.n_layers && !config.decoder.n_layers && config.encoder.vocab_size && !given &&
           !options.view.wanted() && !options.causal && !options.seq_first;
}

/// Texts in batches: the memory is one batch's and the result's, however many there are.
void encode_texts(const VectorOptions& options, const OpenedModel& opened) {
    need_text(options);
    const std::vector<TextTokens> texts = read_texts(options, opened);
    const Stack& stack = opened.model.config().encoder;
    const bool bare = before_head(options, opened), pooled = stack.pooling != Pooling::none;
    TextBatches batches(opened, texts, {options.common.n_threads, options.common.isa_or_best(), options.kv_type, bare});
    const std::uint64_t width = bare ? stack.d_model : stack.result_width(), n = texts.size();
    const std::uint64_t rows = pooled ? 1 : texts.front().ids.size();
    for (const TextTokens& text : texts)
        if (!pooled && text.ids.size() != rows)
            throw Refusal(
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
        throw Refusal("-o: expected a file for the result, or --json to print it, got neither", 2);
    check_output(options.output, options.common.json);
    check_view(options.view, options.common);
    if ((options.cross || options.of_encoder) && !options.view.wanted())
        throw Refusal("--cross and --encoder: expected --weights or --picture with them, got none", 2);
    settle(options.common);
    const OpenedModel opened = open_path(options.model, options.common.opening());
    if (are_plain_texts(options, opened.model.config())) return encode_texts(options, opened);
    Job job;
    read_job(options, opened, job);
    Running running = start_session(opened, limits_for(options, job), options.common.isa_or_best());

    const Side& rows = job.decodes ? job.target : job.source;
    const bool pooled = job.last->pooling != Pooling::none;
    const std::uint64_t n = rows.lengths.size();
    const std::uint64_t width = job.input.before_head ? job.last->d_model : job.last->result_width();
    if (!pooled && rows.batched && rows.n_rows() != n * rows.longest())
        throw Refusal(
            "--texts: expected a model that pools, or -p, for vectors of every token, got texts of several lengths");
    Shape shape = pooled ? Shape{n, width} : Shape{n, rows.longest(), width};
    if (!rows.batched) shape.erase(shape.begin());
    FloatArray result{options.output, shape, std::vector<float>((pooled ? n : rows.n_rows()) * width)};
    double seconds = 0;
    const auto pass = [&](const AttentionWeights& asked) {
        require(capture_attention(running.session, asked), "--layer");
        seconds = timed(options.repeat, [&] { require(encode(running.session, job.input, result.data), opened.name); });
    };
    std::vector<Attended> all = attentions_of(opened, job);
    const auto chosen = std::find_if(all.begin(), all.end(), [&](const Attended& a) {
        return a.cross == options.cross && a.in_encoder == (!job.decodes || options.of_encoder);
    });
    if (options.view.wanted() && chosen == all.end())
        throw Refusal("--cross or --encoder: expected an attention that the model has, got another", 2);
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
    CLI::App& verb = *app.add_subcommand("encode", "Vectors of a text, or of what an encoder or decoder is given");
    add_model(verb, options->model);
    CLI::Option* text =
        add_text(verb, "-p,--prompt", options->text, "a text, cut, with a note, where the model takes no more");
    const auto file = [&](const char* name, std::string& path, const char* help) {
        add_text(verb, name, path, help)->type_name("FILE");
    };
    add_tokens(verb, options->tokens, "ids such as 1,2,3, instead of a text");
    verb.add_option_function<std::string>(
            "--prompt-name", [options](const std::string& name) { options->prompt_name = name; },
            "put the model's prompt of that name before texts (default: the one that its folder chooses; \"\": none)")
        ->type_name("NAME");
    file("--texts", options->texts, "a file of texts, a line each, or - for standard input");
    file("--source", options->source, "what the encoder reads: [batch, seq, d_model] or [seq, d_model]");
    file("--target", options->target, "what the decoder reads");
    file("--memory", options->memory, "what a decoder without an encoder attends to");
    file("--source-mask", options->source_mask, "[query, key] or larger: true hides a pair, numbers are added");
    file("--target-mask", options->target_mask, "of the target's rows to themselves");
    file("--memory-mask", options->memory_mask, "of the target's rows to the memory");
    file("--source-padding-mask", options->source_padding, "[batch, key]: true hides a row of the source");
    file("--target-padding-mask", options->target_padding, "of the target");
    file("--memory-padding-mask", options->memory_padding, "of the memory");
    verb.add_flag("--causal", options->causal, "the target's rows, or an encoder's alone, see none that come later");
    verb.add_flag("--head", options->head,
                  "the logits of a model for classes, words, answers or masks, not its vectors");
    verb.add_flag("--seq-first", options->seq_first, "arrays are [seq, batch, d_model], the result too");
    file("-o,--output", options->output, "an .npy file for the vectors, float32; - for standard output");
    add_view(verb, options->view, true);
    verb.add_flag("--cross", options->cross, "its attention to the memory");
    verb.add_flag("--encoder", options->of_encoder, "a layer of the encoder, where there is a decoder too");
    add_kv(verb, options->kv_type);
    add_count(verb, "--repeat", options->repeat, 1, 1000000, "times to compute it; --json tells their median");
    add_verify(verb, options->common);
    add_common(verb, options->common);
    verb.callback([options, text] {
        options->has_text = text->count() > 0;
        encode_arrays(*options);
    });
}

}  // namespace fovea

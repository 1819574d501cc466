// fovea encode: vectors of encoders, of decoders beside a memory, of both; of texts where the model reads ids.
#include "fovea/host/runtime.h"
#include "host/model/late_interaction.h"
#include "host/model/sparse_vectors.h"
#include "host/model/stacks.h"
#include "host/model/texts.h"
#include "tools/options/ranks.h"
#include "tools/show/arrays.h"
#include "tools/show/view.h"
#include "tools/terminal/progress.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

using Shape = std::vector<std::uint64_t>;

/// The files of one side: its rows, and what hides parts of them.
struct SideFiles {
    const char* option;  // for its rows, and what the others begin with
    std::string rows = {}, mask = {}, padding = {};
    [[nodiscard]] bool given() const { return !rows.empty() || !mask.empty() || !padding.empty(); }
};

constexpr std::pair<const char*, Pooling> kPoolings[] = {{"none", Pooling::none},
                                                         {"mean", Pooling::mean},
                                                         {"cls", Pooling::first},
                                                         {"last", Pooling::last},
                                                         {"max", Pooling::max}};

struct VectorOptions {
    CommonOptions common;
    ViewOptions view;
    std::string model, texts, output, pooling;
    SideFiles source{"--source"}, target{"--target"}, memory{"--memory"};
    std::vector<Token> tokens;  // of --tokens
    std::optional<std::string> text, prompt_name;
    bool causal = false, seq_first = false, cross = false, of_encoder = false, head = false, special = false;
    std::uint32_t repeat = 1;
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
    settle_rows(side.array, d_model, seq_first);
    const Shape& s = side.array.shape;
    side.batched = s.size() == 3;
    side.lengths.assign(side.batched ? s[0] : 1, static_cast<std::uint32_t>(s[s.size() - 2]));
    return side;
}

/// -p's text, or the lines of --texts, cut to what the model takes; or the ids of --tokens as they are.
std::vector<TextTokens> read_texts(const VectorOptions& options, const host::Opened& opened) {
    if (!options.tokens.empty()) {
        TextTokens given;
        given.ids = options.tokens;
        drop_pads(opened.model, given.ids);
        given.n_whole = given.ids.size();
        if (options.prompt_name)
            throw UsageError("--prompt-name: expected none with --tokens, got " + *options.prompt_name);
        return {given};
    }
    std::vector<Text> texts;
    if (options.text) texts.push_back({*options.text, {}});
    if (!options.texts.empty()) texts = read_text_lines(options.texts);
    std::vector<TextTokens> tokens;
    const std::string prompt = prompt_before(prompts_of(opened.model, opened.name), options.prompt_name);
    for (Text& text : texts) {
        const ReadOptions how{.parse_special = options.special};
        tokens.push_back(text.pair ? tokens_of(opened, text, how) : tokens_behind(opened, prompt, text.text, how));
    }
    note_cut(opened, tokens);
    return tokens;
}

/// Whether there is one text, whose result has no dimension of texts.
bool is_one(const VectorOptions& options) { return options.text || !options.tokens.empty(); }

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
    if (options.texts == "-" || options.text == "-") refuse_by_ranks("standard input");
    const int n_given = options.text.has_value() + !options.texts.empty() + !options.tokens.empty();
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

/// What of the model's results is asked for: with --pooling what its layers leave, pooled so.
WantedRows wanted_of(const VectorOptions& options, const host::Opened& opened) {
    WantedRows wanted{.before_head = before_head(options, opened)};
    if (!options.pooling.empty()) {
        if (options.head) throw UsageError("--head: expected no --pooling beside it, got " + options.pooling);
        const auto known = std::find_if(std::begin(kPoolings), std::end(kPoolings),
                                        [&](const auto& one) { return options.pooling == one.first; });
        if (known == std::end(kPoolings))
            throw UsageError("--pooling: expected none, mean, cls, last or max, got " + options.pooling);
        wanted.pooling = known->second;
        wanted.before_head = true;
    } else if (!wanted.before_head && !options.head) {
        wanted.width = opened.vector_width();
    }
    return wanted;
}

/// Whether a side's files are of use to the model, and if not, with what kind of model they are not.
struct SideUse {
    const SideFiles& files;
    bool is_used;
    const char* why;

    void refuse(const char* ending, const std::string& path) const {
        if (!is_used && !path.empty())
            throw UsageError(std::string(files.option) + ending + ": expected none with " + why + ", got " + path);
    }
};

void refuse_unused_masks(const VectorOptions& options, const Sides& sides) {
    for (const SideUse& use : {SideUse{options.source, sides.encodes, "a decoder alone"},
                               SideUse{options.target, sides.decodes, "an encoder alone"},
                               SideUse{options.memory, sides.reads_memory, "a model that reads no memory"}}) {
        use.refuse("-mask", use.files.mask);
        use.refuse("-padding-mask", use.files.padding);
    }
}

void read_rows(const VectorOptions& options, const host::Opened& opened, EncodeJob& job) {
    const Config& config = opened.model.config();
    const Sides& sides = job.sides;
    const bool reads_text = input_stack(config).vocab_size != 0;
    if (reads_text) need_text(options);
    if (!reads_text && (is_one(options) || !options.texts.empty()))
        throw host::Error(opened.name + ": text: expected a model with a vocabulary, got one without");
    SideUse{options.source, !reads_text, "a model that reads text"}.refuse("", options.source.rows);
    const auto rows = [&](const SideUse& use, const Stack& stack) {
        use.refuse("", use.files.rows);
        if (!use.is_used) return Side{};
        if (use.files.rows.empty())
            throw UsageError(std::string(use.files.option) + ": expected an .npy file, got none");
        return read_side(use.files.rows, stack.d_model, options.seq_first);
    };
    job.source = sides.encodes && reads_text ? packed(options, read_texts(options, opened))
                                             : rows({options.source, sides.encodes, "a decoder alone"}, config.encoder);
    job.target = rows({options.target, sides.decodes, "an encoder alone"}, config.decoder);
    const bool is_memory_given = sides.reads_memory && !sides.encodes;
    job.memory = rows({options.memory, is_memory_given, "a model that makes or reads none"}, config.decoder);
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
    Limits limits = options.common.limits();
    limits.max_batch = fitting_limit(std::max(job.source.n_rows(), job.target.n_rows()));
    limits.max_sequences = fitting_limit(std::max(job.source.lengths.size(), job.target.lengths.size()));
    limits.max_key_rows =
        fitting_limit(std::max(job.memory.n_rows(), job.sides.reads_memory ? job.source.n_rows() : 1));
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

/// Where results go: n of so many rows each, or of one where they are pooled; without a dimension for n where it is not `batched`.
FloatArray room_for(const VectorOptions& options, const Stack& stack, const WantedRows& wanted, bool batched,
                    std::span<const std::uint32_t> lengths) {
    const bool pooled = wanted.pooling.value_or(stack.pooling) != Pooling::none;
    const std::uint64_t n = lengths.size(), n_rows = pooled ? 1 : lengths.front();
    if (!pooled && batched &&
        std::any_of(lengths.begin(), lengths.end(), [&](auto length) { return length != n_rows; }))
        throw host::Error(
            "--texts: expected a model that pools, or -p, for vectors of every token, got texts of several lengths");
    const std::uint64_t whole = wanted.before_head ? stack.d_model : stack.result_width(),
                        width = pooled && wanted.width ? wanted.width : whole;
    Shape shape = pooled ? Shape{n, width} : Shape{n, n_rows, width};
    if (!batched) shape.erase(shape.begin());
    return {options.output, shape, std::vector<float>(n * n_rows * width)};
}

/// The same of a model that makes sparse vectors: lines of ids and weights, or rows of the vocabulary.
void encode_sparse(const VectorOptions& options, const host::Opened& opened, const std::vector<TextTokens>& texts) {
    TextBatches batches(opened, texts,
                        {options.common.n_threads, options.common.isa_or_best(), options.common.kv_type});
    std::vector<std::vector<TokenWeight>> vectors(texts.size());
    batches.run(
        [&](std::size_t i, std::span<const float> rows) { vectors[i] = sparse_vector(opened, texts[i].ids, rows); });
    if (!options.output.empty()) {
        const std::size_t width = opened.config().encoder.vocab_size;
        std::vector<float> rows(texts.size() * width);
        for (std::size_t i = 0; i < texts.size(); ++i)
            for (const auto& [id, weight] : vectors[i]) rows[i * width + id] = weight;
        const Shape shape = is_one(options) ? Shape{width} : Shape{texts.size(), width};
        write_npy(options.output, shape, rows);
    }
    if (!options.common.json) return;
    for (const auto& vector : vectors) {
        Json weights = Json::object();
        for (const auto& [id, weight] : vector) weights[std::to_string(id)] = weight;
        print_line({{"weights", std::move(weights)}});
    }
}

/// The same of a model of late interaction: of each text the vectors of its tokens.
void encode_late(const VectorOptions& options, const host::Opened& opened) {
    if (!options.tokens.empty())
        throw UsageError("--tokens: expected a text with a model of late interaction, got ids");
    const LateModel late(opened);
    const bool are_queries = options.prompt_name == "query";
    const std::optional<std::string> named =
        are_queries || options.prompt_name == "document" ? std::nullopt : options.prompt_name;
    const std::string before = late.prompt_of(are_queries, named);
    std::vector<TextTokens> tokens;
    for (const Text& text : options.text ? std::vector<Text>{{*options.text, {}}} : read_text_lines(options.texts))
        tokens.push_back(late.tokens_of(are_queries, before, text.text, options.special));
    note_cut(opened, tokens, late.most(are_queries));
    TextBatches batches(opened, tokens,
                        {options.common.n_threads, options.common.isa_or_best(), options.common.kv_type});
    std::vector<std::vector<float>> vectors(tokens.size());
    batches.run([&](std::size_t i, std::span<const float> rows) {
        vectors[i] = late.vectors(are_queries, tokens[i].ids, rows);
    });
    const std::size_t width = late.width();
    if (!options.output.empty()) {
        std::vector<float> all;
        for (const std::vector<float>& one : vectors) all.insert(all.end(), one.begin(), one.end());
        const std::uint64_t n_rows = vectors.front().size() / width;
        if (all.size() != vectors.size() * vectors.front().size())
            throw host::Error("-o: expected -p, or --json, for vectors of tokens, got texts of several lengths");
        write_npy(options.output, is_one(options) ? Shape{n_rows, width} : Shape{vectors.size(), n_rows, width}, all);
    }
    for (std::size_t i = 0; options.common.json && i < vectors.size(); ++i) {
        Json rows = Json::array(), ids = Json::array();
        for (const std::uint32_t row : late.kept(are_queries, tokens[i].ids)) ids.push_back(tokens[i].ids[row]);
        for (auto at = vectors[i].begin(); at != vectors[i].end(); at += static_cast<std::ptrdiff_t>(width))
            rows.push_back(std::vector<float>(at, at + static_cast<std::ptrdiff_t>(width)));
        print_line({{"tokens", std::move(ids)}, {"vectors", std::move(rows)}});
    }
}

/// Texts in batches: the memory is one batch's and the result's, however many there are.
void encode_texts(const VectorOptions& options, const host::Opened& opened) {
    need_text(options);
    const bool of_head = !options.head && options.pooling.empty();  // what the model's task makes of rows
    if (opened.has_late_interaction() && of_head) return encode_late(options, opened);
    const std::vector<TextTokens> texts = read_texts(options, opened);
    if (opened.makes_sparse() && of_head) return encode_sparse(options, opened, texts);
    const WantedRows wanted = wanted_of(options, opened);
    TextBatches batches(opened, texts,
                        {options.common.n_threads, options.common.isa_or_best(), options.common.kv_type, wanted});
    std::vector<std::uint32_t> lengths;
    for (const TextTokens& text : texts) lengths.push_back(static_cast<std::uint32_t>(text.ids.size()));
    FloatArray result = room_for(options, opened.model.config().encoder, wanted, !is_one(options), lengths);
    const std::size_t part = result.data.size() / texts.size();
    Progress progress = progress_line("encoding");
    std::uint64_t n_done = 0;
    const double seconds = timed(options.repeat, [&] {
        batches.run([&](std::size_t i, std::span<const float> vectors) {
            std::copy(vectors.begin(), vectors.end(), result.data.begin() + static_cast<std::ptrdiff_t>(i * part));
            if (progress) progress(++n_done, texts.size() * options.repeat);
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
    const host::Opened opened = open_model(options.common, options.model);
    if (are_plain_texts(options, opened.model.config())) return encode_texts(options, opened);
    EncodeJob job;
    read_job(options, opened, job);
    host::Runtime<Session> running = start_session(opened, limits_for(options, job), options.common.session());

    const Side& rows = job.sides.decodes ? job.target : job.source;
    const bool pooled = job.last->pooling != Pooling::none;
    FloatArray result =
        room_for(options, *job.last, {.before_head = job.input.before_head}, rows.batched, rows.lengths);
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
    show_attention(options.view, all, static_cast<std::size_t>(chosen - all.begin()), pass);
    finish_arrays(options.output, std::move(result), options.seq_first && rows.batched && !pooled, options.common.json,
                  options.view.weights.empty() ? Shape{} : chosen->weights_shape(options.view), running, seconds);
}

}  // namespace

void add_encode(CLI::App& app) {
    const auto declare = [](const Verb& verb, VectorOptions& o) {
        verb.model(o.model);
        verb.text("-p,--prompt", o.text, "a text, cut, with a note, where the model takes no more");
        verb.tokens(o.tokens, "ids such as 1,2,3, instead of a text");
        verb.option("--prompt-name",
                    "put the model's prompt of that name before texts (default: the one that its folder chooses; "
                    "\"\": none); of late interaction query or document",
                    "NAME", [&o](const std::string& name) { o.prompt_name = name; });
        verb.input("--texts", o.texts, "a file of texts, a line each, or - for standard input");
        verb.input("--source", o.source.rows, "what the encoder reads: [batch, seq, d_model] or [seq, d_model]");
        verb.input("--target", o.target.rows, "what the decoder reads");
        verb.input("--memory", o.memory.rows, "what a decoder without an encoder attends to");
        verb.input("--source-mask", o.source.mask, "[query, key] or larger: true hides a pair, numbers are added");
        verb.input("--target-mask", o.target.mask, "of the target's rows to themselves");
        verb.input("--memory-mask", o.memory.mask, "of the target's rows to the memory");
        verb.input("--source-padding-mask", o.source.padding, "[batch, key]: true hides a row of the source");
        verb.input("--target-padding-mask", o.target.padding, "of the target");
        verb.input("--memory-padding-mask", o.memory.padding, "of the memory");
        verb.flag("--causal", o.causal, "the target's rows, or an encoder's alone, see none that come later");
        verb.text("--pooling", o.pooling,
                  "none (a vector for each token), mean, cls, last or max, not the model's own way", "HOW");
        verb.flag("--special", o.special, "read [SEP] and the like in texts as special tokens");
        verb.flag("--head", o.head, "the logits of a model for classes, words, answers or masks, not its vectors");
        verb.flag("--seq-first", o.seq_first, "arrays are [seq, batch, d_model], the result too");
        verb.output("-o,--output", o.output, "an .npy file for the vectors, float32; - for standard output");
        add_view(verb, o.view, true);
        verb.flag("--cross", o.cross, "its attention to the memory");
        verb.flag("--encoder", o.of_encoder, "a layer of the encoder, where there is a decoder too");
        verb.kv(o.common.kv_type);
        verb.count("--repeat", o.repeat, 1, 1000000, "times to compute it; --json tells their median");
        verb.opening(o.common);
    };
    add_verb<VectorOptions>(app, "encode", "Vectors of a text, or of what an encoder or decoder is given",
                            encode_arrays, declare);
}

}  // namespace fovea

#include "host/speech/speech_engine.h"

#include <algorithm>

#include "fovea/sound.h"
#include "host/base/error.h"
#include "host/base/words.h"

namespace fovea {
namespace {

/// The model's Sound with as many frames as the recording has.
Sound sound_of(const Model& model, std::size_t n_samples, const std::string& name) {
    Sound sound = model.config().encoder.sound;
    if (!sound.is_speech()) throw host::Error(name + ": sound: expected a model that hears, got one that reads text");
    if (n_samples <= window_samples(sound)) return sound;
    const std::size_t n_frames = (n_samples + sound.hop_length - 1) / sound.hop_length;
    constexpr std::size_t kMost = 1u << 26;
    if (n_frames > kMost)
        throw host::Error(name + ": frames: expected at most " + with_separators(kMost) + ", got " +
                          with_separators(n_frames));
    sound.n_frames = static_cast<std::uint32_t>(n_frames);
    return sound;
}

}  // namespace

void need_speech(const host::Opened& opened) {
    const std::string& name = opened.name;
    const Config& config = opened.config();
    if (opened.kind() != host::Kind::speech)
        throw host::Error(name + ": model: expected one that hears, got one that reads " +
                          (config.encoder.n_layers && !config.encoder.vocab_size ? "vectors" : "text"));
    if (!config.decoder.n_layers || !config.decoder.vocab_size)
        throw host::Error(name + ": model: expected one that writes what it hears, got an encoder alone");
    if (!opened.tokenizer.valid()) throw host::Error(name + ": tokenizer: expected one in the file, got none");
}

RecordingBytes recording_bytes(const Model& model, std::size_t n_samples, const std::string& name) {
    const Sound sound = sound_of(model, n_samples, name);
    RecordingBytes bytes{.samples = n_samples * sizeof(float),
                         .frames = std::uint64_t{sound.n_frames} * sound.n_mels * sizeof(float)};
    require(frames_scratch(sound, bytes.scratch), name);
    return bytes;
}

RecordingFrames recording_frames(const Model& model, std::span<const float> samples, const std::string& name) {
    const Sound sound = sound_of(model, samples.size(), name);
    const RecordingBytes bytes = recording_bytes(model, samples.size(), name);
    RecordingFrames frames;
    frames.n_content = static_cast<std::uint32_t>((samples.size() + sound.hop_length - 1) / sound.hop_length);
    frames.numbers.resize(static_cast<std::size_t>(bytes.frames / sizeof(float)));
    Arena scratch(bytes.scratch);
    require(make_frames(sound, mel_filters(model), samples, scratch, frames.numbers), name);
    return frames;
}

std::vector<Token> tokens_before(const Tokenizer& tokenizer, std::string_view text) {
    constexpr std::size_t kMostBytes = 16 << 10;  // no model reads 16,384 tokens of a text before
    text = trimmed(text, " \t\r\n");
    if (text.empty()) return {};
    if (text.size() > kMostBytes) text.remove_prefix(text.size() - kMostBytes);
    const std::string spaced = ' ' + std::string(text);
    return host::tokenize(tokenizer, spaced, {.add_special = false}, "prompt");
}

namespace {

/// Rows of a window's memory.
std::uint32_t rows_of(const Config& config) { return (config.encoder.sound.n_frames + 1) / 2; }

/// Heads that follow the sound, by layer: those that the model names, or all of the later half of its layers.
std::vector<SpeechTokens::Head> aligned_heads(const host::Opened& opened, const SpeechTokens& tokens) {
    std::vector<SpeechTokens::Head> heads = tokens.alignment_heads;
    const Stack& decoder = opened.config().decoder;
    if (heads.empty())
        for (std::uint32_t layer = decoder.n_layers / 2; layer < decoder.n_layers; ++layer)
            for (std::uint32_t head = 0; head < decoder.block(layer).attention.n_heads; ++head)
                heads.push_back({layer, head});
    std::stable_sort(heads.begin(), heads.end(), [](const auto& a, const auto& b) { return a.layer < b.layer; });
    for (const SpeechTokens::Head& head : heads)
        if (head.layer >= decoder.n_layers || head.head >= decoder.block(head.layer).attention.n_heads)
            throw host::Error(opened.name + ": speech: alignment_heads: expected heads of its " +
                              std::to_string(decoder.n_layers) + " layers, got [" + std::to_string(head.layer) + ", " +
                              std::to_string(head.head) + "]");
    return heads;
}

SpeechTokens tokens_of(const host::Opened& opened) {
    return SpeechTokens::read(find_info(opened.model, "speech"), opened.config().decoder.vocab_size, opened.name);
}

}  // namespace

SpeechPlan SpeechWorkspace::plan(const host::Opened& opened, const Options& options) {
    need_speech(opened);
    const Config& config = opened.config();
    const std::uint32_t n_rows = rows_of(config), n_tokens = config.decoder.max_positions;
    SpeechPlan plan{.stacks = plan_two_stacks(opened, {.n_threads = options.n_threads,
                                                       .kv_type = options.kv_type,
                                                       .max_source = n_rows,
                                                       .max_target = n_tokens,
                                                       .n_rows = n_tokens,
                                                       .n_sources = options.n_recordings,
                                                       .n_texts = options.n_recordings}),
                    .logits_bytes = std::uint64_t{options.n_recordings} * config.decoder.vocab_size * sizeof(float)};
    if (!options.words) return plan;
    std::uint32_t most = 0;
    for (const SpeechTokens::Head& head : aligned_heads(opened, tokens_of(opened)))
        most = std::max(most, config.decoder.block(head.layer).attention.n_heads);
    plan.word_bytes = std::uint64_t{most} * n_tokens * n_rows * sizeof(float);
    return plan;
}

SpeechWorkspace::SpeechWorkspace(const host::Opened& opened, const Options& options)
    : opened_(opened),
      plan_(plan(opened, options)),
      tokens_(tokens_of(opened)),
      stacks_(opened, plan_.stacks, options.isa, options.cancel) {
    for (std::uint32_t i = 0; i < options.n_recordings; ++i) {
        memories_.push_back(stacks_.make_memory());
        texts_.push_back(stacks_.make_text());
    }
    steps_.reserve(options.n_recordings);
    if (options.words) heads_ = aligned_heads(opened, tokens_);
    weights_.resize(static_cast<std::size_t>(plan_.word_bytes / sizeof(float)));
}

Status SpeechWorkspace::attend(std::size_t i, std::span<const Token> tokens, const SpeechModel::EachHead& each) {
    if (heads_.empty()) return {Code::unsupported, "words: expected a workspace made for them", 0, 0};
    const std::uint32_t n_keys = rows_of(opened_.config());
    const auto n_queries = static_cast<std::uint32_t>(tokens.size());
    const std::size_t of_each = std::size_t{n_queries} * n_keys;
    for (auto head = heads_.begin(); head != heads_.end();) {
        const std::uint32_t layer = head->layer, n_heads = opened_.config().decoder.block(layer).attention.n_heads;
        if (const Status status = fovea::rewind(texts_[i], 0); !status.ok()) return status;
        const std::span<float> out = std::span(weights_).first(n_heads * of_each);
        const AttentionWeights wanted{
            .layer = layer, .cross = true, .per_head = true, .n_queries = n_queries, .n_keys = n_keys, .out = out};
        Status status = capture_attention(stacks_.workspace(), wanted);
        if (status.ok()) status = read({{{i, tokens, {}}}});
        (void)capture_attention(stacks_.workspace(), {});
        if (!status.ok()) return status;
        for (; head != heads_.end() && head->layer == layer; ++head)
            each(out.subspan(head->head * of_each, of_each), n_keys);
    }
    return fovea::rewind(texts_[i], 0);
}

void SpeechWorkspace::describe(SpeechModel& model) const {
    const Config& config = opened_.config();
    const Sound& sound = config.encoder.sound;
    model.n_frames = sound.n_frames, model.n_mels = sound.n_mels;
    model.frame_seconds = static_cast<double>(sound.hop_length) / sound.sample_rate;
    model.max_tokens = config.decoder.max_positions;
}

Status SpeechWorkspace::hear(std::size_t i, std::span<const float> frames) {
    const std::uint32_t n_frames = opened_.config().encoder.sound.n_frames;
    if (const Status status = fovea::rewind(texts_[i], 0); !status.ok()) return status;
    if (const Status status = fovea::rewind(memories_[i], 0); !status.ok()) return status;
    return cache_memory(stacks_.workspace(), {.source = {.vectors = frames, .lengths = {&n_frames, 1}}},
                        {&memories_[i], 1});
}

Status SpeechWorkspace::rewind(std::size_t i, std::size_t n_tokens) {
    const auto n = static_cast<std::uint32_t>(n_tokens);
    if (texts_[i].reach(n) != n)
        return {Code::unsupported, "attempts at speech by a model with recurrent layers", 0, 0};
    return fovea::rewind(texts_[i], n);
}

Status SpeechWorkspace::read(std::span<const Reading> readings) {
    steps_.clear();
    for (const Reading& r : readings) steps_.push_back({texts_[r.i], r.tokens, r.logits, memories_[r.i]});
    return forward(stacks_.workspace(), steps_);
}

SpeechEngine::SpeechEngine(const host::Opened& opened, const Options& options)
    : opened_(opened), workspace_(opened, options) {
    workspace_.describe(*this);
    logits_.resize(opened.config().decoder.vocab_size);
}

void SpeechEngine::check(const Status& status) const {
    if (status.code == Code::cancelled) throw SpeechCancelled{};
    require(status, opened_.name);
}

void SpeechEngine::hear(std::span<const float> frames) { check(workspace_.hear(0, frames)); }

void SpeechEngine::rewind(std::size_t n_tokens) { check(workspace_.rewind(0, n_tokens)); }

std::span<const float> SpeechEngine::read(std::span<const Token> tokens) {
    check(workspace_.read({{{0, tokens, logits_}}}));
    return logits_;
}

void SpeechEngine::attend(std::span<const Token> tokens, const EachHead& each) {
    check(workspace_.attend(0, tokens, each));
}

std::string SpeechEngine::text_of(std::span<const Token> tokens) { return opened_.text(tokens); }

struct host::Transcriber::Engine {
    SpeechEngine model;
};

host::Transcriber::Transcriber(const Opened& opened, const TranscriberOptions& options)
    : opened_(opened),
      engine_(new Engine{SpeechEngine(opened, {.n_threads = options.n_threads ? options.n_threads : default_threads(),
                                               .isa = options.isa,
                                               .words = options.words})}) {}

host::Transcriber::~Transcriber() = default;

void host::Transcriber::check(const SpeechOptions& options) const {
    check_speech(engine_->model.tokens(), options.language, options.task);
}

Transcript host::Transcriber::transcribe(std::span<const float> samples, const SpeechOptions& options,
                                         const SpeechCalls& calls) {
    check(options);
    const RecordingFrames frames = recording_frames(opened_.model, samples, "samples");
    return fovea::transcribe(engine_->model, engine_->model.tokens(), frames.view(), options, calls);
}

}  // namespace fovea

#include "convert/speech/speech_engine.h"

#include <algorithm>

#include "convert/refusal.h"
#include "fovea/sound.h"

namespace fovea {
namespace {

/// The model's Sound with as many frames as the recording has.
Sound sound_of(const Model& model, std::size_t n_samples, const std::string& name) {
    Sound sound = model.config().encoder.sound;
    if (!sound.hears()) throw Refusal(name + ": sound: expected a model that hears, got one that reads text");
    if (n_samples <= window_samples(sound)) return sound;
    const std::size_t n_frames = (n_samples + sound.hop_length - 1) / sound.hop_length;
    constexpr std::size_t kMost = 1u << 26;
    if (n_frames > kMost)
        throw Refusal(name + ": frames: expected at most " + with_separators(kMost) + ", got " +
                      with_separators(n_frames));
    sound.n_frames = static_cast<std::uint32_t>(n_frames);
    return sound;
}

}  // namespace

void need_speech(const Model& model, const Tokenizer& tokenizer, const std::string& name) {
    const Config& config = model.config();
    if (!config.encoder.sound.hears())
        throw Refusal(name + ": model: expected one that hears, got one that reads " +
                      (config.encoder.n_layers && !config.encoder.vocab_size ? "vectors" : "text"));
    if (!config.decoder.n_layers || !config.decoder.vocab_size)
        throw Refusal(name + ": model: expected one that writes what it hears, got an encoder alone");
    if (!tokenizer.valid()) throw Refusal(name + ": tokenizer: expected one in the file, got none");
}

RecordingFrames recording_frames(const Model& model, std::span<const float> samples, const std::string& name) {
    const Sound sound = sound_of(model, samples.size(), name);
    RecordingFrames frames;
    frames.n_content = static_cast<std::uint32_t>((samples.size() + sound.hop_length - 1) / sound.hop_length);
    frames.numbers.resize(std::size_t{sound.n_frames} * sound.n_mels);
    std::uint64_t n_bytes = 0;
    require(frames_scratch(sound, n_bytes), name);
    Arena scratch(n_bytes);
    require(make_frames(sound, mel_filters(model), samples, scratch, frames.numbers), name);
    return frames;
}

SpeechEngine::SpeechEngine(const Model& model, const Tokenizer& tokenizer, const std::string& name,
                           const Options& options)
    : model_(model), tokenizer_(tokenizer), name_(name) {
    need_speech(model, tokenizer, name);
    const Config& config = model.config();
    const Sound& sound = config.encoder.sound;
    tokens_ = SpeechTokens::read(find_info(model, "speech"), config.decoder.vocab_size, name);
    n_frames = sound.n_frames, n_mels = sound.n_mels;
    frame_seconds = static_cast<double>(sound.hop_length) / sound.sample_rate;
    max_tokens = config.decoder.max_positions;
    const std::uint32_t n_rows = (sound.n_frames + 1) / 2;
    const auto take = [&](std::uint64_t bytes) {
        n_bytes_ += bytes;
        return Arena(bytes);
    };
    Plan plan;
    require(make_workspace_plan(config,
                                {.max_kv_len = max_tokens,
                                 .max_batch = std::max(n_rows, max_tokens),
                                 .n_threads = options.n_threads,
                                 .kv_type = options.kv_type,
                                 .max_sequences = 1,
                                 .max_key_rows = n_rows},
                                plan),
            name);
    workspace_arena_ = take(plan.arena_bytes);
    require(make_workspace(model, plan.limits, workspace_arena_, workspace_, options.isa), name);
    if (options.cancel) set_cancel(workspace_, options.cancel);
    PoolPlan memory, text;
    require(make_pool_plan(config, {.max_kv_len = n_rows, .kv_type = options.kv_type, .memory = true}, memory), name);
    require(make_pool_plan(config, {.max_kv_len = max_tokens, .kv_type = options.kv_type}, text), name);
    memory_arena_ = take(memory.arena_bytes), text_arena_ = take(text.arena_bytes);
    require(make_pool(model, memory.limits, memory_arena_, memory_pool_), name);
    require(make_pool(model, text.limits, text_arena_, text_pool_), name);
    require(make_cache(memory_pool_, memory_), name);
    require(make_cache(text_pool_, text_), name);
    logits_.resize(config.decoder.vocab_size);
    piece_.resize(max_piece_bytes(tokenizer));
}

void SpeechEngine::check(const Status& status) const {
    if (status.code == Code::cancelled) throw SpeechCancelled{};
    require(status, name_);
}

void SpeechEngine::hear(std::span<const float> frames) {
    check(fovea::rewind(text_, 0));
    check(fovea::rewind(memory_, 0));
    check(cache_memory(workspace_, {.source = {.vectors = frames, .lengths = {&n_frames, 1}}}, {&memory_, 1}));
}

void SpeechEngine::rewind(std::size_t n_tokens) { check(fovea::rewind(text_, static_cast<std::uint32_t>(n_tokens))); }

std::span<const float> SpeechEngine::read(std::span<const Token> tokens) {
    const Step step{text_, tokens, logits_, memory_};
    check(forward(workspace_, {&step, 1}));
    return logits_;
}

std::string SpeechEngine::text_of(std::span<const Token> tokens) {
    Decoder decoder;
    std::string text;
    for (const Token token : tokens) text += decode(tokenizer_, decoder, token, false, piece_);
    return text + std::string(finish(decoder, piece_));
}

}  // namespace fovea

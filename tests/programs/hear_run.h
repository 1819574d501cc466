// Sound, as fovea_no_alloc runs it: frames of samples, the memory of them, and steps of a text beside it.
#pragma once
#include <vector>

#include "fovea/encode.h"
#include "fovea/sound.h"
#include "fovea/workspace.h"
#include "tests/support/encoder_models.h"
#include "tests/support/small_models.h"

namespace fovea::testing {

class HearRun {
public:
    HearRun(Type type, std::uint32_t n_threads, const SessionOptions& how)
        : model_(sound_config(), type),
          sound_(model_.model.config().encoder.sound),
          samples_(some_floats(window_samples(sound_), 2)),
          frames_(std::size_t{sound_.n_frames} * sound_.n_mels),
          logits_(model_.model.config().decoder.vocab_size) {
        const Config& config = model_.model.config();
        const std::uint32_t n_rows = sound_.n_frames / 2;
        std::uint64_t n_bytes = 0;
        Plan plan;
        PoolPlan memory, text;
        ready_ =
            frames_scratch(sound_, n_bytes).ok() &&
            make_workspace_plan(config, {.max_kv_len = 90, .max_batch = n_rows, .n_threads = n_threads}, plan).ok() &&
            make_pool_plan(config, {.max_kv_len = n_rows, .memory = true}, memory).ok() &&
            make_pool_plan(config, {}, text).ok();
        scratch_.resize(n_bytes), arena_.resize(plan.arena_bytes);
        memories_.resize(memory.arena_bytes), texts_.resize(text.arena_bytes);
        ready_ = ready_ && make_workspace(model_.model, plan.limits, arena_, workspace_, how).ok() &&
                 make_pool(model_.model, memory.limits, memories_, memory_pool_).ok() &&
                 make_pool(model_.model, text.limits, texts_, text_pool_).ok() &&
                 make_cache(memory_pool_, memory_).ok() && make_cache(text_pool_, text_).ok();
    }

    /// Whether all of it went well.
    [[nodiscard]] bool go() {
        const EncodeInput input{.source = {.vectors = frames_, .lengths = {&sound_.n_frames, 1}}};
        const Token tokens[] = {3, 1, 4};
        const Step step{text_, tokens, logits_, memory_};
        return ready_ && make_frames(sound_, mel_filters(model_.model), samples_, scratch_, frames_).ok() &&
               rewind(memory_, 0).ok() && rewind(text_, 0).ok() &&
               cache_memory(workspace_, input, {&memory_, 1}).ok() && forward(workspace_, {&step, 1}).ok();
    }

private:
    SmallModel model_;
    Sound sound_;
    std::vector<float> samples_, frames_, logits_;
    AlignedBytes scratch_, arena_, memories_, texts_;
    Workspace workspace_;
    CachePool memory_pool_, text_pool_;
    Cache memory_, text_;
    bool ready_ = false;
};

}  // namespace fovea::testing

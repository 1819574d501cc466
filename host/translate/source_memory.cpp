#include "host/translate/source_memory.h"

#include <algorithm>

#include "host/base/error.h"

namespace fovea {

SourceMemory::SourceMemory(const host::Opened& opened, const TargetLimits& limits, std::uint32_t n_rows,
                           std::uint32_t n_steps)
    : opened_(opened) {
    const Config& config = opened.config();
    if (opened.kind() != host::Kind::translation)
        throw host::Error(opened.name + ": model: expected an encoder with a decoder of texts, got another");
    max_source_ = limits.max_source ? limits.max_source : config.encoder.max_positions;
    max_positions_ = limits.max_target ? limits.max_target : config.decoder.max_positions;
    workspace_ = start_workspace(opened,
                                 {.max_kv_len = max_positions_,
                                  .max_batch = std::max(max_source_, n_rows),
                                  .n_threads = limits.n_threads,
                                  .kv_type = limits.kv_type,
                                  .max_sequences = n_steps,
                                  .max_key_rows = max_source_},
                                 {.isa = limits.isa});
    if (limits.cancel) set_cancel(*workspace_, limits.cancel);
    pool_ = start_pool(opened, {.max_kv_len = max_source_, .kv_type = limits.kv_type, .memory = true});
    memory_ = start_cache(opened, pool_);
}

void SourceMemory::read(std::span<const Token> source) {
    if (source.empty()) throw host::ArgumentError("prompt: expected 1 token or more, got none");
    if (source.size() > max_source_)
        throw host::Error("prompt: expected at most " + std::to_string(max_source_) +
                          " tokens, as many as the model reads at once, got " + std::to_string(source.size()));
    require(rewind(memory_, 0), opened_.name);
    const auto n_rows = static_cast<std::uint32_t>(source.size());
    require(cache_memory(*workspace_, {.source = {.ids = source, .lengths = {&n_rows, 1}}}, {&memory_, 1}),
            opened_.name);
}

}  // namespace fovea

#include "host/translate/source_memory.h"

#include "host/base/error.h"

namespace fovea {

void need_target(const host::Opened& opened) {
    if (opened.kind() != host::Kind::translation)
        throw host::Error(opened.name + ": model: expected an encoder with a decoder of texts, got another");
}

TwoStackPlan plan_target(const host::Opened& opened, const TargetLimits& limits, std::uint32_t n_rows,
                         std::uint32_t n_texts) {
    need_target(opened);
    return plan_two_stacks(opened, {.n_threads = limits.n_threads,
                                    .kv_type = limits.kv_type,
                                    .max_source = limits.max_source,
                                    .max_target = limits.max_target,
                                    .n_rows = n_rows,
                                    .n_texts = n_texts});
}

SourceMemory::SourceMemory(const host::Opened& opened, const TargetLimits& limits, const TwoStackPlan& plan)
    : opened_(opened),
      max_source_(plan.memories.limits.max_kv_len),
      max_positions_(plan.texts.limits.max_kv_len),
      stacks_(opened, plan, limits.isa, limits.cancel),
      memory_(stacks_.make_memory()) {}

void SourceMemory::read(std::span<const Token> source) {
    if (source.empty()) throw host::ArgumentError("prompt: expected 1 token or more, got none");
    if (source.size() > max_source_)
        throw host::Error("prompt: expected at most " + std::to_string(max_source_) +
                          " tokens, as many as the model reads at once, got " + std::to_string(source.size()));
    require(rewind(memory_, 0), opened_.name);
    const auto n_rows = static_cast<std::uint32_t>(source.size());
    require(cache_memory(stacks_.workspace(), {.source = {.ids = source, .lengths = {&n_rows, 1}}}, {&memory_, 1}),
            opened_.name);
}

}  // namespace fovea

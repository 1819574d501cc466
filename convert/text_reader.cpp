#include "convert/text_reader.h"

#include <algorithm>
#include <span>
#include <string>

#include "convert/refusal.h"
#include "fovea/tokenizer.h"

namespace fovea {
namespace {

[[nodiscard]] WriteOptions options_of(const ModelSource& source, std::optional<Type> type, std::uint32_t n_threads) {
    WriteOptions write;
    write.type = type.value_or(source.type);
    write.as_source = !type;
    write.exact_tables = source.exact_tables;
    write.n_threads = n_threads;
    return write;
}

}  // namespace

void need_calibration(Status status, const char* what) {
    if (status.ok()) return;
    char line[160];
    throw Refusal(std::string("--calibrate: ") + what + ": " + std::string(describe(status, line)));
}

std::vector<Token> text_tokens(const ModelSource& source, std::string_view text, std::uint32_t most) {
    Tokenizer tokenizer;
    if (source.tokenizer.empty()) throw Refusal("--calibrate: expected a model with a tokenizer, got one without");
    const AlignedBytes section(source.tokenizer.begin(), source.tokenizer.end());
    need_calibration(open_tokenizer(section, tokenizer), "tokenizer");
    // Each token takes a byte at least, so this much text gives as many as are wanted, or all there are.
    const std::size_t longest = std::min<std::size_t>(text.size(), most ? std::size_t{most} * 64 : text.size());
    text = text.substr(0, longest);
    std::vector<Token> tokens(max_tokens(tokenizer, text.size()));
    std::vector<std::uint32_t> scratch(tokenize_scratch_bytes(tokenizer, text.size()) / 4 + 1);
    std::size_t n = 0;
    need_calibration(tokenize(tokenizer, text, {}, std::as_writable_bytes(std::span(scratch)), tokens, n), "text");
    tokens.resize(most ? std::min<std::size_t>(n, most) : n);
    if (tokens.size() < 2)
        throw Refusal("--calibrate: expected a text of 2 tokens or more, got " + std::to_string(tokens.size()));
    return tokens;
}

TextReader::TextReader(const ModelSource& source, std::optional<Type> type, std::uint32_t n_threads)
    : head(make_head(source, options_of(source, type, n_threads))),
      file(write_bytes(source, options_of(source, type, n_threads))) {
    need_calibration(open_model(file, model), "model");
    const bool decodes = source.config.decoder.n_layers != 0;
    window = std::min(kWindow, (decodes ? source.config.decoder : source.config.encoder).max_positions);
    Plan plan;
    const std::uint32_t batch = std::min(kBatch, window);
    const Limits limits{.max_kv_len = decodes ? window : 0,
                        .max_batch = batch,
                        .n_threads = n_threads,
                        .max_sequences = decodes ? 0 : batch};
    need_calibration(make_plan(model.config(), limits, plan), "plan");
    arena.resize(plan.arena_bytes);
    need_calibration(make_session(model, plan.limits, arena, session), "session");
}

}  // namespace fovea

#include "convert/calibrate/text_reader.h"

#include <algorithm>
#include <span>
#include <string>

#include "fovea/encode.h"
#include "host/base/error.h"

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
    throw host::Error(std::string("--calibrate: ") + what + ": " + std::string(describe(status, line)));
}

ModelInMemory::ModelInMemory(const ModelSource& source, std::optional<Type> type, std::uint32_t n_threads)
    : head(make_head(source, options_of(source, type, n_threads))),
      file(write_bytes(source, options_of(source, type, n_threads))),
      opened(host::open_bytes(file, "--calibrate")) {}

TextReader::TextReader(const ModelSource& source, std::optional<Type> type, std::uint32_t n_threads)
    : in_memory_(source, type, n_threads),
      decodes_(calibrated_stack(source) == StackIndex::decoder),
      batch_(std::min(kReadTokens, window_of(source))) {
    const Limits limits{.max_kv_len = decodes_ ? window_of(source) : 0,
                        .max_batch = batch_,
                        .n_threads = n_threads,
                        .max_sequences = decodes_ ? 0 : batch_};
    session_ = start_session(in_memory_.opened, limits);
}

std::uint32_t TextReader::result_width(bool with_logits) const noexcept {
    const Config& config = in_memory_.opened.config();
    return !decodes_ ? config.encoder.d_model : with_logits ? config.decoder.vocab_size : 0;
}

void TextReader::read(const Texts& texts, bool with_logits, const std::function<void(std::uint32_t first)>& before,
                      const std::function<void(const ReadPass& pass)>& after) {
    const std::size_t width = result_width(with_logits);
    results_.resize(batch_ * width);
    if (decodes_) {
        for (const std::vector<Token>& text : texts.ids) {
            need_calibration(rewind(*session_, 0), "window");
            for (std::size_t first = 0; first < text.size(); first += batch_) {
                const std::size_t n = std::min<std::size_t>(batch_, text.size() - first);
                const std::span<float> logits = std::span(results_).first(n * width);
                before(static_cast<std::uint32_t>(first));
                need_calibration(forward(*session_, std::span(text).subspan(first, n), logits), "pass");
                after({n, logits});
            }
        }
        return;
    }
    const bool pools = in_memory_.opened.config().encoder.pooling != Pooling::none;
    std::vector<Token> ids;
    std::vector<std::uint32_t> lengths;
    const auto run = [&] {
        if (ids.empty()) return;
        const std::span<float> vectors = std::span(results_).first((pools ? lengths.size() : ids.size()) * width);
        before(0);
        need_calibration(encode(*session_, {.source = {.ids = ids, .lengths = lengths}, .before_head = true}, vectors),
                         "pass");
        after({ids.size(), vectors});
        ids.clear();
        lengths.clear();
    };
    for (const std::vector<Token>& text : texts.ids) {
        if (ids.size() + text.size() > batch_) run();
        ids.insert(ids.end(), text.begin(), text.end());
        lengths.push_back(static_cast<std::uint32_t>(text.size()));
    }
    run();
}

}  // namespace fovea

// Texts: the generator of a session.
#include <algorithm>

#include "bindings/python/src/errors.h"
#include "bindings/python/src/session.h"
#include "fovea/host/generation.h"
#include "host/base/clock.h"
#include "host/model/draft_vectors.h"

namespace fovea::python {
namespace {

/// What was given, cut where it is long.
std::string in_words(nb::handle value) {
    constexpr std::size_t kMost = 80;
    std::string words = nb::cast<std::string>(nb::repr(value));
    if (words.size() <= kMost) return words;
    std::size_t end = kMost;
    while ((static_cast<unsigned char>(words[end]) & 0xc0) == 0x80) --end;  // within a character
    return words.substr(0, end) + "...";
}

/// A dictionary from tokens to numbers.
void read_biases(nb::handle value, std::vector<LogitBias>& biases) {
    for (const auto& [key, number] : nb::cast<nb::dict>(value)) {
        LogitBias& b = biases.emplace_back();
        b.id = count_of(key, "logit_bias: ids");
        if (!nb::try_cast(number, b.bias))
            refuse_value("logit_bias", "a number for id " + std::to_string(b.id), in_words(number));
    }
}

/// The options view `biases` and `sampler`.
GenerateOptions options_of(const nb::dict& named, std::vector<LogitBias>& biases, TextSampler& sampler) {
    GenerateOptions options;
    options.speculation.clock = host::ticks_now;
    const auto read = [&](const char* name, auto& field) {
        if (named.contains(name) && !nb::try_cast(nb::object(named[name]), field))
            refuse_value(name, "a number of its range", in_words(named[name]));
    };
    read("max_new_tokens", options.n_new);
#define FOVEA_SAMPLER_REAL(field, ...) read(#field, sampler.field);
#define FOVEA_SAMPLER_COUNT FOVEA_SAMPLER_REAL
#define FOVEA_SAMPLER_SEED FOVEA_SAMPLER_REAL
#include "fovea/sampler_options.inc"
    std::int64_t n_recent = options.n_recent;
    read("repeat_last_n", n_recent);
    if (n_recent < -1 || n_recent > 0xffffffff)
        refuse_value("repeat_last_n", "a number of its range", std::to_string(n_recent));
    options.n_recent = static_cast<std::uint32_t>(n_recent);
    if (named.contains("logit_bias")) read_biases(named["logit_bias"], biases);
    read("special", options.show_special);
    read("speculate", options.speculation.n_proposed);
    options.sampler = sampler.options();
    options.sampler.bias = biases;
    return options;
}

}  // namespace

const char* name_of(FinishReason reason) {
    static constexpr const char* kNames[] = {"", "end", "stop", "length", "context"};
    return kNames[static_cast<std::size_t>(reason)];
}

void PySession::make_generator_for(std::size_t n_stop_bytes, std::uint32_t n_proposed) {
    const auto n_stop = static_cast<std::uint32_t>(std::min<std::size_t>(n_stop_bytes + 256, 0xffffffffu));
    const GeneratorLimits& had = generator_.plan.limits;
    if (generator_->valid() && had.max_stop_bytes >= n_stop && had.max_proposed >= n_proposed) return;
    generator_ =
        start_generator(*opened_, session_->cache(),
                        {.max_tokens = session_->max_kv_len(), .max_stop_bytes = n_stop, .max_proposed = n_proposed});
}

void PySession::use_draft(Speculation& speculation) {
    constexpr std::uint32_t kUsual = 8;
    if (!draft_opened_) return;
    if (!speculation.n_proposed) speculation.n_proposed = kUsual;
    const std::size_t n = host::n_draft_vectors(*draft_opened_, draft_->max_kv_len(), speculation.n_proposed);
    if (vectors_.size() < n) vectors_.assign(n, 0.0f);
    speculation.always = drafts_always_;
    speculation.draft = {draft_->workspace(), draft_->cache(), vectors_};
}

std::uint64_t PySession::start(nb::handle prompt_object, const nb::dict& named, const nb::list& stop,
                               const PyForm* form, const PyChat* chat) {
    need_logits();
    std::vector<std::string> texts;
    std::size_t n_stop_bytes = 0;
    for (nb::handle text : stop) n_stop_bytes += texts.emplace_back(utf8_of(text, "stop")).size();
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const std::vector<Token> prompt = read_ids(prompt_object, "prompt");
    std::vector<LogitBias> biases;
    TextSampler sampler;
    GenerateOptions options = options_of(named, biases, sampler);
    const std::uint32_t vocab_size = opened_->model.config().decoder.vocab_size;
    for (const LogitBias& b : biases)
        if (b.id >= vocab_size)
            refuse_value("logit_bias", "ids below " + std::to_string(vocab_size), std::to_string(b.id));
    options.stop = views;
    if ((form && form->compiled()->opened != opened_) || (chat && chat->talk()->opened != opened_))
        refuse_value("form", "one of this session's model", "one of another");
    const std::uint64_t context = session_->max_kv_len();
    if (!prompt.empty() && prompt.size() >= context + (options.n_new == 0))
        require({Code::context_full, "tokens of the prompt", context - 1, prompt.size()}, "prompt");
    if (!prompt.empty())
        options.n_new = static_cast<std::uint32_t>(std::min<std::uint64_t>(options.n_new, context - prompt.size()));
    std::uint64_t number = 0;
    require(gate_.alone([&]() -> Status {
        settle_tokens();
        touched();
        use_draft(options.speculation);
        number = text_;
        make_generator_for(n_stop_bytes, std::max(options.speculation.n_proposed, form ? host::kForced : 0u));
        place_.start(form ? form->compiled() : nullptr);
        options.filter = place_.filter();
        talk_ = chat ? chat->talk() : nullptr;
        if (const Status status = resume(*generator_, tokens_); !status.ok()) return status;
        sampler_ = sampler;
        options.sampler.more = &sampler_;
        if (talk_) {
            options.end_tokens = talk_->chat.end_tokens();
            options.shown = talk_->chat.marks();
        }
        const Status status = fovea::start(*generator_, prompt, options);
        if (status.ok())
            biases_ = std::move(biases);  // the same elements, so that what start was given still views them
        generating_ = status.ok();
        n_kept_ = status.ok() ? generator_->figures().n_kept : 0;
        // What start has kept of the cache is what both begin with.
        if (!status.ok()) tokens_.resize(std::min<std::size_t>(tokens_.size(), session_->kv_len()));
        return status;
    }),
            "generate");
    return number;
}

nb::tuple PySession::next(std::uint64_t text) {
    Piece piece;
    std::string added;
    bool is_present = false;
    require(gate_.run([&]() -> Status {
        is_present = generating_ && text == text_;
        if (!is_present) return {};
        Workspace workspace = session_->workspace();
        const Status status = fovea::generate(*generator_, workspace, piece);
        added = piece.text;
        return status;
    }),
            "generate");
    if (!is_present) refuse_value("stream", "the session's present text", "one that another call has ended");
    return nb::make_tuple(nb::str(added.data(), added.size()), name_of(piece.finish));
}

nb::dict PySession::figures() {
    const GenerateFigures of = gate_.alone([&] { return generating_ ? generator_->figures() : GenerateFigures{}; });
    nb::dict figures;
    figures["n_prompt"] = of.n_prompt;
    figures["n_kept"] = of.n_kept;
    figures["n_tokens"] = of.n_tokens;
    figures["n_passes"] = of.n_passes;
    figures["n_proposed"] = of.n_proposed;
    figures["n_accepted"] = of.n_accepted;
    return figures;
}

}  // namespace fovea::python

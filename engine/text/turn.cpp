// A generator's turn: the step to compute, and the reading of its logits.
#include <cstring>

#include "engine/cache/kv_cache.h"
#include "engine/format/parts.h"
#include "engine/format/tables.h"
#include "engine/text/generator_state.h"

namespace fovea {
namespace {

[[nodiscard]] bool contains(std::span<const Token> tokens, Token token) noexcept {
    for (const Token one : tokens)
        if (one == token) return true;
    return false;
}

[[nodiscard]] Status no_text(const Generator& generator) noexcept {
    return {Code::bad_argument, generator.valid() ? "generator: no text that goes on" : "generator: not made", 0, 0};
}

/// DRY's sequence breakers, as its author chose them: tokens with a line end, a colon, a quotation mark or a star.
[[nodiscard]] bool breaks(const Tokenizer& tokenizer, Token token) noexcept {
    return token_bytes(tokenizer, token).find_first_of("\n:\"*") != std::string_view::npos;
}

/// Clears the mask's bits of tokens that end a text, if others are left.
void forbid_ends(GeneratorState& s) noexcept {
    const std::span<const Token> ends[] = {s.end_tokens, TokenizerReader::tables(s.tokenizer).end_ids};
    const auto without_ends = [&](std::size_t i) {
        std::uint32_t word = s.mask[i];
        for (const std::span<const Token> some : ends)
            for (const Token token : some)
                if (token / 32 == i) word &= ~(1u << token % 32);
        return word;
    };
    const std::uint32_t n_last = s.vocab_size % 32;
    for (std::size_t i = 0; i < s.mask.size(); ++i) {
        const bool is_cut = n_last && i + 1 == s.mask.size();
        if (!(without_ends(i) & (is_cut ? (1u << n_last) - 1 : ~0u))) continue;
        for (const std::span<const Token> some : ends)
            for (const Token token : some)
                if (token < s.vocab_size) s.mask[token / 32] &= ~(1u << token % 32);
        return;
    }
}

[[nodiscard]] SampledText sampled_text(GeneratorState& s) noexcept {
    const std::span<const Token> text = s.tokens();
    SampledText made{text, 0, &s.mirostat_mu};
    if (s.sampler.options.more && s.sampler.options.more->dry_multiplier > 0)
        while (made.n_unbroken < text.size() && !breaks(s.tokenizer, text[text.size() - 1 - made.n_unbroken]))
            ++made.n_unbroken;
    return made;
}

/// The token after the text, from a row of logits.
[[nodiscard]] Status choose(GeneratorState& s, std::span<const float> logits, Token& token) noexcept {
    const std::span<const Token> text = s.tokens();
    std::span<const std::uint32_t> allowed;
    const bool goes_on =
        has(Part::samplers) && s.sampler.options.more && s.figures.n_tokens < s.sampler.options.more->min_tokens;
    if (s.filter.allow || goes_on) {
        std::memset(s.mask.data(), 0xff, s.mask.size_bytes());
        if (s.filter.allow) s.filter.allow(s.filter.context, text, s.mask);
        if (goes_on) forbid_ends(s);
        allowed = s.mask;
    }
    const std::size_t n_recent = text.size() < s.n_recent ? text.size() : s.n_recent;
    const std::span<const Token> new_ones = text.subspan(has(Part::penalties) ? s.counts_from : text.size());
    const std::size_t n_counted = new_ones.size() < s.n_counted ? new_ones.size() : s.n_counted;
    const bool has_more = has(Part::samplers) && s.sampler.options.more;
    const SampledText whole = has_more ? sampled_text(s) : SampledText{};
    return sample(s.sampler, s.n_text, logits, text.last(n_recent), s.candidates, token, allowed,
                  new_ones.last(n_counted), has_more ? &whole : nullptr);
}

/// Whether, and where, the text ended after its next bytes, which are at the end of s.bytes already.
[[nodiscard]] bool finds_stop(GeneratorState& s, std::size_t n_new) noexcept {
    for (const std::uint32_t end = s.n_bytes + static_cast<std::uint32_t>(n_new); s.n_bytes < end;) {
        const std::uint32_t n_stop = s.stop.push(s.bytes[s.n_bytes++]);
        if (n_stop == 0) continue;
        s.n_bytes -= n_stop;
        if (has(Part::samplers)) s.n_stopped = n_stop;
        return true;
    }
    return false;
}

[[nodiscard]] bool ends_text(const GeneratorState& s, Token token) noexcept {
    return contains(s.end_tokens, token) || s.tokenizer.ends_text(token);
}

/// A chosen token joins the text, or ends it.
void accept(GeneratorState& s, Token token) noexcept {
    if (s.filter.accept) s.filter.accept(s.filter.context, token);
    if (ends_text(s, token)) {
        s.finish = FinishReason::end_token;
        return;
    }
    s.text[s.n_text++] = token;
    ++s.figures.n_tokens;
    --s.n_left;
    if (s.tokenizer.valid() && finds_stop(s, decode_next(s, token).size()))
        s.finish = FinishReason::stop_text;
    else if (s.n_left == 0)
        s.finish = s.ends_by_length ? FinishReason::length : FinishReason::context;
}

/// Chooses the step's tokens until one is not what was proposed. If a later row fails the next turn meets it again.
[[nodiscard]] Status choose_all(GeneratorState& s) noexcept {
    const std::uint32_t n_before = s.n_text, n_rows = 1 + s.n_proposed;
    std::uint32_t n_right = 0;
    bool refused = false;
    for (std::uint32_t i = 0; i < n_rows && s.finish == FinishReason::none && n_right == i; ++i) {
        const Token proposed = s.text[n_before + i];  // read before it is replaced; none in the last row
        Token token = 0;
        if (Status status = choose(s, s.logits.subspan(std::size_t{i} * s.vocab_size, s.vocab_size), token);
            !status.ok()) {
            if (i == 0) return status;
            break;
        }
        accept(s, token);
        if (i == s.n_proposed) break;
        refused = token != proposed;
        n_right += !refused;
    }
    if (!has(Part::speculation)) return {};
    if (s.n_proposed == 0 && s.match.length && s.n_text > n_before)
        s.economy.learn(s.match, s.text[s.match.next] == s.text[n_before]);
    if (s.n_forced) {  // says nothing of proposals that may be wrong
        s.figures.n_forced += n_right;
    } else {
        if (n_before > s.figures.n_prompt) s.economy.settle(s.match, s.n_proposed, n_right, refused);
        s.figures.n_proposed += s.n_proposed;
        s.figures.n_accepted += n_right;
    }
    if (s.n_drafted > n_before + n_right) s.n_drafted = n_before + n_right;
    return {};
}

/// The text's bytes that can be handed out now.
[[nodiscard]] std::string_view show(GeneratorState& s) noexcept {
    if (s.finish != FinishReason::none && s.finish != FinishReason::stop_text &&
        finds_stop(s, finish(s.decoder, s.bytes.subspan(s.n_bytes)).size()))
        s.finish = FinishReason::stop_text;
    s.n_shown = s.finish == FinishReason::none ? s.n_bytes - s.stop.held() : s.n_bytes;
    return {s.bytes.data(), s.n_shown};
}

}  // namespace

std::string_view decode_next(GeneratorState& s, Token token) noexcept {
    const bool shows = s.show_special || contains(s.shown, token);
    return decode(s.tokenizer, s.decoder, token, shows, s.bytes.subspan(s.n_bytes));
}

Status next_step(Generator& generator, Step& step) noexcept {
    if (!generator.valid() || !GeneratorAccess::state(generator)->running) return no_text(generator);
    GeneratorState& s = *GeneratorAccess::state(generator);
    const std::uint32_t kv_len = s.cache.kv_len();
    // What a rewind did not reach may have been computed again already.
    if (kv_len > s.n_cached && kv_len < s.n_text && has_states(*CacheAccess::pool(s.cache))) s.n_cached = kv_len;
    if (kv_len != s.n_cached) return {Code::bad_argument, "positions in the generator's cache", s.n_cached, kv_len};
    if (!s.stepped) {
        if (has(Part::speculation)) {
            s.economy.begin_pass();
            if (Status status = propose(s); !status.ok()) return status;
        }
        if (s.has_head()) place_vectors(s);
        s.stepped = true;
    }
    step = s.step();
    return {};
}

Status take(Generator& generator, Piece& piece) noexcept {
    if (!generator.valid() || !GeneratorAccess::state(generator)->running) return no_text(generator);
    GeneratorState& s = *GeneratorAccess::state(generator);
    const std::uint32_t n_computed = s.n_text + s.n_proposed;
    if (!s.stepped || s.cache.kv_len() != n_computed)
        return {Code::bad_argument, "positions in the generator's cache, the step's too", n_computed, s.cache.kv_len()};
    const std::uint32_t n_before = s.n_text;
    if (has(Part::speculation) && s.speculation.n_proposed && n_before > s.figures.n_prompt)
        s.economy.end_pass(s.n_proposed);
    if (s.n_left == 0) s.finish = s.ends_by_length ? FinishReason::length : FinishReason::context;
    // Bytes that were handed out make room.
    const std::uint32_t n_held = s.n_bytes - s.n_shown;
    std::memmove(s.bytes.data(), s.bytes.data() + s.n_shown, n_held);
    s.n_bytes = n_held;
    s.n_shown = 0;
    if (s.finish == FinishReason::none)
        if (Status status = choose_all(s); !status.ok()) return status;
    if (n_before > s.figures.n_prompt) ++s.figures.n_passes;
    // No token has followed the last one, so it is not cached; but if the model ended the text it has.
    const std::uint32_t n_new = s.n_text - n_before;
    s.n_cached = s.finish == FinishReason::end_token || n_new == 0 ? s.n_text : s.n_text - 1;
    (void)rewind(s.cache, s.n_cached, &s.n_cached);  // what is not reached is computed again, with the next step
    if (has(Part::speculation)) forget_mark(s);
    if (s.has_head()) keep_vectors(s);
    s.stepped = false;
    s.n_proposed = 0;
    piece.text = show(s);
    piece.tokens = s.tokens().last(n_new);
    piece.logits = s.logits.first(std::size_t{n_new} * s.vocab_size);
    piece.finish = s.finish;
    if (has(Part::samplers)) piece.stop_text = {s.bytes.data() + s.n_bytes, s.n_stopped};
    s.running = s.finish == FinishReason::none;
    return {};
}

}  // namespace fovea

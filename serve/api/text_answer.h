// Answers that are texts: of a chat, of a completion, of a response.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/chat/answer_reader.h"
#include "serve/api/endpoint.h"

namespace fovea::serve {

/// Chosen tokens with their log probabilities and bytes, each beside the likeliest in its place ("top_logprobs").
[[nodiscard]] Json chances_of(const std::vector<ChosenToken>& tokens, bool with_ids);

/// What an answer needs to know of its request.
struct TextAnswerOptions {
    std::string id, model;
    std::int64_t created = 0;                 ///< seconds since 1970
    std::uint32_t n_choices = 1, n_each = 1;  ///< in all, and for each prompt
    std::uint32_t n_prompt = 0;               ///< tokens of the first prompt
    bool stream = false, with_usage = false, counts_pieces = false, with_hash = false, with_chances = false;
    std::optional<AnswerReading> reading = {};  ///< of a conversation's answer; none: its text as it is
    std::vector<std::string> echo = {};         ///< a text for each choice that comes before its own; empty: none
    Clock::time_point arrived;
};

class TextAnswer : public Answer {
public:
    explicit TextAnswer(TextAnswerOptions options);
    [[nodiscard]] std::string hashes() const override;
    [[nodiscard]] std::size_t n_kept() const override;

protected:
    /// What one event adds to what a client sees.
    struct Part {
        std::string text, thought;
    };
    /// What has come of one choice.
    struct Written {
        std::string text, thought;
        AnswerReader reader;
        std::size_t n_calls_shown = 0, n_pieces_shown = 0;
        std::vector<ChosenToken> tokens;
        std::optional<Clock::time_point> first;  // when the first event came
        Event last;                              // once it has come; its counts before that, too
        std::uint32_t n_thought = 0;             // tokens up to the end of its reasoning
        std::size_t n_chars = 0;                 // of the text before the next token, for completions' offsets
    };
    /// What an event adds to a stream. `written` is without it, but knows how the text ended if it has.
    [[nodiscard]] virtual std::string piece(Written& written, const Event& event, const Part& part) = 0;
    /// Hands out a part's text and pieces of calls, each where it stands in the text, however that comes.
    ///   on_piece  takes a piece, and whether it is its call's last
    template<class OnText, class OnPiece>
    static void each_in_order(Written& written, const Part& part, const OnText& on_text, const OnPiece& on_piece) {
        const std::vector<CallPiece>& pieces = written.reader.pieces();
        std::string_view rest = part.text;
        std::size_t at = written.text.size();
        while (written.n_pieces_shown < pieces.size()) {
            const CallPiece& piece = pieces[written.n_pieces_shown++];
            const std::size_t n = std::min(piece.at - std::min(piece.at, at), rest.size());
            on_text(rest.substr(0, n));
            const bool has_next =
                written.n_pieces_shown < pieces.size() && pieces[written.n_pieces_shown].index == piece.index;
            on_piece(piece, !has_next && piece.index < written.reader.calls().size());
            rest.remove_prefix(n);
            at += n;
        }
        on_text(rest);
    }
    /// An answer whose calls are handed out while they come, if it is a stream.
    [[nodiscard]] static TextAnswerOptions streaming_calls(TextAnswerOptions options) {
        if (options.reading) options.reading->streams_calls = options.stream;
        return options;
    }
    /// An answer that is made of its pieces even if it is sent as a whole.
    [[nodiscard]] static TextAnswerOptions in_pieces(TextAnswerOptions options) {
        options = streaming_calls(std::move(options));
        options.stream = true;
        return options;
    }
    [[nodiscard]] Json usage() const;
    /// Members that OpenAI's objects begin with.
    [[nodiscard]] Json head(const char* object) const;
    /// A choice as OpenAI's objects end it. `finish`: how; null: it goes on.
    [[nodiscard]] static Json ended_choice(Json choice, Json logprobs, const char* finish);
    /// A whole answer of OpenAI's, whose choices are choice(number, what has come of it).
    template<class Choice>
    [[nodiscard]] std::string openai_whole(const char* object, const Choice& choice) const {
        Json json = head(object);
        json["choices"] = Json::array();
        for (std::size_t i = 0; i < choices_.size(); ++i) json["choices"].push_back(choice(i, choices_[i]));
        json["usage"] = usage();
        return written(json);
    }
    /// A piece of a stream of OpenAI's. `finish`: how the choice ended; null: it goes on.
    [[nodiscard]] std::string chunk(const char* object, Json choice, Json logprobs, const Written& written,
                                    const char* finish) const;
    /// What a stream of OpenAI's ends with.
    [[nodiscard]] std::string openai_end(const char* object) const;

    const TextAnswerOptions options_;
    std::vector<Written> choices_;

private:
    [[nodiscard]] std::string take(const Event& event) final;
    [[nodiscard]] Part visible(Written& written, const Event& event) const;
};

inline constexpr std::uint32_t kAsManyAsFit = 0xffffffffu;

/// A job, and what its prompt has of the answer.
struct TextJob {
    JobPtr job;
    std::string begun;
};

/// A job for a request's texts. `n_unsaid`: new tokens of each where the request does not say how many. Throws RequestError.
[[nodiscard]] TextJob text_job(const Call& call, ModelEntry& entry, const Request& request, std::uint32_t n_unsaid);
[[nodiscard]] TextAnswerOptions text_options(const Call& call, const ModelEntry& entry, const Request& request,
                                             const TextJob& made);

/// A job for a request's texts, and the endpoint's own answer, made of its options and what else it needs.
template<class OwnAnswer, class... More>
[[nodiscard]] Reply text_reply(const Call& call, ModelEntry& entry, const Request& request,
                               std::uint32_t n_unsaid = kAsManyAsFit, More&&... more) {
    const TextJob made = text_job(call, entry, request, n_unsaid);
    auto answer = std::make_unique<OwnAnswer>(text_options(call, entry, request, made), std::forward<More>(more)...);
    Reply reply = reply_of(call, entry, made.job, std::move(answer), request.stream);
    if (made.job->sampler.seed != request.sampler.seed) reply.tell_seed();
    if (!request.ignored.empty()) reply.headers.emplace_back("X-Fovea-Ignored", request.ignored);
    return reply;
}

}  // namespace fovea::serve

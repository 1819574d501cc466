// What the engine is asked to compute for one request, and what it hands back. Made by whoever reads requests, then shared
// with the scheduler's thread.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/config.h"
#include "fovea/generator.h"
#include "fovea/sampler.h"
#include "host/model/penalized.h"
#include "host/model/sampling_options.h"
#include "host/model/target_rules.h"
#include "host/speech/transcriber.h"

namespace fovea::serve {

using Clock = std::chrono::steady_clock;
[[nodiscard]] inline double seconds_since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
}

/// A token that was chosen, and those it was chosen from: natural logarithms of probabilities at temperature 1.
struct TokenChance {
    std::string bytes;
    Token id = 0;
    float logprob = 0;
};
struct ChosenToken : TokenChance {
    std::vector<TokenChance> likeliest;  ///< by falling probability, then id
};

/// A status that only logs have: the client had left, as nginx says it.
inline constexpr int kClientLeft = 499;

/// Why a job could not be finished, as a status of HTTP and a line for people. status 0: nothing failed.
struct Failure {
    int status = 0;
    std::string message;
    std::string param{};  ///< the field of the request
    std::string code{};   ///< a word for programs
};

/// What one pass adds to one choice of a job.
struct Event {
    std::uint32_t choice = 0;
    std::string text{};
    std::vector<ChosenToken> tokens{};      ///< where Job::n_likeliest asks for them
    std::vector<float> vector{};            ///< of an embedding
    std::vector<SpeechSegment> segments{};  ///< of a recording, whose text is `text`
    FinishReason finish = FinishReason::none;
    bool ended = false;  ///< nothing more comes of this choice
    Failure failure{};
    // Known once the choice has ended.
    std::uint32_t n_prompt = 0, n_shared = 0, n_new = 0;  ///< tokens; n_shared of the prompt were there already
    std::uint32_t n_proposed = 0, n_accepted = 0;         ///< of n_new by a draft: tokens, and those that were right
    std::uint64_t logits_hash = 0;
    std::string stop{};      ///< the stop text that ended it
    std::string language{};  ///< of a recording,
    double seconds = 0;      ///< and how long it is
};

inline constexpr std::uint32_t kMostRecordingSeconds = 3600;

/// A sound file that is to be written down, and how.
struct Recording {
    std::string bytes;
    std::shared_ptr<const void> taken;  ///< the place of those bytes among all bodies': both go once it is decoded
    SpeechOptions options;
};

/// What a page asks for to show attention: one layer of what a text looks at.
struct AttentionView {
    std::uint32_t layer = 0;
    std::int32_t head = -1;  ///< -1: the mean of all
};

/// What of an encoder a job is about: vectors, before a head if there is one; its head's numbers, one for each label; sparse
/// vectors, each a token's id and its weight in turn; the vectors of each text's tokens; or scores by these for the first text.
enum class EncoderResult { vectors, scores, weights, tokens, likenesses };

/// What a model is for.
enum class Work { text, vectors, speech };

/// What an answer must be.
enum class Form { any, json, schema, grammar, regex, tool };

/// A constraint of one choice, which owns it: a filter, which the scheduler's thread calls, and what it works on.
struct Constrained {
    std::shared_ptr<void> place;
    TokenFilter filter;
};
using Constrain = std::function<Constrained()>;
struct TokenRules;  // serve/jobs/token_rules.h

/// What a client has of a choice.
struct Told {
    std::size_t n_bytes = 0, n_chances = 0;  ///< of its text; tokens with probabilities
    std::uint32_t n_new = 0;                 ///< tokens
};
/// A choice that has given its place to another user's. It is computed again from its start, which gives the same text.
struct ReturnedChoice {
    std::uint32_t index = 0;
    Told told{};
};

struct Job {
    // What is asked for. Nobody changes it once the job is queued.
    std::shared_ptr<const void> use;          ///< of its model, which is not unloaded as long as somebody has it
    std::string user;                         ///< whose turn it is: an API key, or an address
    std::vector<std::vector<Token>> prompts;  ///< of choice i: prompts[i / n_each]
    /// Of a model that writes a text from another: what its encoder reads before prompt i, by rules that say the rest.
    std::vector<std::vector<Token>> sources;
    std::shared_ptr<const TargetRules> rules;  ///< null: the prompts are all that there is
    std::vector<std::uint32_t> n_unpooled;     ///< of prompt i: tokens that its vector leaves out; empty: none
    std::vector<std::vector<Token>> types;     ///< of prompt i's tokens, where they have any but 0; empty: of none
    std::vector<std::uint32_t> n_unseen;       ///< of prompt i: last tokens that no other attends to; empty: none
    bool are_queries = false;                  ///< the texts of EncoderResult::tokens
    std::shared_ptr<Recording> recording;      ///< instead of prompts
    EncoderResult result = EncoderResult::vectors;
    std::uint32_t n_each = 1;  ///< choices for each prompt; the seed of the j-th is seed + j
    std::uint32_t n_new = 0;   ///< tokens at most
    TextSampler sampler;
    Penalized penalized;
    std::vector<std::string> stop;
    std::vector<Token> end_tokens;                  ///< that end an answer beside the model's own
    std::shared_ptr<const TokenRules> token_rules;  ///< null: none
    bool shows_special = false;                     ///< an answer's text has special tokens,
    bool shows_stop = false;                        ///< and the stop text that ended it
    std::span<const Token> shown;                   ///< special tokens that an answer's text has; they outlive it too
    int n_likeliest = -1;                           ///< of each token's alternatives; -1: no probabilities
    bool scores_prompt = false;                     ///< events have the prompts' tokens first, with probabilities
    bool hash_logits = false;
    std::optional<AttentionView> view;  ///< no answer is wanted, but attention: an event with a vector [tokens][tokens]
    Constrain constrain;                ///< makes the constraint of a choice; empty: any text
    std::function<Failure()>
        prepare;  ///< sets `constrain`, beside the threads that others wait for; empty: nothing is to do
    std::function<void(const Failure&)> prepared;  ///< called once after it
    std::shared_ptr<const void> taken;             ///< the place of its bytes among all bodies'
    Clock::time_point arrived, deadline;
    /// Called by the scheduler's thread after each pass that adds something; a job of a stopped scheduler gets a last failure.
    std::function<void(std::vector<Event>)> deliver;

    // What others set while it runs.
    std::atomic<bool> cancelled{false};  ///< nobody waits for it any more
    bool given_up = false;               ///< by a full queue, for a user who has fewer
    std::shared_ptr<std::atomic<std::size_t>> unsent = std::make_shared<std::atomic<std::size_t>>(0);
    ///< bytes handed over that the client has not taken: above a bound the job's choices rest

    // The engine's own.
    std::uint32_t n_started = 0, n_ended = 0;
    std::vector<ReturnedChoice> returned;         ///< of those that have started: they are to start again
    Clock::duration slow{};                       ///< how long its client has had too much to read, in all
    std::optional<Clock::time_point> slow_since;  ///< and has now
    std::vector<Event> events;                    ///< of this pass
    std::vector<float> query_vectors;             ///< of the first text, which the others are compared with

    [[nodiscard]] bool is_slow() const {
        constexpr std::size_t kMostUnsent = 64 << 10;  // bytes; above, its choices rest until the client has read some
        return unsent->load(std::memory_order_relaxed) > kMostUnsent;
    }
    /// The index of the one that starts next.
    [[nodiscard]] std::uint32_t next_choice() const { return returned.empty() ? n_started : returned.back().index; }
    [[nodiscard]] bool has_started() const { return n_started == n_choices() && returned.empty(); }
    /// How long it has been slow in all, up to `now`.
    [[nodiscard]] Clock::duration slow_until(Clock::time_point now) {
        if (is_slow() && !slow_since) slow_since = now;
        if (!is_slow() && slow_since) slow += now - *std::exchange(slow_since, std::nullopt);
        return slow + (slow_since ? now - *slow_since : Clock::duration{});
    }
    /// A client that does not read keeps its place only as long as nobody waits for one.
    [[nodiscard]] bool is_unread(Clock::time_point now) {
        constexpr std::chrono::seconds kMostSlow(15);
        return slow_until(now) > kMostSlow;
    }
    [[nodiscard]] std::uint32_t n_choices() const {
        return recording ? 1 : static_cast<std::uint32_t>(prompts.size()) * n_each;
    }
    /// Bytes of what is read.
    [[nodiscard]] std::size_t n_bytes() const {
        std::size_t n = 0;
        for (const auto* lists : {&prompts, &sources, &types})
            for (const std::vector<Token>& tokens : *lists) n += sizeof tokens + tokens.size() * sizeof(Token);
        return n;
    }
    /// Texts are written from these.
    void write_from(std::vector<std::vector<Token>> read, std::shared_ptr<const TargetRules> by) {
        sources = std::move(read);
        rules = std::move(by);
        prompts.assign(sources.size(), rules->prompt());
        end_tokens = rules->ends;
    }
    /// Nobody waits for it, or it has had its time.
    [[nodiscard]] bool is_over(Clock::time_point now) const {
        return cancelled.load(std::memory_order_relaxed) || deadline <= now;
    }
    void hand_over() {
        if (events.empty()) return;
        deliver(std::exchange(events, {}));
    }
    /// Says that it cannot be finished, unless its end has been told.
    void fail(const Failure& failure) {
        if (!deliver) return;
        events.push_back({.ended = true, .failure = failure});
        hand_over();
        deliver = nullptr;
    }
};

using JobPtr = std::shared_ptr<Job>;

/// The scheduler's thread sleeps on this until somebody has something for it.
class Bell {
public:
    void ring() {
        {
            const std::lock_guard lock(mutex_);
            rung_ = true;
        }
        waiter_.notify_one();
    }
    /// Until the next ring, at once where one came since the last wait, and never longer than deadlines may be late.
    void wait() {
        std::unique_lock lock(mutex_);
        waiter_.wait_for(lock, std::chrono::milliseconds(200), [this] { return rung_; });
        rung_ = false;
    }

private:
    std::mutex mutex_;
    std::condition_variable waiter_;
    bool rung_ = false;
};

}  // namespace fovea::serve

// A session as Python has it: the arena, what the cache holds, and the text that is being made.
#pragma once
#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <vector>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/form.h"
#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/opened.h"
#include "fovea/host/runtime.h"
#include "host/model/sampling_options.h"
#include "host/model/texts.h"

namespace fovea::python {

/// Limits from keyword arguments of the names that fovea/plan.h has, with room for the model's adapters.
[[nodiscard]] Limits limits_of(const OpenedModel& opened, const nb::dict& named);
/// A whole number of 32 bits, NumPy's too; TypeError or ValueError by its name.
[[nodiscard]] std::uint32_t count_of(nb::handle value, const std::string& name);
[[nodiscard]] Type type_named(const std::string& name, const char* what);
/// Such a number, or a cache's type, from the keyword argument of that name, where it is given.
void read_count(const nb::dict& named, const char* name, std::uint32_t& field);
void read_kv_type(const nb::dict& named, Type& field);

/// The bytes, limits and parts of a session's plan, or of a workspace's.
[[nodiscard]] nb::tuple plan_of(const ModelHandle& handle, const nb::dict& limits, bool of_workspace);

class PySession {
public:
    PySession(const ModelHandle& model, const nb::dict& limits, const std::string& isa);
    PySession(const PySession&) = delete;
    PySession& operator=(const PySession&) = delete;

    void forward(nb::handle ids, nb::handle out, bool all);
    std::uint32_t rewind_to(std::uint32_t kv_len);
    [[nodiscard]] nb::bytes save();
    void restore(const nb::bytes& saved);
    void copy_from(PySession& other);
    void cancel() noexcept { gate_.cancel(); }
    /// From here on texts' tokens are proposed by a smaller model with the same tokens, or by the model's next-token head; with
    /// `always` also if it does not pay.
    void propose_by(const ModelHandle& draft, bool always);

    /// Begins a text and gives its number, which next asks for.
    /// `form`: what the text is to fit; `chat`: whose tokens also end it. Both may be null.
    std::uint64_t start(nb::handle prompt, const nb::dict& options, const nb::list& stop, const PyForm* form,
                        const PyChat* chat);
    /// (piece of text, why the text ended or "")
    [[nodiscard]] nb::tuple next(std::uint64_t text);
    /// Tokens of the present text: {"n_prompt", "n_kept", "n_tokens", "n_passes"}.
    [[nodiscard]] nb::dict figures();

    /// Weights of each layer of `layers` to out[i]: [n_heads, seq_len, seq_len].
    void attention(nb::handle ids, nb::handle layers, nb::handle out);

    /// Vectors of texts behind a prompt to `out`; gives how many texts were cut.
    std::size_t encode_texts(const nb::list& texts, const std::string& prompt, std::uint32_t most_tokens,
                             bool parse_special, nb::handle out);
    /// The bytes of rows of float32 for each text, and how many texts were cut: the vectors of its tokens, or what the head
    /// makes of it, of a head for classes one row.
    [[nodiscard]] nb::tuple rows_of_texts(const nb::list& texts, const nb::object& pairs, bool of_head,
                                          bool parse_special);
    /// Vectors of texts' tokens of a model of late interaction, each text's as bytes, and how many texts were cut.
    [[nodiscard]] nb::tuple encode_late(const nb::list& texts, const std::optional<std::string>& prompt,
                                        bool are_queries, bool parse_special);
    /// Scores of documents for a query by these, and how many documents were cut.
    [[nodiscard]] nb::tuple late_scores(const std::string& query, const nb::list& documents);
    /// Sparse vectors, a dict of ids and weights each, and how many texts were cut.
    [[nodiscard]] nb::tuple encode_sparse(const nb::list& texts, const std::string& prompt, bool parse_special);
    /// What a head says of each text, or of each with its pair, and how many were cut: see classify.cpp.
    [[nodiscard]] nb::tuple classify(const nb::list& texts, const nb::object& pairs, const nb::dict& options);
    void encode_ids(nb::handle ids, nb::handle out);
    void encode_arrays(const nb::dict& inputs, nb::handle out, const nb::object& weights, std::uint32_t layer,
                       bool in_encoder, bool cross);

    [[nodiscard]] std::uint32_t kv_len() { return session_->kv_len(); }
    [[nodiscard]] std::uint32_t max_kv_len() const { return session_->max_kv_len(); }
    [[nodiscard]] const char* isa() const { return session_->isa(); }
    [[nodiscard]] std::uint64_t arena_bytes() const { return session_.plan.arena_bytes; }
    [[nodiscard]] nb::list tokens();
    [[nodiscard]] std::uint32_t n_kept() const { return n_kept_; }

private:
    /// Runs the encoder over texts, as many together as there is room for, and calls take(i, results) for every text i.
    void run_batches(std::span<const TextTokens> texts, const WantedRows& wanted, const TakeResults& take);
    [[nodiscard]] static std::size_t n_cut(std::span<const TextTokens> texts);
    void need_logits() const;
    void make_generator_for(std::size_t n_stop_bytes, std::uint32_t n_proposed);
    void use_draft(Speculation& speculation);
    void settle_tokens();  ///< makes tokens_ what the cache holds
    void touched() { ++text_, generating_ = false; }

    SharedModel opened_;
    TextSampler sampler_;            // of the present text, which views it
    std::vector<LogitBias> biases_;  // of the present text, which views them
    host::Runtime<Session> session_;
    host::Runtime<Generator> generator_;
    SharedModel draft_opened_;  // null: none proposes
    host::Runtime<Session> draft_;
    std::vector<float> vectors_;  // of a next-token head
    bool drafts_always_ = false;
    std::vector<Token> tokens_;  // that the cache holds
    std::uint64_t text_ = 0;     // the number of the present text
    bool generating_ = false;    // whether tokens_ is older than the generator's
    std::uint32_t n_kept_ = 0;
    AnswerPlace place_;                      // of the present text
    std::shared_ptr<const ModelTalk> talk_;  // whose tokens also end it
    PassGate gate_;
};

/// Why a text ended: "end", "stop", "length" or "context".
[[nodiscard]] const char* name_of(FinishReason reason);

void bind_session(nb::module_& module);

}  // namespace fovea::python

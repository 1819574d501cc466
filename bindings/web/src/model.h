// A model in Node.js: its file, mapped, what computes, and the thread that does.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fovea/fovea_host.h"
#include "fovea/host/arena.h"

namespace fovea::node {

/// Why something was not done: one line, "expected X, got Y".
struct Refusal : std::runtime_error {
    using runtime_error::runtime_error;
};

/// A struct of the C interface with its size, all else zero.
template<class Struct>
[[nodiscard]] Struct sized() {
    Struct made{};
    made.struct_size = sizeof made;
    return made;
}

/// What a text's pass made.
struct Piece {
    std::string text;
    std::vector<std::uint32_t> tokens;
    std::uint32_t finish = 0;
};

struct LoadOptions {
    std::string path, isa;
    bool verify = false;
    std::uint32_t max_positions = 0, max_batch = 0, kv_type = 0, n_threads = 0;
};

/// How a text is made; what the engine points to stays here until the next text.
struct TextOptions {
    std::vector<std::uint32_t> tokens;
    std::uint32_t max_tokens = 0;
    bool show_special = false;
    std::vector<std::string> stops;
    std::string schema;           // of JSON, if not empty
    std::vector<std::byte> form;  // of `fovea grammar`, if not empty
    fovea_sampler sampler = sized<fovea_sampler>();
    fovea_more_samplers more{};
};

struct Attention {
    std::uint32_t n_heads = 0;
    std::vector<float> weights;
};

/// All functions are called by one thread, but for those that say otherwise. They throw Refusal.
class Model {
public:
    void open(const LoadOptions& options);
    ~Model();
    /// Ends what computes and what begins to, with a refusal, until it is called with false. For any thread, once open has begun.
    void cancel(bool cancelled);

    // What never changes after open, for any thread.
    [[nodiscard]] const fovea_info& info() const { return info_; }
    [[nodiscard]] std::uint32_t max_positions() const { return plan_.max_positions; }
    [[nodiscard]] std::uint64_t arena_bytes() const { return arena_.size() + generator_arena_.size(); }
    [[nodiscard]] const char* isa() const { return fovea_isa(workspace_.load()); }
    [[nodiscard]] std::vector<std::uint32_t> tokenize(const std::string& text, int how) const;
    [[nodiscard]] std::string decode(const std::vector<std::uint32_t>& tokens) const;
    [[nodiscard]] std::string render(const std::string& messages, const std::string& tools,
                                     const std::string& extra) const;

    void start(TextOptions options);
    /// The pieces of the next passes, until the text ends or a moment is over.
    [[nodiscard]] std::vector<Piece> advance();

    [[nodiscard]] std::vector<float> embed(const std::vector<std::uint32_t>& tokens);
    [[nodiscard]] std::vector<float> logits(const std::vector<std::uint32_t>& tokens, std::uint32_t n_together);
    [[nodiscard]] Attention attention(const std::vector<std::uint32_t>& tokens, std::uint32_t layer, bool per_head);

private:
    [[nodiscard]] fovea_constraint_state* take_form(const TextOptions& options);

    fovea_host_model* host_ = nullptr;
    const fovea_model* engine_ = nullptr;
    fovea_info info_ = sized<fovea_info>();
    fovea_plan plan_ = sized<fovea_plan>();
    Arena arena_, generator_arena_;
    fovea_session* session_ = nullptr;      // of a model that gives logits
    fovea_generator* generator_ = nullptr;  // of such a model
    std::atomic<fovea_workspace*> workspace_ = nullptr;
    std::atomic<bool> cancelled_ = false;

    // The text's.
    TextOptions options_;
    fovea_host_form* form_ = nullptr;  // of its schema
    std::string schema_;               // whose form that is
    alignas(8) std::byte constraint_[FOVEA_CONSTRAINT_BYTES];
    std::vector<std::uint64_t> state_;
};

}  // namespace fovea::node

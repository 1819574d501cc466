// What proposes a text's next tokens: a smaller model, or the model's next-token head. It follows one text, and runs while that is the
// only one under way: where there are others a pass has rows enough, and none of them waits for a draft.
#pragma once
#include <cstdint>
#include <vector>

#include "fovea/host/runtime.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {

struct Choice;

/// The draft of one worker. Without one it takes no memory and does nothing.
class TextDraft {
public:
    /// Plans. `context`: positions of a text. Throws host::Error where the draft is another model's.
    TextDraft(const host::Opened& served, const WorkerOptions& options, std::uint32_t context);

    void take_memory();
    void begin(const char* isa);
    [[nodiscard]] std::uint64_t memory_bytes() const { return session_.plan.arena_bytes + n_vectors_ * sizeof(float); }
    /// To be called before a choice's step. `is_alone`: no other choice is active.
    void propose_for(Choice& choice, bool is_alone);
    /// The choice's generator is no more.
    void leave(const Choice& choice);

private:
    const host::Opened* draft_;  // null: there is none
    const bool always_;
    std::size_t n_vectors_ = 0;
    host::Runtime<Session> session_;
    std::vector<float> vectors_;  // a next-token head's
    Choice* follows_ = nullptr;
    bool proposes_ = false;  // for the one that it follows
};

}  // namespace fovea::serve

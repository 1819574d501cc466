// Whether a board has the memory for a program of one model by the C interface, whose sizes are the same on every machine.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/fovea.h"
#include "fovea/model.h"
#include "fovea/plan.h"
#include "host/base/json.h"

namespace fovea {

/// What a program does with its model.
struct BoardProgram {
    const Model& model;
    std::span<const std::byte> form = {};  ///< answers are of it; empty: of none
    Limits limits = {};
    std::uint32_t max_text_bytes = 0;  ///< of the longest text that becomes tokens
};

/// What a board has, in bytes; 0: not asked.
struct BoardMemory {
    std::uint64_t flash = 0, ram = 0;
};

/// A model's handle of the C interface.
class BoardModel {
public:
    /// Throws host::Error, naming `name`.
    BoardModel(std::span<const std::byte> file, const std::string& name);

    [[nodiscard]] const fovea_model* get() const { return model_; }
    /// What each text of a form takes: fovea_constraint_state_bytes. Throws host::Error.
    [[nodiscard]] std::uint64_t form_state_bytes(std::span<const std::byte> form) const;
    /// Throws host::Error, naming the model, unless `status` is ok.
    void require(const fovea_status& status) const;

private:
    std::string name_;
    alignas(8) std::byte memory_[FOVEA_MODEL_BYTES];
    fovea_model* model_ = nullptr;
};

class Board {
public:
    /// `name` is what messages call the model. Throws host::Error.
    Board(const BoardProgram& program, const BoardMemory& memory, const std::string& name);

    [[nodiscard]] bool fits() const { return misses_.empty(); }
    /// "fits", or what does not.
    [[nodiscard]] std::string verdict() const { return fits() ? "fits" : "does not fit: " + misses_; }
    void print() const;
    [[nodiscard]] Json json() const;

private:
    /// One thing that takes memory.
    struct Item {
        const char* name;
        std::uint64_t bytes;
        std::string note;
    };
    using Items = std::vector<Item>;

    [[nodiscard]] Items flash_items() const;
    [[nodiscard]] Items ram_items(const Limits& limits) const;
    void add_session(const fovea_limits& limits, Items& items) const;
    void add_two_stacks(fovea_limits limits, Items& items) const;
    void add_vectors(const fovea_limits& limits, Items& items) const;
    void add_source_text(std::uint32_t n_tokens, std::uint32_t n_text_bytes, Items& items) const;
    void add_generator(std::uint32_t max_tokens, Items& items) const;
    [[nodiscard]] std::uint64_t plan_pool(std::uint32_t max_positions, std::uint32_t kv_type, bool memory) const;
    [[nodiscard]] static std::uint64_t sum(const Items& items);
    void find_largest_context();

    BoardProgram program_;
    BoardMemory memory_;
    BoardModel model_;
    fovea_info info_;
    unsigned needed_;  ///< bits of Part
    Items flash_, ram_;
    std::string misses_;
    std::uint32_t largest_context_ = 0;
};

}  // namespace fovea

#include "tools/measure/board.h"

#include <algorithm>
#include <cstdio>

#include "host/base/error.h"
#include "host/base/words.h"
#include "host/model/needed_parts.h"

namespace fovea {
namespace {

// The library's code, built for size. As the Cortex-M presets build it, and what forms add, are what docs/boards.md measures and
// tests/bare_metal allows; the archive with every part has 180,717 bytes (Cortex-M7, GCC 12.2).
constexpr std::uint64_t kPresetBytes = 64 << 10, kFormCodeBytes = 8 << 10, kWholeBytes = 192 << 10;
constexpr std::uint64_t kStackBytes = 8 << 10;
constexpr const char* kStackNote = "at most; the emulated boards used 6,832";

/// Part i of this list is bit i.
constexpr std::string_view kParts[] = {FOVEA_PARTS};
constexpr unsigned kAllParts = (1u << std::size(kParts)) - 1;

unsigned left_out_by_presets() {
    unsigned bits = 0;
    for (const std::string_view name : std::initializer_list<std::string_view>{FOVEA_PRESET_WITHOUT})
        bits |= 1u << (std::find(std::begin(kParts), std::end(kParts), name) - std::begin(kParts));
    return bits;
}

std::vector<std::string> names_of(unsigned bits) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::size(kParts); ++i)
        if (bits >> i & 1) names.emplace_back(kParts[i]);
    return names;
}

std::string joined(const std::vector<std::string>& names, const char* between) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : between) + name;
    return all;
}

/// A struct of the C interface whose fields choose defaults.
template<class Struct>
Struct sized() {
    Struct made{};
    made.struct_size = sizeof made;
    return made;
}

}  // namespace

BoardModel::BoardModel(std::span<const std::byte> file, const std::string& name) : name_(name) {
    require(fovea_open_model(file.data(), file.size(), 0, memory_, sizeof memory_, &model_));
}

void BoardModel::require(const fovea_status& status) const {
    if (status.code == FOVEA_OK) return;
    char line[160];
    fovea_describe(status, line, sizeof line);
    throw host::Error(name_ + ": " + line);
}

std::uint64_t BoardModel::form_state_bytes(std::span<const std::byte> form) const {
    alignas(8) std::byte memory[FOVEA_CONSTRAINT_BYTES];
    fovea_constraint* constraint = nullptr;
    require(fovea_open_constraint(model_, form.data(), form.size(), nullptr, 0, memory, sizeof memory, &constraint));
    return fovea_constraint_state_bytes(constraint);
}

Board::Board(const BoardProgram& program, const BoardMemory& memory, const std::string& name)
    : program_(program),
      memory_(memory),
      model_(program.model.bytes(), name),
      info_(sized<fovea_info>()),
      needed_(needed_parts(program.model)) {
    if (program.model.config().encoder.sound.is_speech())
        throw host::Error(name + ": board: expected a model that the C interface runs, got one that hears");
    if (program.limits.kv_type == Type::q4) needed_ |= static_cast<unsigned>(Part::gguf_types);
    if (program.limits.n_threads > 1) needed_ |= static_cast<unsigned>(Part::teams);
    model_.require(fovea_model_info(model_.get(), &info_));
    flash_ = flash_items();
    ram_ = ram_items(program.limits);
    const auto misses = [&](const char* what, const Items& items, std::uint64_t had) {
        const std::uint64_t wanted = sum(items);
        if (!had || wanted <= had) return false;
        misses_ = std::string(what) + ": expected " + with_separators(wanted) + " bytes, got " + with_separators(had);
        return true;
    };
    if (!misses("flash", flash_, memory.flash) && misses("RAM", ram_, memory.ram)) find_largest_context();
}

std::uint64_t Board::sum(const Items& items) {
    std::uint64_t bytes = 0;
    for (const Item& item : items) bytes += item.bytes;
    return bytes;
}

Board::Items Board::flash_items() const {
    const bool whole = (needed_ & left_out_by_presets()) != 0;
    Items items{{"model", program_.model.bytes().size(), ""},
                {"library", whole ? kWholeBytes : kPresetBytes,
                 whole ? "at most, with every part" : "at most, as the Cortex-M presets build it"}};
    if (program_.form.empty()) return items;
    items.push_back({"form", program_.form.size(), ""});
    if (!whole) items.push_back({"code of forms", kFormCodeBytes, "at most"});
    return items;
}

void Board::add_generator(std::uint32_t max_tokens, Items& items) const {
    auto limits = sized<fovea_generator_limits>();
    limits.max_tokens = max_tokens;
    auto plan = sized<fovea_generator_plan>();
    model_.require(fovea_plan_generator(model_.get(), &limits, &plan));
    items.push_back({"generator", plan.arena_bytes,
                     "with " + std::to_string(plan.max_stop_bytes) + " bytes of stop strings, without speculation"});
}

void Board::add_session(const fovea_limits& limits, Items& items) const {
    auto plan = sized<fovea_plan>();
    model_.require(fovea_plan_session(model_.get(), &limits, &plan));
    items.push_back(
        {"session", plan.arena_bytes,
         std::to_string(plan.max_positions) + " positions, " + std::to_string(plan.max_batch) + " tokens together" +
             (info_.has_tokenizer ? ", texts of " + std::to_string(limits.max_text_bytes) + " bytes" : "")});
    add_generator(plan.max_positions, items);
    items.push_back({"tokens", plan.max_positions * std::uint64_t{sizeof(Token)}, "of a prompt"});
}

void Board::add_source_text(std::uint32_t n_tokens, std::uint32_t n_text_bytes, Items& items) const {
    items.push_back({"tokens", n_tokens * std::uint64_t{sizeof(Token)}, "of a source"});
    if (info_.has_tokenizer)
        items.push_back({"text scratch", fovea_scratch_bytes(model_.get(), n_text_bytes),
                         "texts of " + std::to_string(n_text_bytes) + " bytes"});
}

std::uint64_t Board::plan_pool(std::uint32_t max_positions, std::uint32_t kv_type, bool memory) const {
    auto limits = sized<fovea_pool_limits>();
    limits.max_positions = max_positions;
    limits.kv_type = kv_type;
    limits.memory = memory;
    auto plan = sized<fovea_pool_plan>();
    model_.require(fovea_plan_pool(model_.get(), &limits, &plan));
    return plan.arena_bytes;
}

void Board::add_two_stacks(fovea_limits limits, Items& items) const {
    limits.max_positions = info_.max_positions;
    limits.max_batch = limits.max_key_rows = std::max(info_.source_positions, 1u);
    limits.max_sequences = 1;
    auto plan = sized<fovea_plan>();
    model_.require(fovea_plan_workspace(model_.get(), &limits, &plan));
    items.push_back({"workspace", plan.arena_bytes, "both stacks' passes"});
    items.push_back({"memory", plan_pool(info_.source_positions, limits.kv_type, true), "of a source"});
    items.push_back({"text", plan_pool(info_.max_positions, limits.kv_type, false), "its keys and values"});
    add_generator(info_.max_positions, items);
    add_source_text(limits.max_batch, limits.max_text_bytes, items);
}

void Board::add_vectors(const fovea_limits& limits, Items& items) const {
    auto plan = sized<fovea_plan>();
    model_.require(fovea_plan_workspace(model_.get(), &limits, &plan));
    items.push_back({"workspace", plan.arena_bytes, std::to_string(plan.max_batch) + " rows together"});
    const std::uint64_t n_results = info_.pools ? plan.max_sequences : plan.max_batch;
    items.push_back({"results", n_results * info_.result_width * sizeof(float), ""});
    if (info_.has_tokenizer) add_source_text(plan.max_batch, limits.max_text_bytes, items);
}

Board::Items Board::ram_items(const Limits& asked) const {
    auto limits = sized<fovea_limits>();
    limits.max_positions = asked.max_kv_len;
    limits.max_batch = asked.max_batch;
    limits.max_text_bytes = program_.max_text_bytes;
    limits.n_threads = asked.n_threads;
    limits.kv_type = static_cast<std::uint32_t>(asked.kv_type);
    Items items{{"model's handle", FOVEA_MODEL_BYTES, info_.has_tokenizer ? "with its tokenizer's" : ""}};
    if (info_.kind == FOVEA_LOGITS)
        add_session(limits, items);
    else if (info_.reads_memory && info_.vocab_size && info_.source_vocab)
        add_two_stacks(limits, items);
    else
        add_vectors(limits, items);
    if (!program_.form.empty())
        items.push_back({"form", FOVEA_CONSTRAINT_BYTES + model_.form_state_bytes(program_.form),
                         "its handle, and where a text is in it"});
    items.push_back({"stack", kStackBytes, kStackNote});
    return items;
}

/// The most positions that would do, with at most as many tokens together as asked for.
void Board::find_largest_context() {
    std::uint32_t too_many = info_.kind == FOVEA_LOGITS ? info_.max_positions + 1 : 1;
    while (too_many - largest_context_ > 1) {  // an arena never shrinks with its positions
        Limits limits = program_.limits;
        limits.max_kv_len = largest_context_ + (too_many - largest_context_) / 2;
        limits.max_batch = std::min(limits.max_batch, limits.max_kv_len);
        (sum(ram_items(limits)) <= memory_.ram ? largest_context_ : too_many) = limits.max_kv_len;
    }
    misses_ += largest_context_ ? "; the largest context that would: " + std::to_string(largest_context_)
                                : "; no context would";
}

void Board::print() const {
    const auto print_items = [](const char* what, const Items& items, std::uint64_t had) {
        if (!had) return;
        std::printf("  %-14s %20s of %17s\n", what, with_separators(sum(items)).c_str(), with_separators(had).c_str());
        for (const Item& item : items)
            std::printf("    %-16s %16s  %s\n", item.name, with_separators(item.bytes).c_str(), item.note.c_str());
    };
    std::printf("\nboard:\n");
    print_items("flash", flash_, memory_.flash);
    print_items("RAM", ram_, memory_.ram);
    if (memory_.flash) {
        const std::string lacking = joined(names_of(needed_ & left_out_by_presets()), ", ");
        if (!lacking.empty())
            std::printf("  the model needs %s, which the Cortex-M presets leave out\n", lacking.c_str());
        std::printf("  it runs with -D FOVEA_WITHOUT=\"%s\"\n", joined(names_of(kAllParts & ~needed_), ";").c_str());
    }
    std::printf("%s\n", verdict().c_str());
}

Json Board::json() const {
    const auto list = [](const Items& items) {
        Json all = Json::array();
        for (const Item& item : items) all.push_back({{"name", item.name}, {"bytes", item.bytes}});
        return all;
    };
    Json object{{"fits", fits()},
                {"flash_bytes", sum(flash_)},
                {"ram_bytes", sum(ram_)},
                {"flash", list(flash_)},
                {"ram", list(ram_)},
                {"needed_parts", names_of(needed_)},
                {"without", names_of(kAllParts & ~needed_)}};
    if (!fits()) object["misses"] = misses_;
    if (largest_context_) object["largest_context"] = largest_context_;
    return object;
}

}  // namespace fovea

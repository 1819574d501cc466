// Any bytes as an adapter's file beside small models of every shape: refused, or in use by a session of exactly its plan, with the
// same bits on every instruction set; and without it the session computes what it did before.
#include "fovea/adapter.h"

#include <memory>

#include "tests/fuzz/fovea_file.h"
#include "tests/fuzz/run_model.h"
#include "tests/fuzz/tiny_models.h"

namespace fovea::fuzz {
namespace {

constexpr std::uint32_t kMostRank = 8;

/// A model with a session for each instruction set, and what they compute without adapters.
struct Base {
    AlignedBytes file;
    Model model;
    std::vector<AlignedBytes> arenas;
    std::vector<Session> sessions;
    std::vector<float> plain;

    explicit Base(const Tiny& tiny) : file(file_of(tiny)) {
        require(open_model(file, model), tiny.name);
        const Limits limits{.max_kv_len = 9, .max_batch = 4, .max_adapters = 1, .max_adapter_rank = kMostRank};
        Plan plan;
        require(make_plan(model.config(), limits, plan), tiny.name);
        for (const char* isa : isa_names()) {
            arenas.emplace_back(plan.arena_bytes);
            require(make_session(model, limits, arenas.back(), sessions.emplace_back(), isa), isa);
        }
        plain = result_of(sessions.front());
    }
    Base(const Base&) = delete;

    void use(const Model& adapter) {
        const Adapter one[] = {{&adapter, 0.75f}};
        std::vector<float> first;
        for (Session& session : sessions) {
            promise(rewind(session, 0).ok() && set_adapters(session, {}).ok(), "a session without adapters");
            if (!set_adapters(session, one).ok()) return;
            const std::vector<float> out = result_of(session);
            promise(out.size() == plain.size(), "an adapter changes no shape");
            if (first.empty()) first = out;
            promise(std::memcmp(out.data(), first.data(), out.size() * sizeof(float)) == 0,
                    "every instruction set computes the same bits");
        }
        Session& session = sessions.front();
        promise(rewind(session, 0).ok() && set_adapters(session, {}).ok(), "adapters can be left");
        const std::vector<float> out = result_of(session);
        promise(std::memcmp(out.data(), plain.data(), out.size() * sizeof(float)) == 0, "nothing of them stays");
    }
};

const std::vector<std::unique_ptr<Base>>& bases() {
    static const std::vector<std::unique_ptr<Base>> all = [] {
        std::vector<std::unique_ptr<Base>> made;
        for (const Tiny& tiny : tinier_adapted()) made.push_back(std::make_unique<Base>(tiny));
        return made;
    }();
    return all;
}

}  // namespace
}  // namespace fovea::fuzz

FOVEA_FUZZ_TARGET(adapter) {
    using namespace fovea;
    const fuzz::Aligned bytes(data, size);
    Model model;
    if (!open_model(bytes, model).ok()) return 0;
    for (const auto& base : fuzz::bases()) base->use(model);
    return 0;
}

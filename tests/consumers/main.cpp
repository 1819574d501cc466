// A program of somebody else's: it uses what the engine does without, to show that none of the engine's flags reach it.
#include <cstdio>
#include <stdexcept>
#include <typeinfo>

#include "fovea/host/arena.h"
#include "fovea/model.h"
#include "fovea/session.h"

#if defined(__AVX2__) || defined(FOVEA_THREADS) || defined(FOVEA_TABLES)
#error "a flag or definition of the engine's leaked into its consumer"
#endif

struct Base {
    virtual ~Base() = default;
};
struct Derived : Base {};

int main() {
    const std::byte bytes[64] = {};
    fovea::Model model;
    const fovea::Status status = fovea::open_model({bytes, 0}, model);
    fovea::Arena arena(1000);
    std::printf("%s; %zu bytes; %u threads; %s\n", fovea::StatusLine(status).c_str(), arena.bytes().size(),
                fovea::default_threads(), fovea::isa_names().front());
    try {
        Derived derived;
        Base& base = derived;
        if (typeid(base) != typeid(Derived)) return 1;
        throw std::runtime_error("caught");
    } catch (const std::exception&) {
        return status.code == fovea::Code::truncated ? 0 : 1;
    }
}

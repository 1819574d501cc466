// On a CPU with AVX-512 VNNI but without AMX the tests have AMX all the same: its instructions raise SIGILL there, and
// a handler does their work (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2). If the CPU has
// AMX, this runs only if FOVEA_EMULATE_TILES is set: a process that has not asked Linux for the tiles gets that signal
// from every instruction that touches their contents. The CPU keeps the configuration itself.
#include "tests/support/emulated_tiles.h"

#include <atomic>

#include "engine/kernels/kernels.h"
#include "fovea/session.h"

namespace {
std::atomic<bool> sessions_want_tiles{false};
}

#if defined(__linux__) && defined(__x86_64__)
#include <cpuid.h>
#include <ucontext.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The engine's own functions, renamed, so that the ones below replace them at link time.
#define detect_features features_of_cpu
#define may_use_tiles may_use_tiles_of_cpu
#include "platform/features.cpp"
#undef detect_features
#undef may_use_tiles

namespace fovea {
namespace {

constexpr int kTiles = 8, kTileRows = 16, kRowBytes = 64;

struct Config {
    std::uint8_t palette, start_row, reserved[14];
    std::uint16_t row_bytes[16];
    std::uint8_t n_rows[16];
};
struct Tiles {
    Config config;
    std::uint8_t bytes[kTiles][kTileRows][kRowBytes];
};
thread_local constinit Tiles tiles_now{};

[[noreturn]] void refuse(const char* what) {
    std::fprintf(stderr, "emulated tiles: %s\n", what);
    std::abort();
}
void expect(bool holds, const char* what) {
    if (!holds) refuse(what);
}

/// An instruction with a VEX prefix of three bytes.
struct Instruction {
    const std::uint8_t* at;
    const greg_t* registers;

    [[nodiscard]] std::uint8_t opcode() const { return at[3]; }
    [[nodiscard]] int prefix() const { return at[2] & 3; }  // none, 66, F3, F2
    [[nodiscard]] int third() const { return ~(at[2] >> 3) & 15; }
    [[nodiscard]] int mode() const { return at[4] >> 6; }
    [[nodiscard]] int reg() const { return at[4] >> 3 & 7; }
    [[nodiscard]] int rm() const { return at[4] & 7; }
    [[nodiscard]] bool has_sib() const { return mode() != 3 && rm() == 4; }
    [[nodiscard]] bool has_base() const { return !(mode() == 0 && (has_sib() ? at[5] & 7 : rm()) == 5); }
    [[nodiscard]] int displacement_bytes() const { return mode() == 1 ? 1 : mode() == 2 || !has_base() ? 4 : 0; }
    [[nodiscard]] int length() const { return 5 + has_sib() + (mode() == 3 ? 0 : displacement_bytes()); }

    /// The value of one of the sixteen registers, as instructions number them.
    [[nodiscard]] std::int64_t value(int number) const {
        constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
        return registers[kOrder[number]];
    }
    [[nodiscard]] std::int64_t displacement() const {
        const std::uint8_t* from = at + 5 + has_sib();
        if (displacement_bytes() == 1) return static_cast<std::int8_t>(*from);
        std::int32_t x = 0;
        if (displacement_bytes() == 4) std::memcpy(&x, from, 4);
        return x;
    }
    /// Base and displacement; relative to the next instruction if there is neither base nor SIB.
    [[nodiscard]] std::uint8_t* address() const {
        const int extended = at[1] & 0x20 ? 0 : 8;
        std::int64_t base = has_base() ? value((has_sib() ? at[5] & 7 : rm()) | extended) : 0;
        if (!has_base() && !has_sib()) base = reinterpret_cast<std::int64_t>(at) + length();
        return reinterpret_cast<std::uint8_t*>(base + displacement());
    }
    /// The index, which in a tile's address is the distance from one row to the next.
    [[nodiscard]] std::int64_t index() const {
        if (!has_sib()) return 0;
        const int number = (at[5] >> 3 & 7) | (at[1] & 0x40 ? 0 : 8);
        return number == 4 ? 0 : value(number) * (1 << (at[5] >> 6));
    }
};

void load_config(const std::uint8_t* from) {
    static_assert(sizeof(Config) == 64);
    std::memcpy(&tiles_now.config, from, sizeof tiles_now.config);
    std::memset(tiles_now.bytes, 0, sizeof tiles_now.bytes);
    const Config& c = tiles_now.config;
    expect(c.palette == 1 && c.start_row == 0, "expected palette 1");
    for (const std::uint8_t byte : c.reserved) expect(byte == 0, "expected zeros in a configuration");
    for (int i = 0; i < 16; ++i) {
        const bool is_used = c.n_rows[i] != 0;
        expect(is_used == (c.row_bytes[i] != 0), "expected rows with bytes");
        expect(c.n_rows[i] <= kTileRows && c.row_bytes[i] <= kRowBytes && (i < kTiles || !is_used),
               "expected a tile's size");
    }
}

void check(int tile) {
    expect(tiles_now.config.palette == 1 && tiles_now.config.n_rows[tile], "expected a configured tile");
}

void load_tile(int tile, const std::uint8_t* from, std::int64_t stride) {
    check(tile);
    std::memset(tiles_now.bytes[tile], 0, sizeof tiles_now.bytes[tile]);
    for (int r = 0; r < tiles_now.config.n_rows[tile]; ++r)
        std::memcpy(tiles_now.bytes[tile][r], from + r * stride, tiles_now.config.row_bytes[tile]);
}

void store_tile(int tile, std::uint8_t* to, std::int64_t stride) {
    check(tile);
    for (int r = 0; r < tiles_now.config.n_rows[tile]; ++r)
        std::memcpy(to + r * stride, tiles_now.bytes[tile][r], tiles_now.config.row_bytes[tile]);
}

/// sum += a·b, four bytes of a's row with four of b's column; as the prefix says, bytes of either are signed.
void multiply_tiles(int sum, int a, int b, bool a_is_signed, bool b_is_signed) {
    for (const int tile : {sum, a, b}) check(tile);
    const Config& c = tiles_now.config;
    expect(sum != a && sum != b && a != b, "expected three tiles");
    expect(c.n_rows[sum] == c.n_rows[a] && c.row_bytes[sum] == c.row_bytes[b] && c.row_bytes[a] == 4 * c.n_rows[b],
           "expected tiles that fit each other");
    const auto number = [](std::uint8_t byte, bool is_signed) {
        return is_signed ? static_cast<std::int8_t>(byte) : static_cast<int>(byte);
    };
    for (int m = 0; m < c.n_rows[a]; ++m)
        for (int n = 0; n < c.row_bytes[b] / 4; ++n) {
            std::uint32_t total;
            std::memcpy(&total, tiles_now.bytes[sum][m] + 4 * n, 4);
            for (int k = 0; k < c.row_bytes[a]; ++k)
                total += static_cast<std::uint32_t>(number(tiles_now.bytes[a][m][k], a_is_signed) *
                                                    number(tiles_now.bytes[b][k / 4][4 * n + k % 4], b_is_signed));
            std::memcpy(tiles_now.bytes[sum][m] + 4 * n, &total, 4);
        }
}

/// Whether it was one of AMX's.
bool run(const Instruction& i) {
    enum { kNone, k66, kF3, kF2 };
    const bool is_vex = i.at[0] == 0xc4 && (i.at[1] & 0x1f) == 2 && (i.at[2] & 0x84) == 0;
    if (!is_vex) return false;
    if (i.opcode() == 0x49 && i.mode() == 3 && i.prefix() == kNone && i.at[4] == 0xc0)
        tiles_now = {};
    else if (i.opcode() == 0x49 && i.mode() == 3 && i.prefix() == kF2)
        check(i.reg()), std::memset(tiles_now.bytes[i.reg()], 0, sizeof tiles_now.bytes[0]);
    else if (i.opcode() == 0x49 && i.mode() != 3 && i.prefix() == kNone)
        load_config(i.address() + i.index());
    else if (i.opcode() == 0x4b && i.mode() != 3 && (i.prefix() == kF2 || i.prefix() == k66))
        load_tile(i.reg(), i.address(), i.index());
    else if (i.opcode() == 0x4b && i.mode() != 3 && i.prefix() == kF3)
        store_tile(i.reg(), i.address(), i.index());
    else if (i.opcode() == 0x5e && i.mode() == 3)
        multiply_tiles(i.reg(), i.rm(), i.third(), i.prefix() >= kF3, i.prefix() == kF2 || i.prefix() == k66);
    else
        return false;
    return true;
}

/// The configuration that the CPU keeps, out of the registers that a signal saved (XSAVE's component 17), if it
/// changed.
void take_config(const mcontext_t& registers) {
    constexpr unsigned kComponent = 17;
    static const unsigned offset = [] {
        unsigned size = 0, at = 0, c = 0, d = 0;
        __cpuid_count(0xd, kComponent, size, at, c, d);
        return at;
    }();
    const auto* saved = reinterpret_cast<const std::uint8_t*>(registers.fpregs);
    std::uint64_t present;
    std::memcpy(&present, saved + 512, sizeof present);  // XSTATE_BV, behind the legacy region
    if (!(present >> kComponent & 1)) return;
    if (std::memcmp(&tiles_now.config, saved + offset, sizeof tiles_now.config) != 0) load_config(saved + offset);
}

void on_illegal_instruction(int, siginfo_t*, void* context) {
    mcontext_t& state = static_cast<ucontext_t*>(context)->uc_mcontext;
    greg_t* registers = state.gregs;
    if (features_of_cpu().amx) take_config(state);
    const Instruction i{reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]), registers};
    if (!run(i)) refuse("an illegal instruction that is none of AMX's");
    registers[REG_RIP] += i.length();
}

/// Again each time, for doctest has handlers of its own for every test.
bool catch_instructions() noexcept {
    struct sigaction action {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return sigaction(SIGILL, &action, nullptr) == 0;
}

}  // namespace

bool testing::emulates_tiles() {
    static const bool is_wanted = std::getenv("FOVEA_EMULATE_TILES") != nullptr;
    return features_of_cpu().avx512vnni && is_wanted;
}
bool testing::tiles_are_released() {
    auto config = tiles_now.config;
    if (features_of_cpu().amx) asm volatile("sttilecfg %0" : "=m"(config));
    return config.palette == 0;
}

CpuFeatures detect_features() noexcept {
    CpuFeatures f = features_of_cpu();
    if (testing::emulates_tiles()) f.amx = catch_instructions();
    return f;
}

bool may_use_tiles() noexcept {
    return testing::emulates_tiles() ? sessions_want_tiles && catch_instructions() : may_use_tiles_of_cpu();
}

}  // namespace fovea
#else
bool fovea::testing::emulates_tiles() { return false; }
bool fovea::testing::tiles_are_released() { return true; }
#endif

std::span<const char* const> fovea::testing::isas_of_cpu() { return isa_names().subspan(emulates_tiles() ? 1 : 0); }

const char* fovea::testing::best_without_tiles() { return find_kernels(nullptr)->isa; }
const char* fovea::testing::best_with_tiles() { return find_kernels(nullptr, true)->isa; }

fovea::testing::EmulatedTiles::EmulatedTiles() { sessions_want_tiles = true; }
fovea::testing::EmulatedTiles::~EmulatedTiles() { sessions_want_tiles = false; }

// Converting on several threads: the bytes, the refusals and the reports of one.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "convert/writer/crc_join.h"
#include "convert/writer/writer.h"
#include "fovea/checksum.h"
#include "host/base/ordered_work.h"
#include "host/base/words.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

constexpr std::uint32_t kThreadCounts[] = {1, 2, 3, 7};

/// Like a source whose matrices are quantized: groups of the given seed, except for rows of the value matrix.
GroupReader some_groups() {
    return [](const TensorSpec& spec, Type type, std::uint32_t row_begin, std::uint32_t n_rows, QuantizedGroup* out) {
        if (spec.role == Role::value || spec.n_cols % kGroup != 0) return false;
        for (std::uint32_t i = 0; i < n_rows * (spec.n_cols / kGroup); ++i) {
            const std::uint32_t seed = (row_begin * spec.n_cols + i) * 2654435761u + spec.layer;
            out[i].scale = static_cast<std::uint16_t>(0x2000 + seed % 1024);
            for (std::uint32_t k = 0; k < kGroup; ++k)
                out[i].quants[k] = static_cast<std::int8_t>((seed >> k % 24) % (type == Type::q8 ? 127 : 8));
        }
        return true;
    };
}

/// A model wide and long enough for several pieces of each kind.
Config larger_config() {
    Config config = llama_config(2, 256, 8, 4, 32, 700);
    config.decoder.vocab_size = 1100;
    return config;
}

}  // namespace

TEST_CASE("ordered work: every piece is made once and taken in order, with a slot and a member of its own") {
    for (const std::uint32_t n_threads : kThreadCounts)
        for (const std::uint64_t n_pieces : {0u, 1u, 2u, 500u}) {
            CAPTURE(n_threads);
            CAPTURE(n_pieces);
            std::vector<std::uint64_t> slots(n_slots(n_threads), ~std::uint64_t{0});
            std::vector<std::atomic<bool>> used(slots.size()), busy(n_threads);
            std::atomic<std::uint64_t> n_made = 0, n_clashes = 0;
            std::uint64_t n_taken = 0;
            OrderedWork work;
            work.n_pieces = n_pieces;
            work.make = [&](std::uint64_t piece, std::size_t slot, std::size_t member) {
                n_clashes += used[slot].exchange(true) + busy[member].exchange(true);
                if (piece % 5 == 0) std::this_thread::yield();
                slots[slot] = piece;
                busy[member] = false;
                ++n_made;
            };
            work.take = [&](std::uint64_t piece, std::size_t slot) {
                n_clashes += piece != n_taken++ || slots[slot] != piece;
                n_clashes += n_made > n_taken + slots.size() - 1;  // no further ahead than there are slots
                used[slot] = false;
            };
            work_in_order(work, n_threads);
            CHECK(n_made == n_pieces);
            CHECK(n_taken == n_pieces);
            CHECK(n_clashes == 0);
        }
}

TEST_CASE("ordered work: the first failure in order is the caller's, and all before it is taken") {
    for (const std::uint32_t n_threads : kThreadCounts)
        for (int round = 0; round < 20; ++round) {
            CAPTURE(n_threads);
            std::uint64_t n_taken = 0;
            OrderedWork work;
            work.n_pieces = 300;
            work.make = [&](std::uint64_t piece, std::size_t, std::size_t) {
                if (piece >= 120 && piece % 7 == 1) throw host::Error("piece " + std::to_string(piece));
            };
            work.take = [&](std::uint64_t, std::size_t) { ++n_taken; };
            CHECK(refusal_of([&] { work_in_order(work, n_threads); }) == "piece 120");
            CHECK(n_taken == 120);
            work.take = [&](std::uint64_t piece, std::size_t) {
                if (piece == 50) throw host::Error("the disk is full");
            };
            CHECK(refusal_of([&] { work_in_order(work, n_threads); }) == "the disk is full");
        }
}

TEST_CASE("crc join: two parts' checksums give that of both") {
    std::vector<std::byte> bytes(70000);
    std::uint32_t state = 1;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
    const std::span<const std::byte> all(bytes);
    for (const std::size_t cut : {0u, 1u, 7u, 64u, 4095u, 65536u, 69999u, 70000u}) {
        CAPTURE(cut);
        const auto a = all.first(cut), b = all.subspan(cut);
        CHECK(joined_crc32c(crc32c(a), crc32c(b), b.size()) == crc32c(all));
    }
}

TEST_CASE("writer: any number of threads gives the same bytes and the same report") {
    std::vector<NamedConfig> configs = decoder_configs();
    configs.push_back({"larger", larger_config()});
    for (const NamedConfig& named : configs)
        for (const bool groups : {false, true})
            for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8, Type::q4}) {
                CAPTURE(named.name);
                CAPTURE(type_name(type));
                ModelSource source = random_model(named.config, 3);
                if (groups) source.read_groups = some_groups();
                AlignedBytes want;
                std::vector<double> want_losses;
                for (const std::uint32_t n_threads : kThreadCounts) {
                    CAPTURE(n_threads);
                    std::vector<double> losses;
                    std::uint64_t last = 0, total = 1;
                    bool elsewhere = false;
                    const std::thread::id here = std::this_thread::get_id();
                    WriteOptions options;
                    options.type = type;
                    options.n_threads = n_threads;
                    options.quantized = [&](const TensorSpec&, Type, double loss) { losses.push_back(loss); };
                    options.progress = [&](std::uint64_t done, std::uint64_t all) {
                        elsewhere |= done <= last || std::this_thread::get_id() != here;
                        last = done;
                        total = all;
                    };
                    const AlignedBytes bytes = write_bytes(source, options);
                    CHECK(last == total);
                    CHECK_FALSE(elsewhere);
                    if (n_threads == 1) {
                        want = bytes;
                        want_losses = losses;
                        CHECK(losses.empty() == (type != Type::q8 && type != Type::q4));
                        Model model;
                        CHECK(open_model(bytes, model, {.verify_checksums = true}).ok());
                    }
                    CHECK(bytes == want);
                    CHECK(losses == want_losses);
                }
            }
}

TEST_CASE("writer: a source that fails in the middle gives its first refusal on any number of threads") {
    ModelSource source = random_model(larger_config(), 5);
    TemporaryFolder folder;
    write_text(folder / "m.fovea", "older");
    const RowReader read = source.read_rows;
    source.read_rows = [&](const TensorSpec& spec, std::uint32_t row, std::uint32_t n, float* out) {
        if (spec.layer == 1 && spec.role == Role::up && row >= 512) throw host::Error("row " + std::to_string(row));
        if (spec.layer == 1 && spec.role == Role::down) throw host::Error("a later tensor");
        read(spec, row, n, out);
    };
    for (const Type type : {Type::f32, Type::q8, Type::q4})
        for (const std::uint32_t n_threads : kThreadCounts) {
            CAPTURE(n_threads);
            WriteOptions options;
            options.type = type;
            options.n_threads = n_threads;
            CHECK(refusal_of([&] { write_file(source, folder / "m.fovea", options); }) == "row 512");
            CHECK(read_text(folder / "m.fovea") == "older");
            CHECK(folder.n_files() == 1);
        }
}

// Damages small models in every way there is room for, and opens and runs what is left of each: a Status, or a model
// that runs safely. Build it with the sanitizers (`./dev corrupt`).
//   fovea_corruption [EVERY]          takes one change in EVERY
//   fovea_corruption --seeds FOLDER   only writes what fuzzing starts from
#include <cstdio>
#include <cstdlib>

#include "fovea/host/runtime.h"
#include "host/base/words.h"
#include "host/model/listing.h"
#include "host/text/session_file.h"
#include "tests/fuzz/fovea_file.h"
#include "tests/fuzz/run_model.h"
#include "tests/fuzz/tiny_models.h"

using namespace fovea;
using namespace fovea::fuzz;

namespace {

constexpr std::size_t kSampled = 7;  // of the large sections, one byte in so many

struct Counts {
    std::uint64_t n[kOutcomes] = {};
    void add(Outcome outcome) { ++n[static_cast<int>(outcome)]; }
    void print(const char* what) const {
        std::uint64_t total = 0;
        for (const std::uint64_t count : n) total += count;
        std::printf("  %-32s %8llu:", what, static_cast<unsigned long long>(total));
        for (int i = 0; i < kOutcomes; ++i)
            if (n[i])
                std::printf(" %llu %s%s", static_cast<unsigned long long>(n[i]), kOutcomeNames[i], i < 3 ? "," : "");
        std::printf("\n");
        std::fflush(stdout);
    }
};

std::uint8_t* bytes_of(AlignedBytes& file) { return reinterpret_cast<std::uint8_t*>(file.data()); }

class Damage {
public:
    Damage(const AlignedBytes& whole, std::uint64_t every) : whole_(whole), every_(every) {}

    /// Every length; also with a header that says that length, and checksums as they then are.
    void truncate() {
        Counts as_is, made_right;
        for (std::size_t size = 0; size < whole_.size(); ++size) {
            if (skipped()) continue;
            AlignedBytes part(whole_.begin(), whole_.begin() + static_cast<std::ptrdiff_t>(size));
            as_is.add(run_model(part));
            make_right(bytes_of(part), part.size());
            made_right.add(run_model(part));
        }
        as_is.print("truncated");
        made_right.print("truncated, checksums made right");
        promise(!as_is.n[3], "no part of a file passes for it");
    }

    /// Every value of every byte of [begin, end), as it is and with checksums made right.
    void change_bytes(const char* name, std::size_t begin, std::size_t end) {
        Counts as_is, made_right;
        AlignedBytes changed = whole_;
        for (std::size_t at = begin; at < end; ++at)
            for (int value = 1; value < 256; ++value) {
                if (skipped()) continue;
                try_change(changed, at, static_cast<std::byte>(value), as_is, made_right);
            }
        as_is.print((std::string(name) + ", bytes").c_str());
        made_right.print("  checksums made right");
    }

    /// Every bit of each `step`th byte of [begin, end).
    void flip_bits(const char* name, std::size_t begin, std::size_t end, std::size_t step) {
        Counts as_is, made_right;
        AlignedBytes changed = whole_;
        for (std::size_t at = begin; at < end; at += step)
            for (int bit = 0; bit < 8; ++bit) {
                if (skipped()) continue;
                try_change(changed, at, static_cast<std::byte>(1 << bit), as_is, made_right);
            }
        as_is.print((std::string(name) + ", bits").c_str());
        made_right.print("  checksums made right");
    }

private:
    bool skipped() { return n_++ % every_ != 0; }

    void try_change(AlignedBytes& changed, std::size_t at, std::byte flip, Counts& as_is, Counts& made_right) {
        changed[at] ^= flip;
        as_is.add(run_model(changed));
        make_right(bytes_of(changed), changed.size());
        made_right.add(run_model(changed));
        std::memcpy(changed.data(), whole_.data(), whole_.size());
    }

    const AlignedBytes& whole_;
    const std::uint64_t every_;
    std::uint64_t n_ = 0;
};

void damage(const char* name, const AlignedBytes& file, std::uint64_t every) {
    Model model;
    promise(open_model(file, model).ok(), "what is written opens");
    promise(run_model(file) == Outcome::ran, "and runs");
    std::printf("%s, %zu bytes\n", name, file.size());
    Damage damage(file, every);
    damage.truncate();
    const std::vector<SectionInfo> listed = sections(model);
    damage.change_bytes("header and directory", 0, sizeof(FileHeader) + listed.size() * sizeof(SectionRecord));
    for (const SectionInfo& section : listed) {
        const std::string kind = section.kind;
        const std::size_t begin = section.offset, end = section.offset + section.bytes;
        if (kind == "config")
            damage.change_bytes(section.kind, begin, end);
        else
            damage.flip_bits(section.kind, begin, end, kind == "weights" || kind == "tokenizer" ? kSampled : 1);
    }
}

void write_bytes_to(const std::filesystem::path& path, const AlignedBytes& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// For fuzzing to start from, what tests/fuzz/seeds.cmake does not copy: models and saved sessions.
void write_seeds(const std::filesystem::path& folder) {
    for (const Tiny& tiny : tiny_models())
        for (const char* target : {"large/run", "large/model"})
            write_bytes_to(folder / target / tiny.name, file_of(tiny));
    int n = 0;
    for (const Tiny& tiny : tinier_models()) {
        const std::string name = std::to_string(n++);
        for (const char* target : {"small/run", "small/model"}) write_bytes_to(folder / target / name, file_of(tiny));
    }
    n = 0;
    constexpr Type kFloats[] = {Type::f32, Type::f16, Type::bf16};
    for (const Tiny& model : tinier_adapted()) {
        const Tiny adapter{"adapter", adapter_of(model.config, 3), kFloats[n % 3], nullptr};
        const std::string name = "adapter_" + std::to_string(n++);
        for (const char* target : {"small/adapter", "small/model", "small/run"})
            write_bytes_to(folder / target / name, file_of(adapter));
    }
    const TinyOpened tiny;
    const Token tokens[] = {1, 7, 2, 5, 9, 3};
    for (const Type type : {Type::f32, Type::f16, Type::q8, Type::q4}) {
        host::Runtime<Session> running =
            start_session(tiny.opened, {.max_kv_len = 12, .max_batch = 4, .kv_type = type});
        require(forward(*running, std::span(tokens).first(4), {}), "tokens");
        require(forward(*running, std::span(tokens).last(2), {}), "tokens");
        host::write_session_file(folder / "small/session" / type_name(type), *running, tokens);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--seeds") return write_seeds(argv[2]), 0;
    const std::uint64_t every = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 1;
    if (argc > 2 || !every) {
        std::fprintf(stderr, "fovea_corruption: expected EVERY, a whole number from 1, or --seeds FOLDER\n");
        return 2;
    }
    for (const Tiny& tiny : tiny_models()) damage(tiny.name, file_of(tiny), every);
}

// The file writer: every byte where engine/format/format.h says, and no trace of a file that failed.
#include "convert/writer/writer.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include "host/base/elements.h"
#include "host/base/output_file.h"
#include "host/base/unfinished.h"
#include "host/base/words.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/small_models.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

template<class T>
T copy_at(std::span<const std::byte> bytes, std::uint64_t offset) {
    T value;
    REQUIRE(offset + sizeof value <= bytes.size());
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

SectionRecord section(std::span<const std::byte> bytes, SectionKind kind) {
    const auto header = copy_at<FileHeader>(bytes, 0);
    for (std::uint32_t i = 0; i < header.n_sections; ++i) {
        const auto record = copy_at<SectionRecord>(bytes, sizeof header + i * sizeof(SectionRecord));
        if (record.kind == static_cast<std::uint32_t>(kind)) return record;
    }
    FAIL("section missing");
    return {};
}

float element(std::span<const std::byte> bytes, std::uint64_t offset, Type type, std::uint64_t index) {
    if (type == Type::f32) return copy_at<float>(bytes, offset + index * 4);
    const auto half = copy_at<std::uint16_t>(bytes, offset + index * 2);
    return type == Type::f16 ? from_f16(half) : from_bf16(half);
}

float rounded(float value, Type type) {
    if (type == Type::f16) return from_f16(to_f16(value));
    return type == Type::bf16 ? from_bf16(to_bf16(value)) : value;
}

/// Where a tensor's element [row][col] is, by the layouts' definition.
std::uint64_t element_index(const TensorRecord& r, std::uint64_t row, std::uint64_t col) {
    if (static_cast<Layout>(r.layout) != Layout::panels) return row * r.n_cols + col;
    const std::uint64_t size = r.type == 0 ? 4 : 2;
    return row / 16 * (r.panel_stride / size) + col * 16 + row % 16;
}

/// A model where the name says so, else a few bytes.
void write_some(const fs::path& path) {
    if (path.extension() == ".fovea") return write_file(random_model(llama_config(), 5), path, {});
    OutputFile file(path.string());
    file.stream() << "whole";
    file.close();
}

void check_tensor(std::span<const std::byte> bytes, std::uint64_t weights, const TensorRecord& r,
                  const ModelSource& source) {
    const TensorSpec spec{static_cast<Role>(r.role),
                          static_cast<StackIndex>(r.stack),
                          r.layer,
                          static_cast<Layout>(r.layout),
                          r.n_rows,
                          r.n_cols};
    std::vector<float> want(std::uint64_t{r.n_rows} * r.n_cols);
    source.read_rows(spec, 0, r.n_rows, want.data());
    const auto type = static_cast<Type>(r.type);
    std::size_t n_wrong = 0;
    for (std::uint32_t row = 0; row < r.n_rows; ++row)
        for (std::uint32_t col = 0; col < r.n_cols; ++col) {
            const float have = element(bytes, weights + r.offset, type, element_index(r, row, col));
            n_wrong += have != rounded(want[std::uint64_t{row} * r.n_cols + col], type);
        }
    CHECK(n_wrong == 0);
    if (spec.layout != Layout::panels) return;
    for (std::uint32_t row = r.n_rows; row % 16 != 0; ++row)  // padding rows
        for (std::uint32_t col = 0; col < r.n_cols; ++col)
            n_wrong += element(bytes, weights + r.offset, type, element_index(r, row, col)) != 0.0f;
    CHECK(n_wrong == 0);
}

}  // namespace

TEST_CASE("writer: every element is where the format puts it, rounded once") {
    for (const NamedConfig& named : decoder_configs())
        for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
            CAPTURE(named.name);
            CAPTURE(type_name(type));
            const ModelSource source = random_model(named.config, 3);
            const AlignedBytes bytes = write_bytes(source, {.type = type});
            Model model;
            REQUIRE(open_model(bytes, model, {.verify_checksums = true}).ok());
            CHECK(copy_at<FileHeader>(bytes, 0).file_bytes == bytes.size());
            const SectionRecord weights = section(bytes, SectionKind::weights);
            const SectionRecord tensors = section(bytes, SectionKind::tensors);
            CHECK(weights.offset % kWeightsAlignment == 0);
            std::uint64_t end = 0;
            for (std::uint64_t i = 0; i < tensors.bytes / sizeof(TensorRecord); ++i) {
                const auto r = copy_at<TensorRecord>(bytes, tensors.offset + i * sizeof(TensorRecord));
                CAPTURE(role_name(r.role));
                for (; end < r.offset; ++end) REQUIRE(bytes[weights.offset + end] == std::byte{0});
                end = r.offset + r.bytes;
                check_tensor(bytes, weights.offset, r, source);
            }
            CHECK(end == weights.bytes);
        }
}

TEST_CASE("writer: NaN and infinities are refused by the tensor's name, as any type") {
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    for (const Type type : kTypes)
        for (const Role role : {Role::token_embedding, Role::query, Role::attention_norm, Role::final_norm})
            for (const float odd : {std::nanf(""), kInfinite, -kInfinite}) {
                ModelSource source = random_model(llama_config(), 5);
                const RowReader read = source.read_rows;
                source.read_rows = [=](const TensorSpec& spec, std::uint32_t begin, std::uint32_t n, float* out) {
                    read(spec, begin, n, out);
                    if (spec.role == role && begin + n == spec.n_rows) out[std::size_t{n} * spec.n_cols - 1] = odd;
                };
                const std::string line = refusal_of([&] { (void)write_bytes(source, {.type = type}); });
                CAPTURE(line);
                CHECK(contains(line, "weights of tensor " + std::string(role_name(static_cast<std::uint16_t>(role))) +
                                         " in layer"));
                CHECK(contains(line, "expected finite numbers, got NaN or infinity"));
            }
    ModelSource source = random_model(llama_config(), 5);
    source.read_groups = [](const TensorSpec& spec, Type, std::uint32_t, std::uint32_t, QuantizedGroup* out) {
        if (spec.role == Role::query) out->scale = 0x7e00;
        return true;
    };
    const std::string line = refusal_of([&] { (void)write_bytes(source, {.type = Type::q8}); });
    CAPTURE(line);
    CHECK(contains(line, "weights of tensor query in layer 0: expected finite numbers, got NaN or infinity"));
}

TEST_CASE("writer: a file on disk is the one in memory, and replaces an older one") {
    const ModelSource source = random_model(gpt2_config(), 5);
    TemporaryFolder folder;
    write_text(folder / "m.fovea", "older");
    std::uint64_t last = 0, total = 0;
    write_file(source, folder / "m.fovea", {.type = Type::f16, .progress = [&](std::uint64_t done, std::uint64_t all) {
                                                CHECK(done > last);
                                                last = done;
                                                total = all;
                                            }});
    CHECK(last == total);
    const AlignedBytes bytes = write_bytes(source, {.type = Type::f16});
    const std::string on_disk = read_text(folder / "m.fovea");
    REQUIRE(on_disk.size() == bytes.size());
    CHECK(std::memcmp(on_disk.data(), bytes.data(), bytes.size()) == 0);
    CHECK(folder.n_files() == 1);
}

TEST_CASE("writer: weights for a flash image need only 64 bytes of alignment") {
    const AlignedBytes bytes = write_bytes(random_model(llama_config(), 1), {.weights_alignment = 64});
    Model model;
    CHECK(open_model(bytes, model, {.verify_checksums = true}).ok());
    CHECK(section(bytes, SectionKind::weights).offset < kWeightsAlignment);
}

TEST_CASE("writer: a failure leaves the older file and nothing else") {
    ModelSource source = random_model(llama_config(), 5);
    const RowReader read = source.read_rows;
    TemporaryFolder folder;
    write_text(folder / "m.fovea", "older");
    SUBCASE("the source fails half-way") {
        int n_calls = 0;
        source.read_rows = [&](const TensorSpec& spec, std::uint32_t row, std::uint32_t n, float* out) {
            if (++n_calls == 20) throw host::Error("no more");
            read(spec, row, n, out);
        };
        CHECK(refusal_of([&] { write_file(source, folder / "m.fovea", {}); }) == "no more");
        CHECK(n_calls == 20);
    }
    SUBCASE("a weight that float16 can't hold") {
        source.read_rows = [&](const TensorSpec& spec, std::uint32_t row, std::uint32_t n, float* out) {
            read(spec, row, n, out);
            if (spec.role == Role::down && spec.layer == 1) out[1] = 70000.0f;
        };
        const std::string line = refusal_of([&] { write_file(source, folder / "m.fovea", {.type = Type::f16}); });
        CHECK(contains(line, "down in layer 1 is 70000"));
    }
    SUBCASE("a weight that no scale of q8 or q4 reaches") {
        source.read_rows = [&](const TensorSpec& spec, std::uint32_t row, std::uint32_t n, float* out) {
            read(spec, row, n, out);
            if (spec.role == Role::down && spec.layer == 1) out[1] = 1e7f;
        };
        for (const Type type : {Type::q8, Type::q4}) {
            const std::string line = refusal_of([&] { write_file(source, folder / "m.fovea", {.type = type}); });
            CHECK(contains(line, "down in layer 1"));
            CHECK(contains(line, "range"));
        }
    }
    SUBCASE("an invalid configuration") {
        source.config.decoder.blocks[0].attention.n_kv_heads = 5;
        CHECK(contains(refusal_of([&] { write_file(source, folder / "m.fovea", {}); }), "n_kv_heads"));
    }
    CHECK(read_text(folder / "m.fovea") == "older");
    CHECK(folder.n_files() == 1);
}

TEST_CASE("writer: what has a temporary name already stays, and so does what it leads to") {
    TemporaryFolder folder;
    const std::string temporary = ".part-" + std::to_string(getpid());
    for (const char* name : {"m.fovea", "y.npy"}) {
        CAPTURE(name);
        write_text(folder / "victim", "older");
        write_text(folder.path() / (name + std::string(".part-") + std::to_string(getpid() + 1)),
                   "left by one that was killed");
        fs::create_symlink(folder / "victim", folder.path() / (name + temporary));
        const std::size_t n_files = folder.n_files();
        write_some(folder / name);
        CHECK(read_text(folder / "victim") == "older");
        CHECK(fs::is_symlink(folder.path() / (name + temporary)));
        CHECK(fs::is_regular_file(folder / name));
        CHECK(folder.n_files() == n_files + 1);
    }
}

TEST_CASE("writer: links stay, and what they lead to is written, were it there or not") {
    TemporaryFolder folder;
    for (const char* name : {"m.fovea", "y.npy"}) {
        CAPTURE(name);
        const std::string target = std::string("target_") + name;
        fs::create_symlink("second", folder.path() / name);  // beside the link, wherever the process is
        fs::create_symlink(folder.path() / target, folder.path() / "second");
        for (int n = 0; n < 2; ++n) {
            write_some(folder / name);
            CHECK(fs::is_symlink(folder.path() / name));
            CHECK(fs::is_symlink(folder.path() / "second"));
            CHECK(fs::is_regular_file(folder.path() / target));
        }
        fs::remove(folder.path() / "second");
    }
}

TEST_CASE("writer: links in a circle are refused, and stay") {
    TemporaryFolder folder;
    for (const char* name : {"m.fovea", "y.npy"}) {
        CAPTURE(name);
        fs::create_symlink(name, folder / "other");
        fs::create_symlink("other", folder.path() / name);
        const std::string refusal = refusal_of([&] { write_some(folder / name); });
        CHECK(contains(refusal, system_error(ELOOP)));
        CHECK(fs::is_symlink(folder.path() / name));
        CHECK(folder.n_files() == 2);
        fs::remove(folder.path() / name);
        fs::remove(folder / "other");
    }
}

TEST_CASE("writer: a finished file's temporary name is nobody's") {
    TemporaryFolder folder;
    Unfinished file((folder / "y.npy").string());
    REQUIRE(file.fd() >= 0);
    REQUIRE(file.finish());
    write_text(file.path(), "of another process");
    remove_unfinished_files();
    CHECK(fs::exists(file.path()));
    CHECK(fs::exists(folder / "y.npy"));
}

TEST_CASE("writer: what a killed conversion left is removed, and nothing else of such a name") {
    TemporaryFolder folder;
    write_some(folder / "m.fovea");
    const std::string whole = read_text(folder / "m.fovea");
    std::string unsealed = whole.substr(0, whole.size() / 2);
    std::fill_n(unsealed.begin() + offsetof(FileHeader, header_crc), sizeof FileHeader::header_crc, '\0');
    const auto part = [&](const char* ending) { return folder.path() / (std::string("m.fovea.part-") + ending); };
    const Unfinished running((folder / "m.fovea").string());
    const std::string its = fs::path(running.path()).filename().string();
    write_text(part("1"), unsealed);
    write_text(part("2"), "");
    write_text(part("3"), whole.substr(0, whole.size() / 2));  // the first of somebody's pieces
    write_text(part("4"), "a piece");
    write_text(part("5.gz"), unsealed);
    write_text(folder / "n.fovea.part-1", unsealed);
    write_some(folder / "m.fovea");
    for (const char* gone : {"1", "2"}) CHECK_FALSE(fs::exists(part(gone)));
    for (const char* kept : {"3", "4", "5.gz"}) CHECK(fs::exists(part(kept)));
    CHECK(fs::exists(folder / its.c_str()));
    CHECK(fs::exists(folder / "n.fovea.part-1"));
    CHECK(read_text(folder / "m.fovea") == whole);
}

TEST_CASE("writer: targets that can't be") {
    const ModelSource source = random_model(llama_config(), 5);
    TemporaryFolder folder;
    CHECK(contains(refusal_of([&] { write_file(source, folder.path(), {}); }), "regular file"));
    CHECK(contains(refusal_of([&] { write_file(source, folder / "none/m.fovea", {}); }), "m.fovea.part-"));
    CHECK(contains(refusal_of([&] { write_file(source, "/dev/full", {}); }), "regular file"));
    write_text(folder / "target", "older");
    fs::create_symlink(folder / "target", folder / "link");
    write_file(source, folder / "link", {});
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(fs::file_size(folder / "target") == fs::file_size(folder / "link"));
    CHECK(fs::file_size(folder / "target") > kWeightsAlignment);
}

// pytorch_model.bin: the tensors of a file that torch.save wrote, and a refusal of one line for everything else.
#include <doctest/doctest.h>

#include <map>

#include "convert/formats/torch_pickle.h"
#include "convert/formats/unpickle.h"
#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

fs::path pickles() { return fs::path(FOVEA_GOLDEN_DIR) / "pickles"; }

fs::path sentence() { return fs::path(FOVEA_GOLDEN_DIR) / "encoders" / "bert_sentence"; }

std::string bytes_of(const SourceTensor& t) {
    return {reinterpret_cast<const char*>(t.data), static_cast<std::size_t>(t.bytes)};
}

TEST_CASE("a file of torch.save has the tensors that safetensors has of them, new, and old with turned parameters") {
    const Safetensors plain = read_safetensors_file(sentence() / "model.safetensors");
    for (const char* file : {"weights.pt", "turned_old.pt"}) {
        CAPTURE(file);
        const Safetensors pickled = read_torch_file(pickles() / file);
        CHECK(pickled.tensors.size() == plain.tensors.size());
        for (const auto& [name, tensor] : plain.tensors) {
            const std::string& of = name;
            CAPTURE(of);
            const auto found = pickled.tensors.find(name);
            REQUIRE(found != pickled.tensors.end());
            CHECK(found->second.dtype == tensor.dtype);
            CHECK(found->second.shape == tensor.shape);
            CHECK(bytes_of(found->second) == bytes_of(tensor));
        }
    }
}

TEST_CASE(
    "a checkpoint's dictionaries within a dictionary give names behind theirs, and whole numbers beside the tensors") {
    const TorchCheckpoint checkpoint = read_torch_checkpoint(pickles() / "nested.pt");
    CHECK(checkpoint.numbers == std::map<std::string, std::int64_t>{{"sizes.n", 3}, {"sizes.flag", 1}});
    REQUIRE(checkpoint.tensors.tensors.size() == 1);
    CHECK(checkpoint.tensors.tensors.begin()->first == "state.w");
    CHECK(contains(refusal_of([&] { (void)read_torch_file(pickles() / "nested.pt"); }), "a tensor named sizes.flag"));
}

TEST_CASE("a folder with pytorch_model.bin converts to the bytes of one with model.safetensors, in shards too") {
    TemporaryFolder folder;
    const auto copy = [&](const char* name, const fs::path& from) { fs::copy_file(from, folder / name); };
    for (const char* name : {"config.json", "vocab.txt", "tokenizer_config.json"}) copy(name, sentence() / name);
    const auto converted = [&] {
        const AlignedBytes bytes = write_bytes(read_source({.source = folder.path()}), {});
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    copy("model.safetensors", sentence() / "model.safetensors");
    const std::string wanted = converted();
    fs::remove(folder / "model.safetensors");
    copy("pytorch_model.bin", pickles() / "weights.pt");
    CHECK(converted() == wanted);
    fs::rename(folder / "pytorch_model.bin", folder / "part-1.bin");
    write_text(folder / "pytorch_model.bin.index.json", R"({"weight_map": {"a": "part-1.bin"}})");
    CHECK(converted() == wanted);
    write_text(folder / "pytorch_model.bin.index.json", R"({"weight_map": {"a": "../part-1.bin"}})");
    CHECK(contains(refusal_of([&] { converted(); }), "the name of a file in this folder"));
    write_text(folder / "pytorch_model.bin.index.json", R"({"weight_map": {"a": "part-1.bin", "b": "part-2.bin"}})");
    fs::copy_file(folder / "part-1.bin", folder / "part-2.bin");
    CHECK(contains(refusal_of([&] { converted(); }), "expected once, got twice"));
}

TEST_CASE("what is no checkpoint of tensors is refused in one line that says why, and nothing of it runs") {
    const auto wanted = nlohmann::json::parse(read_text(pickles() / "refused.json"));
    CHECK(wanted.size() >= 20);
    for (const auto& [name, words] : wanted.items()) {
        const std::string& of = name;
        CAPTURE(of);
        const std::string line = refusal_of([&, &file = name] { (void)read_torch_file(pickles() / "refused" / file); });
        CAPTURE(line);
        CHECK(contains(line, "refused/" + name));
        CHECK(contains(line, words.get<std::string>()));
    }
}

TEST_CASE("a checkpoint that is cut off anywhere is refused, and one with a byte changed is refused or read") {
    TemporaryFolder folder;
    for (const char* file : {"refused/far_offset", "nested_old.pt"}) {  // one tensor, a few hundred bytes
        const std::string whole = read_text(pickles() / file);
        for (std::size_t n = 0; n < whole.size(); ++n) {
            CAPTURE(n);
            write_text(folder / "cut.bin", whole.substr(0, n));
            CHECK(!refusal_of([&] { (void)read_torch_file(folder / "cut.bin"); }).empty());
            std::string changed = whole;
            changed[n] = static_cast<char>(changed[n] ^ 0x41);
            write_text(folder / "changed.bin", changed);
            refusal_of([&] { (void)read_torch_file(folder / "changed.bin"); });
        }
    }
}

TEST_CASE("memory of a pickle is linear in its bytes: a tuple that is called again and again is not copied") {
    std::string code =
        "\x80\x02"
        "ccollections\nOrderedDict\nq";
    code += '\0';
    code += "0(";
    CHECK(contains(refusal_of([&] { (void)unpickle(std::as_bytes(std::span(code)), "a file"); }),
                   "instructions that make tensors"));
    std::string tuple = "\x80\x02(";
    for (int i = 0; i < 1000; ++i) tuple += "N";
    tuple += "tq";
    tuple += '\0';
    tuple = tuple.substr(0, 2) + "ctorch._utils\n_rebuild_tensor_v2\n" + tuple.substr(2) + "R.";
    CHECK(contains(refusal_of([&] { (void)unpickle(std::as_bytes(std::span(tuple)), "a file"); }),
                   "four to seven arguments of a tensor"));
}

}  // namespace

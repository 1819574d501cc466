// Other programs' models are named, with what to do.
#include "convert/open/foreign.h"

#include <doctest/doctest.h>

#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

TEST_CASE("foreign models: each is named, as a file and in a folder, and what is to be done") {
    struct Case {
        const char *file, *content, *words;
    };
    const Case cases[] = {{"model.onnx", "\x08\x07", "an ONNX model; give the folder of transformers"},
                          {"model.tflite", "\x1c\0\0\0TFL3", "a TensorFlow Lite model; give"},
                          {"tf_model.h5", "\x89HDF\r\n\x1a\n", "a TensorFlow or Keras model; load it with from_tf"},
                          {"flax_model.msgpack", "\xde", "a Flax model; load it with from_flax"},
                          {"openvino_model.xml", "<?xml", "an OpenVINO model; give"},
                          {"rust_model.ot", "PK", "a model for Rust; give"},
                          {"weights.npz", "PK", "an archive of NumPy's arrays; "},
                          {"model.tar.gz", "\x1f\x8b", "an archive; unpack it first"}};
    for (const Case& one : cases) {
        CAPTURE(one.file);
        const TemporaryFolder folder;
        write_text(folder / one.file, one.content);
        write_text(folder / "config.json", R"({"model_type": "bert"})");
        const std::string of_file = refusal_of([&] { (void)read_source({.source = folder / one.file}); }),
                          of_folder = refusal_of([&] { (void)read_source({.source = folder.path()}); });
        CHECK(contains(of_file, std::string("expected a model that can be read here, got ") + one.words));
        CHECK(contains(of_folder, one.words));
        CHECK(is_source(folder / one.file));
    }
    const TemporaryFolder folder;
    write_text(folder / "old.bin", "tjgg\x03\0\0\0");
    CHECK(contains(refusal_of([&] { (void)read_source({.source = folder / "old.bin"}); }),
                   "a ggml file from before GGUF"));
    write_text(folder / "model.bin", "x");
    write_text(folder / "shared_vocabulary.txt", "x");
    CHECK(
        contains(refusal_of([&] { (void)read_source({.source = folder.path()}); }), "got a CTranslate2 folder; give"));
}

TEST_CASE("foreign models: beside weights that are read they don't matter") {
    const TemporaryFolder folder;
    for (const auto& entry : fs::directory_iterator(golden_models() / "llama_tied"))
        fs::copy_file(entry.path(), folder.path() / entry.path().filename());
    fs::create_directory(folder / "onnx");
    write_text(folder / "onnx/model.onnx", "x");
    write_text(folder / "tf_model.h5", "x");
    CHECK(refusal_of([&] { (void)read_source({.source = folder.path()}); }).empty());
}

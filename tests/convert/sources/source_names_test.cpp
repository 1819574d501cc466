// Names of tensors as training programs wrap them.
#include "convert/sources/source_names.h"

#include <doctest/doctest.h>

#include "tests/support/convert_fixtures.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

std::vector<std::string> plain_names(const std::vector<std::string>& names) {
    Safetensors weights;
    weights.files.emplace_back("a file");
    for (const std::string& name : names) weights.tensors[name].dtype = name;
    use_plain_names(weights);
    std::vector<std::string> result;
    for (const auto& [name, tensor] : weights.tensors) {
        CHECK(tensor.dtype.ends_with(name.substr(name.rfind('.') + 1)));  // each is still itself
        result.push_back(name);
    }
    return result;
}

}  // namespace

TEST_CASE("names: wrappers go wherever they stand, and what all names begin with") {
    using Names = std::vector<std::string>;
    CHECK(plain_names({"_orig_mod.a.b", "_orig_mod.c"}) == Names{"a.b", "c"});
    CHECK(plain_names({"module.a", "module.b"}) == Names{"a", "b"});
    CHECK(plain_names({"module._orig_mod.a.b", "module._orig_mod.c"}) == Names{"a.b", "c"});
    CHECK(plain_names({"model.layers.0._orig_mod.b", "model.c"}) == Names{"model.c", "model.layers.0.b"});
    CHECK(plain_names({"a._fsdp_wrapped_module.b", "a._checkpoint_wrapped_module._orig_mod.c"}) == Names{"a.b", "a.c"});
    CHECK(plain_names({"model_state_dict.module.a", "model_state_dict.module.b"}) == Names{"a", "b"});
    CHECK(plain_names({"module.a", "b"}) == Names{"b", "module.a"});
    CHECK(plain_names({"not_orig_mod.a"}) == Names{"not_orig_mod.a"});
    CHECK(plain_names({}).empty());
    CHECK(contains(refusal_of([] { plain_names({"_orig_mod.a", "a"}); }), "expected one of the name a, got two"));
}

TEST_CASE("names: a folder whose names are wrapped converts to the same bytes") {
    TemporaryFolder folder;
    fs::copy(golden_models() / "llama_tied", folder / "model");
    const auto converted = [&] {
        const AlignedBytes bytes = write_bytes(read_source({.source = folder / "model"}), {});
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    const std::string wanted = converted();
    for (const char* outer : {"_orig_mod.", "module.", "module._orig_mod."}) {
        std::string file = read_text(folder / "model/model.safetensors");
        std::uint64_t n = 0;
        std::memcpy(&n, file.data(), sizeof n);
        nlohmann::json renamed = nlohmann::json::object();
        const auto tensors = nlohmann::json::parse(file.substr(8, n));
        for (const auto& [name, tensor] : tensors.items())
            renamed[(name == "__metadata__" ? "" : outer) + name] = tensor;
        const std::string header = renamed.dump(), data = file.substr(8 + n);
        n = header.size();
        write_text(folder / "model/model.safetensors",
                   std::string(reinterpret_cast<const char*>(&n), sizeof n) + header + data);
        CHECK(converted() == wanted);
        write_text(folder / "model/model.safetensors", file);
    }
}

// Quantized Hugging Face folders: the floats that their numbers stand for, bit for bit, which of our types has them as they
// are, and what is refused.
#include "convert/packed/packed.h"
#include "host/base/json.h"

#include <doctest/doctest.h>

#include <set>

#include "convert/packed/float8.h"
#include "host/base/elements.h"
#include "host/base/words.h"
#include "host/model/listing.h"
#include "tests/support/convert_fixtures.h"
#include "tests/support/panel_element.h"

using namespace fovea;
using namespace fovea::testing;

namespace {

fs::path golden() { return fs::path(FOVEA_GOLDEN_DIR) / "packed"; }

struct Folder {
    fs::path path, floats;
    Type type;  // of its matrices where none is chosen

    explicit Folder(const fs::path& at) : path(at) {
        const auto expected = SortedJson::parse(read_text(at / "expected.json"));
        floats = golden() / "floats" / expected["floats"].get<std::string>();
        const std::string name = expected["type"];
        for (const Type each : kTypes)
            if (name == type_name(each)) type = each;
    }
};

std::vector<Folder> folders() {
    std::vector<Folder> all;
    for (const auto& entry : fs::directory_iterator(golden()))
        if (entry.path().filename() != "floats") all.emplace_back(entry.path());
    CHECK(all.size() == 36);
    return all;
}

/// Visits the layers' matrices, which are what is packed.
void for_each_matrix(const ModelSource& source, const std::function<void(const TensorSpec&)>& use) {
    for_each_tensor(source.config.decoder, StackIndex::decoder, [&](const TensorSpec& spec) {
        if (spec.layout == Layout::panels && spec.role != Role::output && spec.role != Role::token_embedding) use(spec);
    });
}

std::vector<float> rows_of(const ModelSource& source, const TensorSpec& spec) {
    std::vector<float> rows(std::size_t{spec.n_rows} * spec.n_cols);
    source.read_rows(spec, 0, spec.n_rows, rows.data());
    return rows;
}

/// The same of a file's panels; of types that are no groups, none.
std::vector<float> rows_of(const Converted& file, const TensorSpec& spec) {
    std::vector<float> rows;
    for (const TensorInfo& tensor : tensors(file.model)) {
        if (tensor.role != std::string_view(role_name(static_cast<std::uint16_t>(spec.role)))) continue;
        if (tensor.layer != spec.layer || !is_quantized(tensor.type)) continue;
        const std::byte* panels = file.mapping.bytes().data() + tensor.offset;
        const std::uint64_t stride = tensor.bytes / (round_up(tensor.n_rows, kLanes) / kLanes);
        for (std::uint32_t row = 0; row < tensor.n_rows; ++row)
            for (std::uint32_t col = 0; col < tensor.n_cols; ++col)
                rows.push_back(panel_element(tensor.type, panels + row / kLanes * stride, row % kLanes, col));
    }
    return rows;
}

bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// A file's bytes, without what it says of its source.
AlignedBytes file_of(const ConvertOptions& options) {
    ModelSource source = read_source(options);
    source.info.clear();
    return write_bytes(source, write_options(options, source));
}

bool same_bytes(const AlignedBytes& a, const AlignedBytes& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// What converting a copy of that folder says after a change.
std::string line_of(const char* name, const std::function<void(const fs::path&)>& change) {
    TemporaryFolder folder;
    fs::copy(golden() / name, folder / "model");
    change(folder / "model");
    return refusal_of([&] { convert_source({.source = folder / "model", .output = folder / "m.fovea"}); });
}

void check_config_refused(const char* name, const char* field, const SortedJson& value, const char* words) {
    const std::string line = line_of(name, [&](const fs::path& at) {
        edit_json(at / "config.json",
                  [&](SortedJson& json) { json["quantization_config"][SortedJson::json_pointer(field)] = value; });
    });
    CAPTURE(field);
    CAPTURE(line);
    CHECK(contains(line, "config.json: quantization_config: "));
    CHECK(contains(line, words));
}

std::string line_after(const char* name, const std::function<void(SafetensorsText&)>& edit) {
    return line_of(name, [&](const fs::path& at) {
        SafetensorsText tensors = SafetensorsText::read(at / "model.safetensors");
        edit(tensors);
        write_text(at / "model.safetensors", tensors.text());
    });
}

void check_tensors_refused(const char* name, const std::function<void(SafetensorsText&)>& edit, const char* words) {
    const std::string line = line_after(name, edit);
    CAPTURE(name);
    CAPTURE(line);
    CHECK(contains(line, "model.safetensors: tensor model.layers.0.self_attn.q_proj."));
    CHECK(contains(line, words));
}

std::string query(const char* part) { return std::string("model.layers.0.self_attn.q_proj.") + part; }

/// Gives a tensor of the query map another shape, of as many bytes, or another dtype.
std::function<void(SafetensorsText&)> with(const char* part, const char* key, const SortedJson& value) {
    return [=](SafetensorsText& tensors) { tensors.header.at(query(part))[key] = value; };
}

std::function<void(SafetensorsText&)> without(const char* part) {
    return [=](SafetensorsText& tensors) { tensors.header.erase(query(part)); };
}

/// A number of a tensor of the query map.
template<class Number>
std::function<void(SafetensorsText&)> with_number(const char* part, std::size_t i, Number number) {
    return [=](SafetensorsText& tensors) {
        const std::size_t at = tensors.header.at(query(part))["data_offsets"][0].get<std::size_t>();
        std::memcpy(tensors.data.data() + at + i * sizeof number, &number, sizeof number);
    };
}

}  // namespace

TEST_CASE("packed folders: every weight is the float that the layout says") {
    std::set<Type> types;
    for (const Folder& folder : folders()) {
        CAPTURE(folder.path.filename().string());
        const ModelSource packed = read_source({.source = folder.path}),
                          floats = read_source({.source = folder.floats});
        std::size_t n = 0;
        for_each_matrix(floats, [&](const TensorSpec& spec) {
            CHECK(same_floats(rows_of(packed, spec), rows_of(floats, spec)));
            CHECK(packed.type_of(spec) == folder.type);
            ++n;
        });
        CHECK(n >= 4);
        types.insert(folder.type);
    }
    CHECK(types == std::set<Type>{Type::q4, Type::q8, Type::bf16, Type::tq2_0});
}

TEST_CASE("packed folders: a type's file is that of the floats, or has the numbers as they are") {
    constexpr Type kFile[] = {Type::f32, Type::f16,  Type::bf16, Type::q8,
                              Type::q4,  Type::q6_k, Type::q4_k, Type::tq2_0};
    for (const Folder& folder : folders()) {
        CAPTURE(folder.path.filename().string());
        const ModelSource packed = read_source({.source = folder.path});
        for (const Type type : kFile) {
            CAPTURE(type_name(type));
            bool kept = false;
            for_each_matrix(packed, [&](const TensorSpec& spec) {
                std::vector<QuantizedGroup> groups(std::size_t{kLanes} * spec.n_cols / kGroup);
                kept = kept || (is_quantized(type) && packed.read_groups(spec, type, 0, kLanes, groups.data()));
            });
            const bool same = same_bytes(file_of({.source = folder.path, .type = type}),
                                         file_of({.source = folder.floats, .type = type}));
            CHECK((same || kept));
        }
    }
}

TEST_CASE("packed folders: without a type integers keep their numbers where q4 or q8 can hold them") {
    std::size_t n_kept = 0;
    for (const Folder& folder : folders()) {
        CAPTURE(folder.path.filename().string());
        TemporaryFolder written;
        convert_source({.source = folder.path, .output = written / "m.fovea"});
        const Converted file(written / "m.fovea");
        const ModelSource floats = read_source({.source = folder.floats});
        const std::set<std::string> rounded = {"gptq_ordered", "words_ordered", "gptq_int2", "bytes_int8_zeros",
                                               "words_int8_zeros"};
        const bool kept =
            (folder.type == Type::q4 || folder.type == Type::q8) && rounded.count(folder.path.filename().string()) == 0;
        for_each_matrix(floats, [&](const TensorSpec& spec) {
            CHECK(same_floats(rows_of(file, spec), rows_of(floats, spec)) == kept);
        });
        n_kept += kept;
        for (const float logit : all_logits(file.model, {3, 1, 4, 1, 5})) REQUIRE(std::isfinite(logit));
    }
    CHECK(n_kept == 22);
}

TEST_CASE("packed folders: the embedding and the output head stay as they are, and inspect says where they come from") {
    const ModelSource source = read_source({.source = golden() / "awq"});
    CHECK(source.type == Type::f16);
    bool found = false;
    for (const auto& [key, value] : source.info) found = found || (key == "source_type" && value == "awq, 4 bits");
    CHECK(found);
    for_each_tensor(source.config.decoder, StackIndex::decoder, [&](const TensorSpec& spec) {
        if (spec.role == Role::output) CHECK(source.type_of(spec) == Type::f16);
    });
}

TEST_CASE("packed folders: an adapter is merged into what the numbers stand for") {
    TemporaryFolder folder;
    fs::create_directory(folder / "adapter");
    const std::string name = "base_model.model." + query("lora_");
    SafetensorsText tensors;
    tensors.header = {{name + "A.weight", {{"dtype", "F32"}, {"shape", {1, 32}}, {"data_offsets", {0, 128}}}},
                      {name + "B.weight", {{"dtype", "F32"}, {"shape", {64, 1}}, {"data_offsets", {128, 384}}}}};
    for (int i = 0; i < 96; ++i) {
        const float value = static_cast<float>(i % 7 - 3) / 8;
        tensors.data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    write_text(folder / "adapter/adapter_model.safetensors", tensors.text());
    write_text(folder / "adapter/adapter_config.json", R"({"peft_type": "LORA", "r": 1, "lora_alpha": 1})");
    for (const char* packed : {"gptq_int4", "fp8_blocks"}) {
        const Folder at(golden() / packed);
        const ConvertOptions merged{.source = at.path, .type = Type::f32, .loras = {{folder / "adapter"}}};
        CHECK(same_bytes(file_of(merged),
                         file_of({.source = at.floats, .type = Type::f32, .loras = {{folder / "adapter"}}})));
        CHECK(!same_bytes(file_of(merged), file_of({.source = at.path, .type = Type::f32})));
        const ModelSource source = read_source(merged);
        for_each_matrix(source, [&](const TensorSpec& spec) {
            if (spec.role == Role::query) CHECK(source.type_of(spec) == (at.type == Type::bf16 ? Type::bf16 : at.type));
        });
    }
}

TEST_CASE("packed folders: settings that are left over beside floats are noted and not used") {
    TemporaryFolder folder;
    fs::copy(golden() / "floats" / "int4", folder / "model");
    const AlignedBytes plain = file_of({.source = folder / "model"});
    edit_json(folder / "model/config.json", [](SortedJson& json) {
        json["quantization_config"] = {{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}};
    });
    CHECK(same_bytes(file_of({.source = folder / "model"}), plain));
    const ModelSource source = read_source({.source = folder / "model"});
    REQUIRE(source.notes.size() == 1);
    CHECK(contains(source.notes[0], "quantization_config: nothing of it is used, for the weights are floats"));
}

TEST_CASE("packed folders: methods and settings that no reader has are refused by name") {
    const std::string methods = line_of("awq", [](const fs::path& at) {
        edit_json(at / "config.json", [](SortedJson& json) { json["quantization_config"]["quant_method"] = "hqq"; });
    });
    CHECK(contains(methods,
                   "config.json: quantization_config: quant_method: expected one of gptq, awq, "
                   "auto-round, compressed-tensors, fp8, fbgemm_fp8, bitnet, got \"hqq\""));
    check_config_refused("gptq_int4", "/bits", 5, "bits: expected 2, 3, 4 or 8, got 5");
    check_config_refused("gptq_int4", "/bits", nullptr, "bits: expected a whole number from 2 to 8");
    check_config_refused("gptq_int4", "/group_size", 0, "group_size: expected a whole number above 0, or -1, got 0");
    check_config_refused("gptq_int4", "/group_size", -2, "group_size: expected a number from -1");
    check_config_refused("gptq_int4", "/group_size", 1.5, "group_size: expected a whole number above 0");
    check_config_refused("gptq_int4", "/checkpoint_format", "marlin", "expected gptq or gptq_v2, got \"marlin\"");
    check_config_refused("gptq_int4", "/format", "marlin", "format: expected gptq or gptq_v2");
    check_config_refused("gptq_int4", "/is_marlin_format", true, "is_marlin_format: expected false");
    check_config_refused("gptq_int4", "/pack_dtype", "int16", "pack_dtype: expected int32");
    check_config_refused("gptq_int4", "/dynamic", {{"+:down_proj", {{"bits", 8}}}}, "expected no settings of its own");
    check_config_refused("awq", "/bits", 8, "bits: expected 4, got 8");
    check_config_refused("awq", "/version", "marlin", "version: expected gemm or gemv, got \"marlin\"");
    check_config_refused("auto_round", "/packing_format", "auto_round:fp8", "packing_format: expected auto_round, ");
    check_config_refused("auto_round", "/data_type", "mx_fp", "data_type: expected int");
    check_config_refused("auto_round", "/act_bits", 8, "act_bits: expected 16");
    check_config_refused("auto_round", "/extra_config", {{"model.*", {{"bits", 8}}}},
                         "expected a module's name, not a pattern");
    check_config_refused("words_int4", "/format", "nvfp4-pack-quantized", "format: expected pack-quantized, int-quant");
    check_config_refused("words_int4", "/kv_cache_scheme", {{"num_bits", 8}}, "kv_cache_scheme: expected none");
    check_config_refused("words_int4", "/transform_config", {{"config_groups", 1}}, "transform_config: expected none");
    check_config_refused("words_int4", "/sparsity_config", {{"format", "sparse-24-bitmask"}}, "format: expected dense");
    check_config_refused("words_int4", "/quantization_status", "frozen", "expected compressed, got \"frozen\"");
    check_config_refused("words_int4", "/config_groups", nullptr, "config_groups: expected an object");
    const char* weights = "/config_groups/group_0/weights/num_bits";
    check_config_refused("words_int4", weights, 5, "group_0: weights: num_bits: expected 2, 4 or 8, got 5");
    check_config_refused("words_int4", "/config_groups/group_0/weights/type", "nf4", "type: expected int or float");
    check_config_refused("words_int4", "/config_groups/group_0/weights/strategy", "block", "tensor, channel or group");
    check_config_refused("float_rows", weights, 4, "num_bits: expected 8, got 4");
    check_config_refused("float_rows", "/config_groups/group_0/weights/strategy", "group", "tensor, channel or block");
    check_config_refused("float_blocks", "/config_groups/group_0/weights/block_structure", nullptr,
                         "block_structure: expected two whole numbers above 0");
    check_config_refused("fp8_blocks", "/weight_block_size", {128}, "expected two whole numbers above 0, got [128]");
    check_config_refused("fp8_blocks", "/weight_block_size", {0, 128}, "expected two whole numbers above 0");
    check_config_refused("fp8_blocks", "/fmt", "e5m2", "fmt: expected e4m3");
    check_config_refused("fp8_blocks", "/expert_dtype", "fp4", "expert_dtype: expected fp8");
    check_config_refused("bitnet", "/linear_class", "linear", "linear_class: expected bitlinear or autobitlinear");
    check_config_refused("bitnet", "/quantization_mode", "late", "quantization_mode: expected offline or online");
    check_config_refused("bitnet", "/use_rms_norm", true, "use_rms_norm: expected false");
}

TEST_CASE("packed folders: tensors that are not as the configuration says are refused by name") {
    check_tensors_refused("gptq_int4", without("qzeros"), "qzeros: expected it beside the module's others, got none");
    check_tensors_refused("gptq_int4", with("qzeros", "dtype", "F32"), "qzeros: expected I32, got F32");
    check_tensors_refused("gptq_int4", with("qzeros", "shape", {8, 1}), "expected shape [1, 8], got [8, 1]");
    check_tensors_refused("gptq_int4", with("qzeros", "shape", {8}), "expected a shape of 2 sizes above 0, got [8]");
    check_tensors_refused("gptq_int4", with("scales", "shape", {64, 1}), "expected shape [1, 64], got [64, 1]");
    check_tensors_refused("gptq_int4", with("qweight", "shape", {1, 256}),
                          "qzeros: expected shape [1, 32], got [1, 8]");
    check_tensors_refused("gptq_int3", with("qweight", "shape", {64, 3}), "expected whole words of numbers of 3 bits");
    check_tensors_refused("gptq_int4", with_number("g_idx", 5, std::int32_t{1}),
                          "g_idx: expected groups below 1, got 1");
    check_tensors_refused("gptq_int4", with_number("g_idx", 5, std::int32_t{-1}), "expected groups below 1, got -1");
    check_tensors_refused("gptq_ordered", without("g_idx"), "g_idx: expected it beside the module's others, got none");
    check_tensors_refused("gptq_int4", with("g_idx", "shape", {2, 16}), "expected a shape of 1 sizes above 0");
    check_tensors_refused("awq", with("qweight", "shape", {8, 32}),
                          "expected rows of whole groups of 32, got shape [8, 32]");
    check_tensors_refused("awq", with("scales", "dtype", "I16"), "scales: expected F32 or F16 or BF16, got I16");
    check_tensors_refused("words_int4", with("weight_packed", "shape", {32, 8}), "as config.json's num_bits make");
    check_tensors_refused("words_int4", with_number("weight_shape", 1, std::int64_t{0}), "expected sizes from 1 to");
    check_tensors_refused("words_int4", with_number("weight_shape", 0, std::int64_t{-64}), "got -64");
    check_tensors_refused("words_int4", with("weight_shape", "dtype", "F64"), "expected I64 or I32, got F64");
    check_tensors_refused("words_int4", with("weight_scale", "shape", {1, 64}),
                          "expected as many groups as a row's 32");
    check_tensors_refused("words_int4_zeros", with("weight_zero_point", "shape", {1, 8}), "expected shape [8, 1]");
    check_tensors_refused("words_int4_zero_bytes", with("weight_zero_point", "shape", {1, 64}),
                          "expected shape [64, 1]");
    check_tensors_refused("words_ordered", with_number("weight_g_idx", 0, std::int32_t{2}), "expected groups below 2");
    check_tensors_refused("fp8_blocks", without("weight_scale_inv"), "weight_scale: expected it beside");
    check_tensors_refused("fp8_blocks", with("weight_scale_inv", "shape", {2, 3}), "expected shape [3, 2], got [2, 3]");
    check_tensors_refused("float_rows", with("weight_scale", "shape", {32, 2}), "expected shape [64, 1] or [64] or");
    check_tensors_refused("bitnet", without("weight_scale"), "weight_scale: expected it beside");
    check_tensors_refused("bitnet", with("weight", "shape", {8, 64}), "weight: expected shape [64, 32], got [32, 64]");
    CHECK(contains(line_after("fp8_blocks", with("weight", "shape", {64, 31})), "expected 1984 bytes for its shape"));
}

TEST_CASE("packed folders: matrices that are floats beside packed ones, none packed, and both at once") {
    const auto add_weight = [](SafetensorsText& tensors) {
        tensors.header[query("weight")] = {
            {"dtype", "F16"}, {"shape", {64, 32}}, {"data_offsets", {tensors.data.size(), tensors.data.size() + 4096}}};
        tensors.data.append(4096, '\0');
    };
    CHECK(contains(line_after("gptq_int4", add_weight),
                   "q_proj.weight: expected a matrix as floats or packed, got both"));
    const auto plain = [&](SafetensorsText& tensors) {
        for (const char* part : {"qweight", "qzeros", "scales", "g_idx", "bias"}) tensors.header.erase(query(part));
        add_weight(tensors);
    };
    CHECK(line_after("gptq_int4", plain) == "");
    CHECK(contains(line_of("gptq_int4",
                           [](const fs::path& at) {
                               fs::copy_file(golden() / "floats/int4/model.safetensors", at / "model.safetensors",
                                             fs::copy_options::overwrite_existing);
                           }),
                   "expected tensors packed as "));
    // A bias that the model does not call for may be there if it is zero.
    CHECK(contains(line_after("gptq_int4", with_number("bias", 3, std::uint16_t{1})),
                   "q_proj.bias: expected only tensors that the configuration calls for"));
}

TEST_CASE("packed folders: an order of columns that was never set is none") {
    const auto zeros = [](SafetensorsText& tensors) {
        const std::string name = "model.layers.0.mlp.down_proj.g_idx";  // of two groups
        const std::size_t at = tensors.header.at(name)["data_offsets"][0].get<std::size_t>();
        tensors.data.replace(at, 64 * 4, 64 * 4, '\0');
    };
    TemporaryFolder folder;
    fs::copy(golden() / "gptq_int4", folder / "model");
    SafetensorsText tensors = SafetensorsText::read(folder / "model/model.safetensors");
    zeros(tensors);
    write_text(folder / "model/model.safetensors", tensors.text());
    CHECK(same_bytes(file_of({.source = folder / "model", .type = Type::f32}),
                     file_of({.source = golden() / "gptq_int4", .type = Type::f32})));
}

TEST_CASE("float8: numbers of four bits of exponent and three of fraction") {
    CHECK(from_e4m3(0x00) == 0.0f);
    CHECK(std::signbit(from_e4m3(0x80)));
    CHECK(from_e4m3(0x01) == 0x1p-9f);
    CHECK(from_e4m3(0x07) == 7 * 0x1p-9f);
    CHECK(from_e4m3(0x08) == 0x1p-6f);
    CHECK(from_e4m3(0x38) == 1.0f);
    CHECK(from_e4m3(0xb9) == -1.125f);
    CHECK(from_e4m3(0x7e) == 448.0f);
    CHECK(std::isnan(from_e4m3(0x7f)));
    CHECK(std::isnan(from_e4m3(0xff)));
    for (int bits = 0; bits < 126; ++bits)
        CHECK(from_e4m3(static_cast<std::uint8_t>(bits)) < from_e4m3(static_cast<std::uint8_t>(bits + 1)));
}

// Apertus (Swiss AI 2025): Llama's layers with normed queries and keys, and xIELU in place of a gate.
#include "convert/families/llama_names.h"
#include "convert/families/reading.h"
#include "convert/families/xielu.h"
#include "convert/weights/mapped_weights.h"
#include "host/base/error.h"

namespace fovea {
namespace {

constexpr ModelType kApertusTypes[] = {{"apertus", R"({"max_position_embeddings": 65536, "rms_norm_eps": 1e-5})"}};

constexpr auto kApertusNames = kLlamaNames.with({
    {Role::attention_norm, "#attention_layernorm.weight"},
    {Role::feed_forward_norm, "#feedforward_layernorm.weight"},
    {Role::up, "#mlp.up_proj.weight"},
    {Role::xielu, "#mlp.act_fn.numbers"},
});

/// Positions of files without settings.
Fields with_positions(const Fields& fields) {
    for (const char* name : {"rope_parameters", "rope_scaling", "rope_theta"})
        if (fields.has(name)) return fields;
    return fields.with("rope_parameters",
                       read_sorted_json(R"({"rope_type": "llama3", "rope_theta": 12000000.0, "factor": 8.0,
                                            "original_max_position_embeddings": 8192, "low_freq_factor": 1.0,
                                            "high_freq_factor": 4.0})"));
}

void read_apertus(const Fields& all, const std::string&, HfConfig& result) {
    const Fields fields = with_positions(all);
    Stack& stack = result.stack();
    Block block = read_sizes(fields, {.default_epsilon = 1e-5}, Norm::rms, stack);
    read_output_head(fields, false, stack);
    block.attention.query_key_norm = Norm::rms;
    set_biases(block.attention, fields.flag_or("attention_bias", false));
    block.feed.xielu = fields.text_or("hidden_act", "xielu") == "xielu";
    if (!block.feed.xielu) block.feed.activation = read_activation(fields, "hidden_act", "silu");
    set_layers(fields, with_rope(fields, block), result);
}

/// A tensor of one number, which is left out behind it; `otherwise` if there is none.
float take_number(Safetensors& files, const std::string& name, float otherwise) {
    const auto found = files.tensors.find(name);
    if (found == files.tensors.end()) return otherwise;
    const SourceTensor tensor = found->second;
    const std::string place = files.files.front().string() + ": tensor " + name;
    std::uint64_t n = 1;
    for (const std::uint64_t size : tensor.shape) n *= size;
    if (n != 1 || !tensor.data) throw host::Error(place + ": expected one number, got another tensor");
    const TensorView view{.data = tensor.data, .type = float_type(tensor, place)};
    float number = 0.0f;
    read_vector(view, 1, &number);
    files.tensors.erase(found);
    return number;
}

/// The four numbers of each layer become one tensor.
void join_numbers(const HfConfig& config, Safetensors& files) {
    constexpr std::string_view kAlpha = "alpha_p";
    if (!config.stack().blocks[0].feed.xielu) return;
    std::vector<std::string> modules;
    for (const auto& [name, tensor] : files.tensors)
        if (name.ends_with(".mlp.act_fn." + std::string(kAlpha)))
            modules.push_back(name.substr(0, name.size() - kAlpha.size()));
    for (const std::string& module : modules) {
        const std::size_t file = files.tensors.at(module + std::string(kAlpha)).file;
        const auto take = [&](const char* name, float otherwise) {
            return take_number(files, module + name, otherwise);
        };
        const float alpha = take("alpha_p", 0.0f), negative = take("alpha_n", 0.0f);
        const std::vector<float> numbers = xielu_numbers(alpha, negative, take("beta", 0.5f), take("eps", -1e-6f));
        const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
        SourceTensor joined{.dtype = "F32", .shape = {4}, .bytes = 4 * sizeof(float), .file = file};
        joined.data = files.copies.emplace_back(bytes, bytes + joined.bytes).data();
        files.tensors.emplace(module + "numbers", std::move(joined));
    }
}

}  // namespace

const Family families::apertus = {
    .types = kApertusTypes, .names = kApertusNames, .read = read_apertus, .prepare = join_numbers};

}  // namespace fovea

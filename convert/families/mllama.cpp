// The text model of Llama 3.2 Vision (Meta 2024): Llama 3.1 with further layers that attend to a picture. Without one they leave
// the rows as they are.
#include <algorithm>

#include "convert/families/llama_names.h"
#include "convert/families/reading.h"

namespace fovea {
namespace {

constexpr ModelType kMllamaTypes[] = {
    {"mllama_text_model", R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "rope_theta": 500000.0})"}};

/// Numbers of the layers that attend to a picture.
std::vector<std::uint32_t> read_cross_layers(const Fields& fields, std::uint32_t n_layers) {
    const SortedJson usual = {3, 8, 13, 18, 23, 28, 33, 38};
    const bool listed = fields.has("cross_attention_layers");
    const SortedJson& list = listed ? fields.json()["cross_attention_layers"] : usual;
    if (!list.is_array()) fields.refuse("cross_attention_layers", "a list of layers");
    std::vector<std::uint32_t> layers;
    for (const SortedJson& number : list) {
        if (!number.is_number_unsigned()) fields.refuse("cross_attention_layers", "numbers of layers");
        const auto layer = number.get<std::uint64_t>();
        const bool is_known = layer >= n_layers || std::find(layers.begin(), layers.end(), layer) != layers.end();
        if (!is_known) layers.push_back(static_cast<std::uint32_t>(layer));
    }
    if (layers.size() == n_layers) fields.refuse("cross_attention_layers", "fewer than the model's layers");
    return layers;
}

void read_mllama(const Fields& fields, const std::string&, HfConfig& result) {
    Stack& stack = result.stack();
    Block block = read_gated(fields, {.default_epsilon = 1e-5}, false, stack);
    const std::vector<std::uint32_t> cross = read_cross_layers(fields, stack.n_layers);
    const auto prefix = [](std::uint32_t layer) { return "layers." + std::to_string(layer) + "."; };
    for (std::uint32_t i = 0; i < stack.n_layers; ++i)
        if (std::find(cross.begin(), cross.end(), i) == cross.end()) result.layer_prefixes.push_back(prefix(i));
    for (const std::uint32_t layer : cross) result.layer_prefixes.push_back(prefix(layer));
    result.n_skipped_layers = static_cast<std::uint32_t>(cross.size());
    stack.n_layers -= result.n_skipped_layers;
    set_layers(fields, with_rope(fields, block), result);
}

}  // namespace

/// The last rows of the token table are a picture's.
const Family families::mllama = {
    .types = kMllamaTypes, .names = kLlamaNames, .read = read_mllama, .n_further_tokens = 8};

}  // namespace fovea

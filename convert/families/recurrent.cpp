#include "convert/families/recurrent.h"

namespace fovea {

std::vector<bool> read_recurrent_layers(const Fields& fields, const std::string& recurrent, std::uint32_t n_layers) {
    const std::vector<std::string> types = fields.texts("layer_types");
    if (types.size() != n_layers) fields.refuse("layer_types", std::to_string(n_layers) + " of them");
    std::vector<bool> layers(n_layers);
    for (std::uint32_t i = 0; i < n_layers; ++i) {
        if (types[i] != recurrent && types[i] != "full_attention")
            fields.refuse("layer_types", "full_attention or " + recurrent);
        layers[i] = types[i] == recurrent;
    }
    return layers;
}

Block recurrent_block(Block block) {
    block.attention = {};
    block.attention.causal = true;
    block.recurrent = true;
    return block;
}

}  // namespace fovea

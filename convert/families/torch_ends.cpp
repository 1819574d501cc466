#include "convert/families/torch_ends.h"

#include <cmath>
#include <utility>

#include "engine/format/format.h"
#include "host/base/exact_math.h"

namespace fovea {
namespace {

float embedding_scale(const Fields& fields, std::uint32_t d_model) {
    const auto& json = fields.json();
    if (!fields.has("embedding_scale") || !json["embedding_scale"].is_string())
        return static_cast<float>(fields.number_or("embedding_scale", -1e30, 1e30, 1.0));
    if (fields.text("embedding_scale") != "sqrt") fields.refuse("embedding_scale", "a number or \"sqrt\"");
    return static_cast<float>(std::sqrt(static_cast<double>(d_model)));
}

Pooling pooling_of(const Fields& fields) {
    static constexpr std::pair<const char*, Pooling> kPoolings[] = {{"none", Pooling::none},
                                                                    {"mean", Pooling::mean},
                                                                    {"first", Pooling::first},
                                                                    {"last", Pooling::last},
                                                                    {"max", Pooling::max}};
    const std::string name = fields.text_or("pooling", "none");
    for (const auto& [known, pooling] : kPoolings)
        if (name == known) return pooling;
    fields.refuse("pooling", "none, mean, first, last or max");
}

}  // namespace

void read_torch_embedding(const Fields& fields, Stack& stack, TorchEnds& ends) {
    if (!fields.has("vocab_size")) return;
    stack.vocab_size = fields.count("vocab_size", 1, kMaxVocab);
    stack.embedding_scale = embedding_scale(fields, stack.d_model);
    ends.token_embedding = fields.text_or("token_embedding", "embedding.weight");
    const std::string positions = fields.text_or("positions", fields.has("position_embedding") ? "learned" : "none");
    if (positions != "none" && positions != "learned" && positions != "sinusoidal")
        fields.refuse("positions", "none, learned or sinusoidal");
    if (positions != "none" || fields.has("max_positions"))
        stack.max_positions = fields.count("max_positions", 1, kMaxPositions);
    if (positions == "none") return;
    stack.position = Position::learned;  // sines become a table like any other
    ends.sinusoidal = positions == "sinusoidal";
    if (!ends.sinusoidal) ends.position_embedding = fields.text_or("position_embedding", "position_embedding.weight");
}

void read_torch_output(const Fields& fields, Stack& stack, TorchEnds& ends) {
    if (!fields.has("output")) return;
    ends.output = fields.text("output");
    ends.output_bias = fields.text_or("output_bias", "");
    const bool bias = !ends.output_bias.empty();
    if (!fields.has("num_labels")) {
        if (!stack.vocab_size) fields.refuse("num_labels", "the rows of the output, for the stack has no vocab_size");
        stack.has_output_head = true;
        stack.tied_output = ends.output == ends.token_embedding;
        stack.output_bias = bias;
        return;
    }
    stack.pooling = pooling_of(fields);
    stack.head[0].width = fields.count("num_labels", 1, kMaxWidth);
    stack.head[0].bias = bias;
}

std::vector<float> sinusoids(std::uint32_t n_positions, std::uint32_t d_model) {
    std::vector<float> table(std::size_t{n_positions} * d_model);
    for (std::uint32_t pos = 0; pos < n_positions; ++pos)
        for (std::uint32_t i = 0; i < d_model; ++i) {
            const double angle = pos / std::pow(10000.0, static_cast<double>(i / 2 * 2) / d_model);
            table[std::size_t{pos} * d_model + i] = static_cast<float>(i % 2 ? std::cos(angle) : std::sin(angle));
        }
    return table;
}

std::vector<float> halved_sinusoids_after_two(std::uint32_t n_positions, std::uint32_t d_model) {
    const std::uint32_t half = d_model / 2;
    std::vector<float> table(std::size_t{n_positions} * d_model);
    const auto step = static_cast<float>(exact_log(10000.0) / (half - 1));
    for (std::uint32_t i = 0; i < half; ++i) {
        const auto frequency = static_cast<float>(exact_exp(static_cast<float>(i) * -step));
        for (std::uint32_t pos = 0; pos < n_positions; ++pos) {
            const float angle = static_cast<float>(pos + 2) * frequency;
            float* row = table.data() + std::size_t{pos} * d_model;
            row[i] = static_cast<float>(std::sin(static_cast<double>(angle)));
            row[half + i] = static_cast<float>(std::cos(static_cast<double>(angle)));
        }
    }
    return table;
}

}  // namespace fovea

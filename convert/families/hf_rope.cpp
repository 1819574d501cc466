#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "convert/families/reading.h"
#include "host/base/exact_math.h"

namespace fovea {
namespace {

constexpr double kLeastBase = 1.01, kMostBase = 1e30, kLeastFactor = 1e-3, kMostFactor = 1e6;

/// The object that holds the scaling, in either spelling; none if positions are not scaled. Beside settings by kind of layer the
/// older spelling is about full layers.
std::optional<Fields> scaling_of(const Fields& config, const char* layer_type) {
    std::optional<Fields> older, newer;
    for (auto& [name, found] : {std::pair("rope_scaling", &older), std::pair("rope_parameters", &newer)})
        if (config.has(name) && !config.object(name).json().empty()) *found = config.object(name);
    if (newer && layer_type && newer->has(layer_type)) {
        const Fields own = newer->object(layer_type);
        return older && std::string_view(layer_type) == "full_attention" ? older->or_else(own.json()) : own;
    }
    return older ? older : newer;
}

void read_yarn(const Fields& fields, std::uint32_t max_positions, Rope& rope) {
    rope.scaling = RopeScaling::yarn;
    rope.factor = fields.number_or("factor", kLeastFactor, kMostFactor, max_positions / rope.original_positions);
    rope.beta_fast = fields.number_or("beta_fast", 1e-3, 1e6, 32.0);
    rope.beta_slow = fields.number_or("beta_slow", 1e-3, 1e6, 1.0);
    rope.truncate = fields.flag_or("truncate", true);
    const double mscale = fields.number_or("mscale", 0.0, 1e3, 0.0);
    const double mscale_all_dim = fields.number_or("mscale_all_dim", 0.0, 1e3, 0.0);
    double factor = yarn_attention_factor(rope.factor, 1.0);
    if (mscale != 0.0 && mscale_all_dim != 0.0)
        factor = yarn_attention_factor(rope.factor, mscale) / yarn_attention_factor(rope.factor, mscale_all_dim);
    rope.attention_factor = static_cast<float>(fields.number_or("attention_factor", 1e-3, 1e3, factor));
}

void read_llama3(const Fields& fields, Rope& rope) {
    rope.scaling = RopeScaling::llama3;
    rope.factor = fields.number("factor", kLeastFactor, kMostFactor);
    rope.low_factor = fields.number("low_freq_factor", 1e-3, 1e6);
    rope.high_factor = fields.number("high_freq_factor", 1e-3, 1e6);
    if (rope.high_factor <= rope.low_factor) fields.refuse("high_freq_factor", "more than low_freq_factor");
}

std::vector<float> read_divisors(const Fields& fields, const char* name) {
    std::vector<float> divisors;
    if (!fields.has(name) || !fields.json()[name].is_array()) fields.refuse(name, "a list of numbers");
    for (const SortedJson& divisor : fields.json()[name]) {
        if (!divisor.is_number() || !(divisor.get<double>() > 0.0) || divisor.get<double>() > kMostFactor)
            fields.refuse(name, "numbers above 0");
        divisors.push_back(static_cast<float>(divisor.get<double>()));
    }
    return divisors;
}

/// Frequencies divided by one list up to the original length and by another beyond it (Ding et al. 2024).
void read_longrope(const Fields& fields, std::uint32_t max_positions, Rope& rope) {
    rope.scaling = RopeScaling::divided;
    rope.divisors = read_divisors(fields, "short_factor");
    if (max_positions > rope.original_positions) rope.long_divisors = read_divisors(fields, "long_factor");
    const double growth = max_positions / rope.original_positions;
    const double factor = fields.number_or("factor", kLeastFactor, kMostFactor, growth);
    const double scale = factor <= 1.0 ? 1.0 : std::sqrt(1.0 + exact_log(factor) / exact_log(rope.original_positions));
    rope.attention_factor = static_cast<float>(fields.number_or("attention_factor", 1e-3, 1e3, scale));
}

}  // namespace

Rope read_hf_rope(const Fields& config, const char* layer_type) {
    Rope rope;
    rope.base = config.number_or("rope_theta", kLeastBase, kMostBase, rope.base);
    const std::optional<Fields> fields = scaling_of(config, layer_type);
    if (!fields) return rope;
    rope.base = fields->number_or("rope_theta", kLeastBase, kMostBase, rope.base);
    for (const auto& [name, value] : fields->json().items())
        if (value.is_object()) fields->refuse(name, "one set of rotary settings for all layers");
    const std::uint32_t max_positions = config.count("max_position_embeddings");
    rope.original_positions = config.has("original_max_position_embeddings")
                                  ? config.count("original_max_position_embeddings")
                                  : fields->count_or("original_max_position_embeddings", max_positions);
    const std::string type = fields->text_or("rope_type", fields->text_or("type", "default"));
    if (type == "linear") {
        rope.scaling = RopeScaling::linear;
        rope.factor = fields->number("factor", kLeastFactor, kMostFactor);
    } else if (type == "yarn" && !fields->has("short_factor")) {  // else it is longrope by Phi-3's first name
        read_yarn(*fields, max_positions, rope);
    } else if (type == "llama3") {
        read_llama3(*fields, rope);
    } else if (type == "longrope" || type == "su" || type == "yarn") {
        read_longrope(*fields, max_positions, rope);
    } else if (type == "proportional") {
        rope.scaling = RopeScaling::proportional;
        rope.factor = fields->number_or("factor", kLeastFactor, kMostFactor, 1.0);
        rope.share = fields->number_or("partial_rotary_factor", 0.0, 1.0, 1.0);
    } else if (type != "default" && type != "dynamic" && type != "mrope") {
        // "dynamic" leaves the base as it is up to max_position_embeddings, where the file's positions end. "mrope" is the
        // older name of positions of three dimensions: read_hf_sections.
        fields->refuse(fields->has("rope_type") ? "rope_type" : "type",
                       "default, linear, dynamic, yarn, longrope, llama3 or proportional");
    }
    return rope;
}

void read_hf_sections(const Fields& config, const char* layer_type, Block& block) {
    const std::optional<Fields> fields = scaling_of(config, layer_type);
    if (!fields || !fields->has("mrope_section")) return;
    const std::uint32_t n = block.attention.rotary_dim / 2;
    const SortedJson& list = fields->json()["mrope_section"];
    std::vector<std::uint64_t> sections;
    if (list.is_array() && std::ranges::all_of(list, &SortedJson::is_number_unsigned)) list.get_to(sections);
    if (sections.size() != 3 || std::ranges::max(sections) > n || sections[0] + sections[1] + sections[2] != n)
        fields->refuse("mrope_section", "three numbers whose sum is " + std::to_string(n));
    // A token's three positions are one, so sections that the engine cannot have turn as ever. It refuses rows positions then.
    const std::uint64_t plane = sections[1];
    if (plane != sections[2] || plane > 255) return;
    block.attention.rope_plane = static_cast<std::uint8_t>(plane);
    const std::string model_type = config.text_or("model_type", "");
    const bool interleaves = model_type.starts_with("qwen3_vl") || model_type.starts_with("qwen3_5");
    block.attention.rope_interleaved = plane && fields->flag_or("mrope_interleaved", interleaves);
}

std::uint32_t read_hf_rotary_dim(const Fields& config, std::uint32_t head_dim, const char* layer_type,
                                 std::optional<double> part) {
    const std::optional<Fields> fields = scaling_of(config, layer_type);
    if (!part || (fields && fields->text_or("rope_type", "") == "proportional")) return head_dim;
    part = config.number_or("partial_rotary_factor", 0.0, 1.0, *part);
    if (fields) part = fields->number_or("partial_rotary_factor", 0.0, 1.0, *part);
    return static_cast<std::uint32_t>(head_dim * *part);
}

}  // namespace fovea

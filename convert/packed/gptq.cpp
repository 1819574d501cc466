// GPTQ's and AWQ's folders, as AutoGPTQ, GPTQModel and AutoAWQ write them: columns are rows there, words lie along columns.
#include <algorithm>
#include <cctype>
#include <string>

#include "convert/packed/integers.h"
#include "convert/packed/packed.h"
#include "host/base/words.h"

namespace fovea {
namespace {

/// 0 for −1, which stands for one group of all columns.
std::uint64_t read_group_size(const Fields& fields, const char* name) {
    const double size = fields.number(name, -1, 1 << 30);
    if (size == 0 || size != static_cast<double>(static_cast<std::int64_t>(size)))
        fields.refuse(name, "a whole number above 0, or -1");
    return size < 0 ? 0 : static_cast<std::uint64_t>(size);
}

struct Gptq {
    std::uint32_t bits = 4;
    std::uint64_t group_size = 0;
    bool zeros_less_one = true, ordered = false;
};

void unpack_gptq(const Gptq& gptq, PackedModule& module) {
    const SourceTensor& quants = module.find("qweight", {"I32"}, 2);
    const std::uint64_t n_words = quants.shape[0];
    IntegerMatrix m;
    m.n_rows = quants.shape[1];
    m.n_cols = n_words * 32 / gptq.bits;
    if (n_words * 32 % gptq.bits || m.n_rows * gptq.bits % 32)
        module.refuse("qweight", "expected whole words of numbers of " + std::to_string(gptq.bits) +
                                     " bits, got shape " + shape_words(quants.shape));
    m.n_groups = gptq.group_size ? div_up(m.n_cols, gptq.group_size) : 1;
    m.quants = {.data = quants.data, .bits = gptq.bits, .row_bytes = 4, .step = 4 * m.n_rows};
    const SourceTensor& zeros = module.find("qzeros", {"I32"}, 2);
    const std::uint64_t zero_words = m.n_rows * gptq.bits / 32;
    module.need_shape("qzeros", zeros, {m.n_groups, zero_words});
    m.zeros = {.data = zeros.data, .bits = gptq.bits, .other_bytes = 4 * zero_words, .along_rows = true};
    m.has_zeros = true;
    m.zeros_less_one = gptq.zeros_less_one;
    m.scales = module.find_factors("scales", {{m.n_groups, m.n_rows}}, true);
    if (gptq.ordered || module.peek("g_idx")) m.group_of = read_group_of(module, "g_idx", m.n_cols, m.n_groups);
    // Who did not order columns may have left the tensor as it was made, all zeros.
    const bool unset =
        !gptq.ordered && std::all_of(m.group_of.begin(), m.group_of.end(), [](std::uint32_t g) { return g == 0; });
    if (unset) m.group_of = groups_in_order(m.n_cols, gptq.group_size ? gptq.group_size : m.n_cols);
    const std::uint64_t n_rows = m.n_rows, n_cols = m.n_cols;
    module.replace(n_rows, n_cols, integer_matrix(std::move(m)));
}

void unpack_awq(std::uint64_t group_size, PackedModule& module) {
    constexpr std::uint64_t kInWord = 8;
    const SourceTensor& quants = module.find("qweight", {"I32"}, 2);
    const std::uint64_t n_words = quants.shape[1];
    IntegerMatrix m;
    m.n_rows = n_words * kInWord;
    m.n_cols = quants.shape[0];
    if (group_size && m.n_cols % group_size)
        module.refuse("qweight", "expected rows of whole groups of " + std::to_string(group_size) + ", got shape " +
                                     shape_words(quants.shape));
    m.n_groups = group_size ? m.n_cols / group_size : 1;
    m.quants = {.data = quants.data, .other_bytes = 4 * n_words, .along_rows = true, .interleaved = true};
    const SourceTensor& zeros = module.find("qzeros", {"I32"}, 2);
    module.need_shape("qzeros", zeros, {m.n_groups, n_words});
    m.zeros = {.data = zeros.data, .other_bytes = 4 * n_words, .along_rows = true, .interleaved = true};
    m.has_zeros = true;
    m.scales = module.find_factors("scales", {{m.n_groups, m.n_rows}}, true);
    m.group_of = groups_in_order(m.n_cols, group_size ? group_size : m.n_cols);
    const std::uint64_t n_rows = m.n_rows, n_cols = m.n_cols;
    module.replace(n_rows, n_cols, integer_matrix(std::move(m)));
}

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

}  // namespace

Quantization read_gptq(const Fields& fields) {
    Gptq gptq;
    gptq.bits = fields.count("bits", 2, 8);
    if (gptq.bits != 2 && gptq.bits != 3 && gptq.bits != 4 && gptq.bits != 8) fields.refuse("bits", "2, 3, 4 or 8");
    gptq.group_size = read_group_size(fields, "group_size");
    gptq.ordered = fields.flag_or("desc_act", false);
    const char* format = fields.has("checkpoint_format") ? "checkpoint_format" : "format";
    const std::string layout = fields.text_or(format, "gptq");
    if (layout != "gptq" && layout != "gptq_v2") fields.refuse(format, "gptq or gptq_v2");
    gptq.zeros_less_one = layout == "gptq";
    if (fields.flag_or("is_marlin_format", false)) fields.refuse("is_marlin_format", "false");
    if (fields.text_or("pack_dtype", "int32") != "int32") fields.refuse("pack_dtype", "int32");
    if (fields.has("dynamic")) {
        const Fields dynamic = fields.object("dynamic");  // patterns after "-:" name modules that are left as they are
        for (const auto& [pattern, settings] : dynamic.json().items())
            if (!pattern.starts_with("-:")) dynamic.refuse(pattern, "no settings of its own");
    }
    return {"gptq, " + std::to_string(gptq.bits) + " bits", [gptq](Safetensors& weights) {
                for_each_packed(weights, "qweight", "I32", [&](PackedModule& module) { unpack_gptq(gptq, module); });
            }};
}

Quantization read_awq(const Fields& fields) {
    const char* bits = fields.has("w_bit") ? "w_bit" : "bits";
    if (fields.count(bits, 1, 32) != 4) fields.refuse(bits, "4");
    const std::uint64_t group_size =
        read_group_size(fields, fields.has("q_group_size") ? "q_group_size" : "group_size");
    if (!fields.flag_or("zero_point", true)) fields.refuse("zero_point", "true");
    const char* format = fields.has("version") ? "version" : "format";
    if (lower(fields.text_or(format, "gemm")) != "gemm") fields.refuse(format, "gemm");
    return {"awq, 4 bits", [group_size](Safetensors& weights) {
                for_each_packed(weights, "qweight", "I32",
                                [&](PackedModule& module) { unpack_awq(group_size, module); });
            }};
}

}  // namespace fovea

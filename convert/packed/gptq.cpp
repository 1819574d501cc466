// GPTQ's and AWQ's folders, as AutoGPTQ, GPTQModel, AutoAWQ and AutoRound write them: columns are rows there, but for one layout of
// AutoAWQ's, and words lie along columns.
#include <algorithm>
#include <map>
#include <string>

#include "convert/packed/integers.h"
#include "convert/packed/packed.h"
#include "host/base/ascii.h"
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

/// There may be no zeros; then they are the middle, as quantizers that are symmetric store them too.
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
    m.has_zeros = module.peek("qzeros") != nullptr;
    if (m.has_zeros) {
        const SourceTensor& zeros = module.find("qzeros", {"I32"}, 2);
        module.need_shape("qzeros", zeros, {m.n_groups, n_words});
        m.zeros = {.data = zeros.data, .other_bytes = 4 * n_words, .along_rows = true, .interleaved = true};
    }
    m.scales = module.find_factors("scales", {{m.n_groups, m.n_rows}}, true);
    m.group_of = groups_in_order(m.n_cols, group_size ? group_size : m.n_cols);
    const std::uint64_t n_rows = m.n_rows, n_cols = m.n_cols;
    module.replace(n_rows, n_cols, integer_matrix(std::move(m)));
}

/// AutoAWQ's other layout: rows are rows, and those of zeros and scales are padded to whole words of what its kernel reads.
void unpack_awq_rows(std::uint64_t group_size, PackedModule& module) {
    constexpr std::uint64_t kInWord = 8;
    const SourceTensor& quants = module.find("qweight", {"I32"}, 2);
    IntegerMatrix m;
    m.n_rows = quants.shape[0];
    m.n_cols = quants.shape[1] * kInWord;
    const std::uint64_t of_group = group_size ? group_size : m.n_cols;
    m.n_groups = div_up(m.n_cols, of_group);
    m.quants = {.data = quants.data, .row_bytes = 4 * quants.shape[1]};
    const SourceTensor& zeros = module.find("qzeros", {"I32"}, 2);
    const std::uint64_t n_words = zeros.shape[1];
    if (zeros.shape[0] != m.n_rows || n_words < div_up(m.n_groups, kInWord) || n_words > m.n_cols)
        module.refuse("qzeros", "expected " + std::to_string(m.n_rows) + " rows of words for " +
                                    std::to_string(m.n_groups) + " groups, got " + shape_words(zeros.shape));
    m.zeros = {.data = zeros.data, .row_bytes = 4 * n_words};
    m.has_zeros = true;
    m.scales = module.find_factors("scales", {{m.n_rows, n_words * kInWord}});
    m.group_of = groups_in_order(m.n_cols, of_group);
    const std::uint64_t n_rows = m.n_rows, n_cols = m.n_cols;
    module.replace(n_rows, n_cols, integer_matrix(std::move(m)));
}

using Unpack = void (*)(std::uint64_t group_size, PackedModule& module);

Quantization awq_quantization(const char* name, std::uint64_t group_size, Unpack unpack) {
    return {name, [group_size, unpack](Safetensors& weights) {
                for_each_packed(weights, "qweight", "I32", [&](PackedModule& module) { unpack(group_size, module); });
            }};
}

std::uint32_t read_bits(const Fields& fields) {
    const std::uint32_t bits = fields.count("bits", 2, 8);
    if (bits != 2 && bits != 3 && bits != 4 && bits != 8) fields.refuse("bits", "2, 3, 4 or 8");
    return bits;
}

/// Settings of modules of their own, by their names; none of those that are left as they are.
std::map<std::string, Gptq> read_own_settings(const Fields& fields, const Gptq& of_all) {
    std::map<std::string, Gptq> own;
    if (!fields.has("extra_config")) return own;
    const Fields modules = fields.object("extra_config");
    for (const auto& [name, settings] : modules.json().items()) {
        const Fields of_module = modules.object(name.c_str());
        if (of_module.has("bits") && of_module.count("bits") >= 16) continue;
        if (name.find_first_of("*+[(\\^$|") != name.npos)
            modules.refuse(name, "a module's name, not a pattern of them");
        Gptq gptq = of_all;
        if (of_module.has("bits")) gptq.bits = read_bits(of_module);
        if (of_module.has("group_size")) gptq.group_size = read_group_size(of_module, "group_size");
        own.emplace(name, gptq);
    }
    return own;
}

}  // namespace

Quantization read_gptq(const Fields& fields) {
    Gptq gptq;
    gptq.bits = read_bits(fields);
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
    const char* format = fields.has("version") ? "version" : "format";
    const std::string layout = lower(fields.text_or(format, "gemm"));
    if (layout != "gemm" && layout != "gemv") fields.refuse(format, "gemm or gemv");
    return awq_quantization("awq, 4 bits", group_size, layout == "gemm" ? unpack_awq : unpack_awq_rows);
}

// Its own layouts are GPTQ's, with zeros as they are or, for AutoGPTQ's kernels, less one, or AWQ's.
Quantization read_auto_round(const Fields& fields) {
    if (fields.text_or("data_type", "int") != "int") fields.refuse("data_type", "int");
    if (fields.count_or("act_bits", 16) <= 8) fields.refuse("act_bits", "16");
    if (fields.has("rotation_config")) fields.refuse("rotation_config", "none");
    const char* format = fields.has("packing_format") ? "packing_format" : "backend";
    const std::string layout = fields.text_or(format, "auto_round:auto_gptq");
    if (!layout.starts_with("auto_round")) fields.refuse(format, "one that begins with auto_round");
    const std::string kind = layout.substr(layout.find_last_of(':') + 1);
    if (kind.find("fp") != kind.npos || kind == "llm_compressor")
        fields.refuse(format, "auto_round, auto_round:auto_gptq, auto_round:gptqmodel or auto_round:auto_awq");
    Gptq gptq;
    gptq.bits = read_bits(fields);
    gptq.group_size = read_group_size(fields, "group_size");
    gptq.zeros_less_one = kind == "auto_gptq" || kind == "gptq";
    if (kind.find("awq") != kind.npos) {
        if (gptq.bits != 4) fields.refuse("bits", "4");
        return awq_quantization("auto-round, 4 bits", gptq.group_size, unpack_awq);
    }
    const std::map<std::string, Gptq> own = read_own_settings(fields, gptq);
    return {"auto-round, " + std::to_string(gptq.bits) + " bits", [gptq, own](Safetensors& weights) {
                for_each_packed(weights, "qweight", "I32", [&](PackedModule& module) {
                    const auto found = own.find(module.name());
                    unpack_gptq(found == own.end() ? gptq : found->second, module);
                });
            }};
}

}  // namespace fovea

// fovea inspect: what a file holds, its checksums verified.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "host/base/json.h"
#include "host/base/words.h"
#include "host/model/listing.h"
#include "host/model/report.h"
#include "tools/options/opened.h"
#include "tools/options/options.h"
#include "tools/verbs/verbs.h"

namespace fovea {
namespace {

/// Bytes of the file's tensors by the parts that parameters are counted in.
struct PartBytes {
    std::uint64_t attention = 0, feed_forward = 0, embedding = 0, output = 0, rest = 0, total = 0;
};

bool is_feed_forward(std::string_view role) {
    return role == "up" || role == "down" || role == "router" || role.starts_with("expert_") ||
           role.starts_with("shared_");
}

PartBytes count_bytes(const Model& model) {
    PartBytes bytes;
    for (const TensorInfo& tensor : tensors(model)) {
        const std::string_view role = tensor.role, layout = tensor.layout;
        std::uint64_t& part = role == "output"                                                 ? bytes.output
                              : role.ends_with("_embedding") || role.ends_with("_convolution") ? bytes.embedding
                              : layout != "panels"                                             ? bytes.rest
                              : is_feed_forward(role)                                          ? bytes.feed_forward
                                                                                               : bytes.attention;
        part += tensor.bytes;
        bytes.total += tensor.bytes;
    }
    return bytes;
}

Json to_json(const ParameterCount& count) {
    return {{"query_head", count.query_head},
            {"key_head", count.key_head},
            {"value_head", count.value_head},
            {"output_head", count.output_head},
            {"head", count.head},
            {"layer_attention", count.layer_attention},
            {"layer_feed_forward", count.layer_feed_forward},
            {"attention", count.attention},
            {"feed_forward", count.feed_forward},
            {"embedding", count.embedding},
            {"output", count.output},
            {"biases_and_norms", count.biases_and_norms},
            {"total", count.total},
            {"idle_experts", count.idle_experts}};
}

Json to_json(const PartBytes& bytes) {
    return {{"attention", bytes.attention}, {"feed_forward", bytes.feed_forward},
            {"embedding", bytes.embedding}, {"output", bytes.output},
            {"rest", bytes.rest},           {"total", bytes.total}};
}

Json stack_to_json(const Stack& s) {
    Json object{{"n_layers", s.n_layers},           {"d_model", s.d_model},   {"vocab_size", s.vocab_size},
                {"max_positions", s.max_positions}, {"n_blocks", s.n_blocks}, {"tied_output", s.tied_output},
                {"blocks", Json::array()}};
    if (s.sound.is_speech())
        object["sound"] = {{"sample_rate", s.sound.sample_rate},
                           {"n_fft", s.sound.n_fft},
                           {"hop_length", s.sound.hop_length},
                           {"n_mels", s.sound.n_mels},
                           {"n_frames", s.sound.n_frames}};
    for (std::uint32_t i = 0; i < s.n_blocks; ++i) {
        const Block& b = s.blocks[i];
        object["blocks"].push_back({{"n_heads", b.attention.n_heads},
                                    {"n_kv_heads", b.attention.n_kv_heads},
                                    {"head_dim", b.attention.head_dim},
                                    {"value_head_dim", b.attention.value_head_dim},
                                    {"d_ff", b.feed.d_ff},
                                    {"n_experts", b.experts.n},
                                    {"n_experts_used", b.experts.n_used},
                                    {"shared_d_ff", b.experts.shared_d_ff},
                                    {"n_expert_groups", b.experts.n_groups},
                                    {"n_groups_used", b.experts.n_groups_used},
                                    {"query_rank", b.latent.query_rank},
                                    {"latent_query_dim", b.latent.query_dim},
                                    {"latent_value_dim", b.latent.value_dim},
                                    {"window", b.attention.window},
                                    {"rotary_dim", b.attention.rotary_dim},
                                    {"causal", b.attention.causal},
                                    {"gated", b.feed.gated},
                                    {"column_scales", b.column_scales}});
    }
    return object;
}

void print_json(const host::Opened& opened) {
    const Model& model = opened.model;
    const Config& config = model.config();
    Json object{{"file", opened.name},
                {"file_bytes", model.bytes().size()},
                {"name", model.info().name},
                {"architecture", model.info().architecture},
                {"fingerprint", model.fingerprint()},
                {"numerics_version", kNumericsVersion},
                {"checksums", "verified"}};
    if (config.encoder.n_layers) object["encoder"] = stack_to_json(config.encoder);
    if (config.decoder.n_layers) object["decoder"] = stack_to_json(config.decoder);
    object["parameters"] = to_json(count_parameters(config));
    object["bytes"] = to_json(count_bytes(model));
    object["sections"] = Json::array();
    for (const SectionInfo& s : sections(model)) {
        object["sections"].push_back({{"kind", s.kind}, {"offset", s.offset}, {"bytes", s.bytes}, {"crc32c", s.crc}});
    }
    object["tensors"] = Json::array();
    for (const TensorInfo& t : tensors(model)) {
        object["tensors"].push_back({{"stack", t.in_encoder ? "encoder" : "decoder"},
                                     {"layer", t.layer},
                                     {"role", t.role},
                                     {"layout", t.layout},
                                     {"type", type_name(t.type)},
                                     {"shape", {t.n_rows, t.n_cols}},
                                     {"offset", t.offset},
                                     {"bytes", t.bytes}});
    }
    std::printf("%s\n", json_text(object).c_str());
}

void print_bytes(const PartBytes& bytes) {
    const auto row = [](const char* name, std::uint64_t n) {
        std::printf("  %-30s %20s\n", name, with_separators(n).c_str());
    };
    std::printf("\nbytes of weights, padding included\n");
    row("attention", bytes.attention);
    row("feed-forward parts", bytes.feed_forward);
    row("embeddings", bytes.embedding);
    row("output head", bytes.output);
    row("biases, norms, frequencies", bytes.rest);
    row("total", bytes.total);
}

void print_sections(const Model& model) {
    std::printf("\n%-12s %16s %16s  crc-32c\n", "section", "offset", "bytes");
    for (const SectionInfo& s : sections(model)) {
        std::printf("%-12s %16s %16s  %08x verified\n", s.kind, with_separators(s.offset).c_str(),
                    with_separators(s.bytes).c_str(), s.crc);
    }
}

void print_tensors(const Model& model) {
    std::printf("\n%-5s %-26s %-7s %-5s %20s %16s %16s\n", "layer", "tensor", "layout", "type", "shape", "offset",
                "bytes");
    for (const TensorInfo& t : tensors(model)) {
        const std::string shape = std::to_string(t.n_rows) + " x " + std::to_string(t.n_cols);
        const std::string role = (t.in_encoder ? "encoder " : "") + std::string(t.role);
        std::printf("%5u %-26s %-7s %-5s %20s %16s %16s\n", t.layer, role.c_str(), t.layout, type_name(t.type),
                    shape.c_str(), with_separators(t.offset).c_str(), with_separators(t.bytes).c_str());
    }
}

void inspect(const std::string& path, CommonOptions& common) {
    need_model(path);
    settle(common);
    const host::Opened opened = open_path(path, {.verify_checksums = true});
    const Model& model = opened.model;
    if (common.json) return print_json(opened);
    std::printf("%s: %s, %s bytes, fingerprint %08x, numerics version %u\n", one_line(opened.name).c_str(),
                one_line(model.info().architecture).c_str(), with_separators(model.bytes().size()).c_str(),
                model.fingerprint(), kNumericsVersion);
    std::printf("%s\n%s", describe_config(model.config()).c_str(),
                describe_parameters(count_parameters(model.config()), model.config()).c_str());
    print_bytes(count_bytes(model));
    print_sections(model);
    print_tensors(model);
}

}  // namespace

void add_inspect(CLI::App& app) {
    auto model = std::make_shared<std::string>();
    auto common = std::make_shared<CommonOptions>();
    CLI::App& verb = add_verb(app, "inspect", "What a file holds; verifies its checksums");
    add_model(verb, *model);
    add_common(verb, *common);
    set_action(verb, [model, common] { inspect(*model, *common); });
}

}  // namespace fovea

// fovea inspect: what a file holds, its checksums verified.
#include <array>
#include <string_view>

#include "host/model/listing.h"
#include "host/model/report.h"
#include "tools/verbs/verb.h"

namespace fovea {
namespace {

struct InspectOptions {
    CommonOptions common;
    std::string model;
};

/// Bytes of the file's tensors by the parts that parameters are counted in; the last is their sum.
struct PartBytes {
    const char *key, *name;
    std::uint64_t bytes = 0;
};
using AllBytes = std::array<PartBytes, 6>;

bool is_feed_forward(std::string_view role) {
    return role == "up" || role == "down" || role == "router" || role.starts_with("expert_") ||
           role.starts_with("shared_");
}

AllBytes count_bytes(const Model& model) {
    enum { kAttention, kFeedForward, kEmbedding, kOutput, kRest, kTotal };
    AllBytes all{{{"attention", "attention"},
                  {"feed_forward", "feed-forward parts"},
                  {"embedding", "embeddings"},
                  {"output", "output head"},
                  {"rest", "biases, norms, frequencies"},
                  {"total", "total"}}};
    for (const TensorInfo& tensor : tensors(model)) {
        const std::string_view role = tensor.role, layout = tensor.layout;
        const int part = role == "output"                                                 ? kOutput
                         : role.ends_with("_embedding") || role.ends_with("_convolution") ? kEmbedding
                         : layout != "panels"                                             ? kRest
                         : is_feed_forward(role)                                          ? kFeedForward
                                                                                          : kAttention;
        all[part].bytes += tensor.bytes;
        all[kTotal].bytes += tensor.bytes;
    }
    return all;
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
            {"idle_experts", count.idle_experts},
            {"recurrent", count.recurrent}};
}

Json stack_to_json(const Stack& s) {
    Json object{{"n_layers", s.n_layers},           {"d_model", s.d_model},   {"vocab_size", s.vocab_size},
                {"max_positions", s.max_positions}, {"n_blocks", s.n_blocks}, {"tied_output", s.tied_output},
                {"blocks", Json::array()}};
    if (const RecurrentShape& r = s.recurrent; r.kind != Recurrence::none)
        object["recurrent"] = {{"recurrence", recurrence_name(r.kind)},
                               {"n_heads", r.n_heads},
                               {"n_key_heads", r.n_key_heads},
                               {"key_dim", r.key_dim},
                               {"value_dim", r.value_dim},
                               {"n_taps", r.n_taps}};
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
                                    {"column_scales", b.column_scales},
                                    {"recurrent", b.recurrent}});
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
    if (const std::string_view sampling = find_info(model, "sampling"); !sampling.empty())
        object["sampling"] = read_json(sampling);
    if (config.encoder.n_layers) object["encoder"] = stack_to_json(config.encoder);
    if (config.decoder.n_layers) object["decoder"] = stack_to_json(config.decoder);
    object["parameters"] = to_json(count_parameters(config));
    for (const PartBytes& part : count_bytes(model)) object["bytes"][part.key] = part.bytes;
    object["sections"] = Json::array();
    for (const SectionInfo& s : sections(model))
        object["sections"].push_back({{"kind", s.kind}, {"offset", s.offset}, {"bytes", s.bytes}, {"crc32c", s.crc}});
    object["tensors"] = Json::array();
    for (const TensorInfo& t : tensors(model))
        object["tensors"].push_back({{"stack", t.in_encoder ? "encoder" : "decoder"},
                                     {"layer", t.layer},
                                     {"role", t.role},
                                     {"layout", t.layout},
                                     {"type", type_name(t.type)},
                                     {"shape", {t.n_rows, t.n_cols}},
                                     {"offset", t.offset},
                                     {"bytes", t.bytes}});
    print_line(object);
}

void print_sections(const Model& model) {
    std::printf("\n%-12s %16s %16s  crc-32c\n", "section", "offset", "bytes");
    for (const SectionInfo& s : sections(model))
        std::printf("%-12s %16s %16s  %08x verified\n", s.kind, with_separators(s.offset).c_str(),
                    with_separators(s.bytes).c_str(), s.crc);
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

void inspect(InspectOptions& options) {
    need_model(options.model);
    settle(options.common);
    const host::Opened opened = open_path(options.model, {.verify_checksums = true});
    const Model& model = opened.model;
    if (options.common.json) return print_json(opened);
    std::printf("%s: %s, %s bytes, fingerprint %08x, numerics version %u\n", one_line(opened.name).c_str(),
                one_line(model.info().architecture).c_str(), with_separators(model.bytes().size()).c_str(),
                model.fingerprint(), kNumericsVersion);
    if (const std::string_view sampling = find_info(model, "sampling"); !sampling.empty())
        std::printf("chats sample by %s\n", one_line(sampling).c_str());
    std::printf("%s\n%s", describe_config(model.config()).c_str(),
                describe_parameters(count_parameters(model.config()), model.config()).c_str());
    std::printf("\nbytes of weights, padding included\n");
    for (const PartBytes& part : count_bytes(model))
        std::printf("  %-30s %20s\n", part.name, with_separators(part.bytes).c_str());
    print_sections(model);
    print_tensors(model);
}

}  // namespace

void add_inspect(CLI::App& app) {
    const auto declare = [](const Verb& verb, InspectOptions& o) {
        verb.model(o.model);
        verb.common(o.common);
    };
    add_verb<InspectOptions>(app, "inspect", "What a file holds; verifies its checksums", inspect, declare);
}

}  // namespace fovea

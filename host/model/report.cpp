#include "host/model/report.h"

#include <cstdio>
#include <sstream>
#include <vector>

#include "host/base/words.h"
#include "host/model/stacks.h"

namespace fovea {

const char* recurrence_name(Recurrence kind) {
    switch (kind) {
        case Recurrence::none: break;
        case Recurrence::convolution: return "gated short convolution";
        case Recurrence::state_space: return "state space (Mamba-2)";
        case Recurrence::delta: return "gated delta rule";
        case Recurrence::selective: return "selective state space (Mamba)";
        case Recurrence::delta_by_dim: return "delta rule by dims";
    }
    return "unknown recurrence";
}

namespace {

const char* word(Norm norm) {
    switch (norm) {
        case Norm::none: return "no norm";
        case Norm::layer: return "layer norm";
        case Norm::rms: return "RMS norm";
    }
    return "unknown norm";
}

const char* word(NormPlace place) {
    switch (place) {
        case NormPlace::pre: return "before";
        case NormPlace::post: return "after";
        case NormPlace::both: return "before and after";
        case NormPlace::output: return "of the output of";
        case NormPlace::within: return "before and within";
    }
    return "unknown";
}

const char* word(Position position) {
    switch (position) {
        case Position::none: return "no positions";
        case Position::learned: return "learned positions";
        case Position::sinusoidal: return "sinusoidal positions";
        case Position::rope: return "rotary positions";
        case Position::relative: return "relative positions";
        case Position::alibi: return "ALiBi";
        case Position::disentangled: return "disentangled positions";
    }
    return "unknown positions";
}

const char* word(Activation activation) {
    switch (activation) {
        case Activation::none: return "no activation";
        case Activation::relu: return "ReLU";
        case Activation::gelu: return "GELU";
        case Activation::gelu_tanh: return "GELU (tanh)";
        case Activation::silu: return "SiLU";
        case Activation::tanh: return "tanh";
        case Activation::silu_clamped: return "SiLU (clamped)";
        case Activation::relu2: return "squared ReLU";
        case Activation::quick_gelu: return "GELU (sigmoid)";
        case Activation::sigmoid: return "sigmoid";
        case Activation::softplus: return "softplus";
    }
    return "unknown activation";
}

std::string plural(std::uint64_t n, const char* one, const char* many) {
    return with_separators(n) + " " + (n == 1 ? one : many);
}

const char* place_of_recurrence(const Block& b) {
    if (b.inputs.joins_embedding) return "behind attention to embeddings too";
    return b.attention.n_heads ? "beside attention" : "in place of attention";
}

void describe_block(std::ostream& out, const Block& b) {
    const AttentionShape& a = b.attention;
    const ExpertShape& e = b.experts;
    if (a.n_heads) {
        out << "    attention     " << plural(a.n_heads, "query head", "query heads") << " and "
            << plural(a.n_kv_heads, "key-value head", "key-value heads") << " of " << a.head_dim;
        if (a.value_head_dim != a.head_dim) out << ", values of " << a.value_head_dim;
        if (b.latent.query_dim)
            out << ", latent: heads of " << a.rotary_dim + b.latent.query_dim << ", values of " << b.latent.value_dim;
        if (b.latent.query_rank) out << ", queries through " << with_separators(b.latent.query_rank);
        out << (a.causal ? ", causal" : ", unmasked");
        if (a.window) out << ", window " << with_separators(a.window) << (a.chunked ? " in chunks" : "");
        if (a.position != Position::none) out << ", " << word(a.position);
        if (a.position == Position::rope && a.rotary_dim != a.head_dim) out << " on " << a.rotary_dim << " dims";
        if (a.query_bias || a.key_bias || a.value_bias) out << ", biases";
        if (a.query_key_norm != Norm::none) out << ", " << word(a.query_key_norm) << " of queries and keys";
        if (a.norm_turned) out << " when turned";
        if (a.head_norm == HeadNorm::each) out << " each";
        if (a.head_norm == HeadNorm::together) out << " together";
        if (a.value_norm) out << ", RMS norm of values";
        if (a.shared_keys) out << ", keys and values of an earlier layer";
        if (a.projection_clip != 0.0f) out << ", projections clipped at " << a.projection_clip;
        if (a.attention_sinks) out << ", sinks";
        if (a.query_growth != 0.0f) out << ", queries that grow every " << with_separators(a.growth_period);
        const bool by_softplus =
            a.output_gate == OutputGate::softplus || a.output_gate == OutputGate::softplus_of_heads;
        if (a.output_gate != OutputGate::none) out << ", output gated" << (by_softplus ? " by softplus" : "");
        if (a.score_softcap != 0.0f) out << ", scores capped at " << a.score_softcap;
        if (a.cross_attention) out << ", cross-attention";
        out << "\n";
    }
    if (b.recurrent) out << "    recurrent     " << place_of_recurrence(b) << "\n";
    if (e.n) {
        out << "    experts       " << with_separators(e.n_used) << " of " << with_separators(e.n) << " for each token"
            << (e.normalize ? ", weights normalized" : "")
            << (e.router_score == RouterScore::sigmoid ? ", scored by sigmoids" : "")
            << (e.router_score == RouterScore::sparse_mixer ? ", scored one by one" : "")
            << (e.weigh_inputs ? ", inputs weighted" : "") << (e.own_norms ? ", normed apart" : "")
            << (e.choice_bias ? ", a bias for the choice" : "");
        if (e.n_groups) out << ", in " << e.n_groups_used << " of " << e.n_groups << " groups";
        if (e.routed_scale != 0.0f) out << ", weights times " << e.routed_scale;
        if (e.shared_d_ff)
            out << ", one shared of " << with_separators(e.shared_d_ff) << (e.shared_gate ? " with a gate" : "");
        out << "\n";
    }
    if (b.feed.d_ff)
        out << "    feed-forward  " << with_separators(b.feed.d_ff) << " wide, "
            << (b.feed.xielu ? "xIELU" : word(b.feed.activation)) << (b.feed.gated ? ", gated" : "")
            << (b.feed.up_bias || b.feed.down_bias ? ", biases" : "") << "\n";
    if (b.inputs.width) out << "    layer inputs  " << with_separators(b.inputs.width) << " numbers of each token\n";
    if (b.column_scales) out << "    inputs        columns scaled before they are quantized\n";
    out << "    norm          " << word(b.norm);
    if (b.norm != Norm::none) out << " " << word(b.norm_place) << " each part, epsilon " << b.norm_epsilon;
    if (b.feed.parallel) out << ", parts in parallel" << (b.feed.shared_norm ? " with one norm" : "");
    if (b.residual_scale != 0.0f) out << ", parts times " << b.residual_scale;
    if (b.inputs.layer_scale) out << ", layers times a learned number";
    out << "\n";
}

void describe_stack(std::ostream& out, const char* name, const Stack& s) {
    if (!s.n_layers) return;
    out << name << ": " << plural(s.n_layers, "layer", "layers") << ", d_model " << with_separators(s.d_model)
        << ", vocabulary " << with_separators(s.vocab_size) << ", " << plural(s.max_positions, "position", "positions");
    if (s.rope_original_positions)
        out << ", other frequencies with a context above " << with_separators(s.rope_original_positions);
    out << "\n";
    for (std::uint32_t i = 0; i < s.n_blocks; ++i) {
        if (s.n_blocks > 1) out << "  block " << i << "\n";
        describe_block(out, s.blocks[i]);
    }
    if (const RecurrentShape& r = s.recurrent; r.kind != Recurrence::none) {
        out << "    recurrent     " << recurrence_name(r.kind) << ", " << plural(r.n_taps, "tap", "taps");
        if (r.has_states())
            out << ", " << plural(r.n_heads, "state", "states") << " of " << r.key_dim << " by " << r.value_dim << ", "
                << plural(r.n_key_heads, "key head", "key heads");
        out << "\n";
    }
    if (s.sound.is_speech())
        out << "    sound         " << with_separators(s.sound.sample_rate) << " samples a second, windows of "
            << with_separators(s.sound.n_fft) << " every " << with_separators(s.sound.hop_length) << ", "
            << with_separators(s.sound.n_mels) << " mel filters, " << with_separators(s.sound.n_frames) << " frames\n";
    out << "    input         "
        << (s.vocab_size          ? "embeddings"
            : s.sound.is_speech() ? "a row of two frames"
                                  : "vectors");
    if (s.embedding_scale != 1.0f) out << " times " << s.embedding_scale;
    if (s.position != Position::none) out << ", " << word(s.position);
    if (s.embedding_norm != Norm::none) out << ", " << word(s.embedding_norm);
    if (s.embedding_width) out << ", a map from " << with_separators(s.embedding_width);
    if (s.joins_rows) out << ", a map of each beside the model's vector of the token before";
    out << "\n    output        " << word(s.final_norm);
    static constexpr const char* kPooled[] = {"",
                                              ", the mean of all rows",
                                              ", the first row",
                                              ", the last row",
                                              ", each element's largest",
                                              ", a mean that weighs later rows more",
                                              ", the sum over the square root of the length"};
    out << kPooled[static_cast<std::size_t>(s.pooling)];
    for (std::uint32_t i = 0; i < s.n_head_maps(); ++i) {
        out << ", a map to " << with_separators(s.head[i].width);
        if (s.head[i].activation != Activation::none) out << " with " << word(s.head[i].activation);
        if (s.head[i].norm != Norm::none) out << " and " << word(s.head[i].norm);
    }
    if (s.has_output_head) out << (s.tied_output ? ", head tied to the embedding" : ", head of its own");
    if (s.logit_scale != 1.0f) out << ", logits times " << s.logit_scale;
    if (s.logit_softcap != 0.0f) out << ", logits capped at " << s.logit_softcap;
    out << (s.normalize_pooled ? ", normalized" : "") << "\n";
}

void row(std::ostream& out, const char* name, std::uint64_t n, const char* note = "") {
    char line[160];
    std::snprintf(line, sizeof line, "  %-30s %20s%s\n", name, with_separators(n).c_str(), note);
    out << line;
}

void share_row(std::ostream& out, const char* name, std::uint64_t n, std::uint64_t whole) {
    char share[32];
    const double part = whole ? 100.0 * static_cast<double>(n) / static_cast<double>(whole) : 0.0;
    std::snprintf(share, sizeof share, "  %5.1f %%", part);
    row(out, name, n, share);
}

/// A layer's maps as the file has them. How many heads share their rows changes none of it.
void attention_rows(std::ostream& out, const Stack& stack, const Block& b) {
    const auto or_model = [&](std::uint32_t width) { return width ? width : stack.d_model; };
    struct Map {
        const char* name;
        std::uint64_t n_rows, n_cols;
        bool bias;
    };
    std::vector<Map> maps = {{"queries", std::uint64_t{b.attention.n_heads} * b.attention.head_dim,
                              or_model(b.attention.query_width), b.attention.query_bias},
                             {"keys", std::uint64_t{b.attention.n_kv_heads} * b.attention.head_dim,
                              or_model(b.attention.key_width), b.attention.key_bias},
                             {"values", std::uint64_t{b.attention.n_kv_heads} * b.attention.value_head_dim,
                              or_model(b.attention.value_width), b.attention.value_bias}};
    const auto joins = [&](const Map& m) { return m.n_cols == maps[0].n_cols && m.bias == maps[0].bias; };
    if (joins(maps[1]) && joins(maps[2]))
        maps = {{"queries, keys and values", maps[0].n_rows + maps[1].n_rows + maps[2].n_rows, maps[0].n_cols,
                 maps[0].bias}};
    if (b.attention.has_output_map)
        maps.push_back({"output map", or_model(b.attention.output_width),
                        std::uint64_t{b.attention.n_heads} * b.attention.value_head_dim, b.attention.output_bias});
    out << "a layer's attention, the same for any number of heads that share these widths\n";
    for (const Map& m : maps) {
        const std::string shape = with_separators(m.n_rows) + " x " + with_separators(m.n_cols);
        char line[120];
        std::snprintf(line, sizeof line, "  %-30s %20s%s\n", m.name, shape.c_str(),
                      m.bias ? (", and " + with_separators(m.n_rows) + " biases").c_str() : "");
        out << line;
    }
}

}  // namespace

std::string describe_config(const Config& config) {
    std::ostringstream out;
    describe_stack(out, "encoder", config.encoder);
    describe_stack(out, "decoder", config.decoder);
    return out.str();
}

std::string describe_parameters(const ParameterCount& count, const Config& config) {
    const Stack& stack = output_stack(config);
    const Block& first = stack.block(0);
    std::ostringstream out;
    if (first.attention.n_heads) attention_rows(out, stack, first);
    out << "parameters: matrices only, biases and norms apart\n";
    if (first.attention.n_heads) {
        row(out, "a head's query map", count.query_head);
        row(out, "a head's key map", count.key_head);
        row(out, "a head's value-down map", count.value_head);
        row(out, "a head's value-up map", count.output_head);
        row(out, "a head", count.head);
        row(out, "a value map that is not factored", count.unfactored_value);
        const std::string heads = "  (" + plural(first.attention.n_heads, "query head", "query heads") + ", " +
                                  plural(first.attention.n_kv_heads, "key-value head", "key-value heads") + ")";
        row(out, "a layer's attention", count.layer_attention, heads.c_str());
    }
    row(out, "a layer's feed-forward part", count.layer_feed_forward);
    share_row(out, "all attention", count.attention, count.total);
    if (count.recurrent) share_row(out, "all recurrent parts", count.recurrent, count.total);
    share_row(out, "all feed-forward parts", count.feed_forward, count.total);
    share_row(out, "embeddings", count.embedding, count.total);
    share_row(out, "output head", count.output, count.total);
    share_row(out, "biases and norms", count.biases_and_norms, count.total);
    row(out, "total", count.total);
    if (count.idle_experts) row(out, "of those for each token", count.total - count.idle_experts);
    return out.str();
}

}  // namespace fovea

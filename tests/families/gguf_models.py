"""Random models as GGUF files, as llama.cpp's converter lays them out: what a sweep compares with the folder they come from.

Needs gguf, torch and transformers. Shapes are those of gguf_shapes.py.
"""
import json

import gguf
import gguf_next_head
import gguf_recurrent
import numpy
from safetensors.torch import load_file

ARCHITECTURES = {"gemma3_text": "gemma3", "gemma4_text": "gemma4", "phi": "phi2", "gpt_neox": "gptneox", "cohere": "command-r",
                 "mixtral": "llama", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "gpt_oss": "gpt-oss",
                 "glm": "chatglm", "olmo3": "olmo2", "deepseek_v2": "deepseek2", "deepseek_v3": "deepseek2",
                 "qwen2_vl_text": "qwen2vl", "qwen2_5_vl_text": "qwen2vl", "qwen3_vl_text": "qwen3vl",
                 "glm4v_text": "glm4", "ministral3": "mistral3", "gpt_bigcode": "starcoder",
                 "glm4_moe": "glm4moe", "ernie4_5_moe": "ernie4_5-moe", "exaone_moe": "exaone-moe", "minimax_m2": "minimax-m2",
                 "granitemoeshared": "granitemoe", "granitemoehybrid": "granitemoe", "qwen3_vl_moe_text": "qwen3vlmoe",
                 "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe", "qwen3_next": "qwen3next", "lfm2_moe": "lfm2moe",
                 "falcon_mamba": "mamba", "falcon_h1": "falcon-h1",
                 "glm4_moe_lite": "deepseek2", "hunyuan_v1_dense": "hunyuan-dense", "hunyuan_v1_moe": "hunyuan-moe",
                 "llama4_text": "llama4", "kimi_linear": "kimi-linear", "mimo_v2_flash": "mimo2"}
# Query and key rows of halves become adjacent pairs.
PERMUTED = ("llama", "arcee", "olmo", "granite", "smollm3", "mistral3", "internlm2", "xverse", "baichuan", "minicpm",
            "granitemoe", "granitehybrid")
ROUTED = ("glm4_moe", "dots1", "exaone_moe", "minimax_m2", "afmoe", "mimo_v2_flash")  # as DeepSeek 3
LATENT = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "minicpm3", "kimi_linear")
APART = ("deepseek_v3", "glm4_moe_lite", "kimi_linear")  # keys' and values' maps, and widths of heads beside those of what is cached
GEMMA4_EXPERTS = {"gate_up_proj": "ffn_gate_up_exps.weight", "down_proj": "ffn_down_exps.weight", "scale": "ffn_gate_inp.scale",
                  "per_expert_scale": "ffn_down_exps.scale", "weight": "ffn_gate_inp.weight"}
EXPERT_PARTS = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}  # Mixtral's words for them


def permuted(weight, n_heads):
    half = weight.shape[0] // n_heads // 2
    return weight.reshape(n_heads, 2, half, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def stacked(weight, n_heads, n_kv_heads):
    """Queries, keys and values one below the other, from groups of them."""
    per_group = n_heads // n_kv_heads + 2
    head_dim = weight.shape[0] // (n_kv_heads * per_group)
    groups = weight.reshape(n_kv_heads, per_group, head_dim, *weight.shape[1:])
    parts = (groups[:, :-2], groups[:, -2], groups[:, -1])
    return numpy.concatenate([part.reshape(-1, *weight.shape[1:]) for part in parts])


def of_packed_experts(name, tensor):
    """(name, array) of gpt-oss' experts: a gate and an `up` of their own, rows before columns; blocks of four bits as bytes."""
    layer, part = name.split(".")[2], name.split(".experts.")[1]
    suffix = "bias" if part.endswith("_bias") else "weight"
    if not part.endswith(("_bias", "_blocks")):
        tensor = tensor.swapaxes(1, 2)  # columns come first
    parts = {"down": tensor} if part.startswith("down") else {"gate": tensor[:, ::2], "up": tensor[:, 1::2]}
    for of, array in parts.items():
        yield f"blk.{layer}.ffn_{of}_exps.{suffix}", array


def of_fused(name, weight, config):
    """(name, array) of a gate above an `up`, or of what comes after them: of all experts or of a shared one."""
    layer, shared = name.split(".")[2], "shared_mlp" in name
    ending = "exps" if not shared else "shexp" if config["num_local_experts"] else None
    parts = {"down": weight}
    if "down_proj" not in name and "output_linear" not in name:
        parts = dict(zip(("gate", "up"), numpy.split(weight, 2, axis=-2)))
    for of, array in parts.items():
        yield f"blk.{layer}.ffn_{of}{'_' + ending if ending else ''}.weight", array


def mxfp4_blocks(blocks, scales):
    """ggml's: an exponent, then column j and, in the high bits, column j + 16."""
    quants = numpy.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
    bytes_of = numpy.concatenate([scales[..., None], quants[..., :16] | quants[..., 16:] << 4], -1)
    return bytes_of.reshape(*bytes_of.shape[:-2], -1)


def halved(weight, n_heads, turning):
    """The first `turning` rows of each head, of which adjacent ones turn together, as halves that do."""
    heads = weight.reshape(n_heads, -1, *weight.shape[1:])
    turned = numpy.concatenate([heads[:, :turning:2], heads[:, 1:turning:2]], axis=1)
    return numpy.concatenate([turned, heads[:, turning:]], axis=1).reshape(weight.shape)


def fused(pairs):
    """The pairs, those of queries, keys and values as one tensor."""
    parts = {}
    for name, weight in pairs:
        layer, _, rest = name.partition(".attn_")
        if rest[:1] in "qkv" and rest[1:2] == ".":
            parts[layer, rest[2:], rest[0]] = weight
        else:
            yield name, weight
    for layer, suffix in sorted({key[:2] for key in parts}):
        yield f"{layer}.attn_qkv.{suffix}", numpy.concatenate([parts[layer, suffix, part] for part in "qkv"])


def converted_tensors(config, folder, architecture, alone=False):
    """(name, array) of every tensor of the folder as the file has it; with `alone` as once: each expert has its own."""
    kind = config["model_type"]
    n_layers = gguf_recurrent.n_layers(config)
    n_heads = next((config[k] for k in ("num_attention_heads", "n_head", "n_heads") if k in config), 0)
    n_kv_heads = config.get("num_key_value_heads", n_heads)
    if kind == "falcon":
        n_kv_heads = config["num_kv_heads"] if config["new_decoder_architecture"] else 1
    # The architecture's names, of which others are a part, but for those of Ling.
    with_own = "bailingmoe2", "granitehybrid", "nemotron_h_moe"
    own = architecture if architecture in with_own else ARCHITECTURES.get(kind, kind)
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == own), n_layers + 1)
    heads, experts = {}, {}
    saved = load_file(folder / "model.safetensors")
    for name, tensor in saved.items():
        if name.endswith("_scales") or "visual" in name or ".act_fn." in name:
            continue
        name = gguf_next_head.plain(name.replace("language_model.", ""), n_layers)
        if name.endswith("_blocks"):
            scales = saved[name.removesuffix("_blocks") + "_scales"]
            yield from of_packed_experts(name, mxfp4_blocks(tensor.numpy(), scales.numpy()))
            continue
        weight = tensor.float().numpy()
        if kind == "gpt_oss" and ".experts." in name:
            yield from of_packed_experts(name, weight)
            continue
        if kind == "gemma4_text" and (".experts." in name or ".router." in name):
            yield f"blk.{name.split('.')[2]}.{GEMMA4_EXPERTS[name.split('.')[-1]]}", weight
            continue
        if name.endswith((".gate_up_proj", ".down_proj", ".input_linear.weight", ".output_linear.weight")):
            yield from of_fused(name, weight.swapaxes(1, 2) if kind in ("qwen3_vl_moe_text", "llama4_text") else weight, config)
            continue
        if kind == "dbrx" and ".experts." in name:
            each = weight.reshape(config["ffn_config"]["moe_num_experts"], -1, config["d_model"])
            name, weight = name + ".weight", each.swapaxes(1, 2) if name.endswith("w2") else each
        *others, (name, weight) = gguf_recurrent.converted(name, weight, config, alone)
        for other, array in others:
            yield names.get_name(other, try_suffixes=(".weight",)), array
        if name.endswith((".sinks", ".layer_scalar", ".attention_sink_bias")):
            name += ".weight"
        if ".norms." in name:  # a tensor a head
            start, rest = name.split(".norms.")
            heads.setdefault(start, {})[int(rest.split(".")[0])] = weight
            continue
        if ".experts." in name and kind != "dbrx":  # a tensor an expert
            start, number, part, _ = name.replace("block_sparse_moe", "mlp").rsplit(".", 3)
            start = start.removesuffix(".experts") if part.startswith("ffn_") else start
            experts.setdefault(f"{start}.{EXPERT_PARTS.get(part, part)}", {})[int(number)] = weight
            continue
        if "kv_b_proj" in name and kind in APART:
            both = weight.reshape(n_heads, -1, weight.shape[-1])
            n_key = config["qk_nope_head_dim"]
            yield names.get_name(name.replace("kv_b", "k_b"), try_suffixes=(".weight",)), both[:, :n_key].swapaxes(1, 2)
            yield names.get_name(name.replace("kv_b", "v_b"), try_suffixes=(".weight",)), both[:, n_key:]
            continue
        if name.endswith(".expert_bias"):
            name += ".bias"
        if name.endswith("e_score_correction_bias"):
            name, weight = name.replace("correction_bias", "correction.bias"), weight.reshape(-1)
        if "shared_expert_gate" in name:
            weight = weight[0]
        less_one = kind.startswith(("gemma", "nemotron")) or kind in gguf_recurrent.DELTA
        if less_one and ".linear_attn.norm" not in name and kind not in ("gemma4_text", "nemotron_h") and "norm" in name and name.endswith(".weight"):
            weight = weight + numpy.float32(1)
        if "query_key_value" in name:
            weight = stacked(weight, n_heads, n_kv_heads)
        of_head = n_heads if "q_proj" in name else n_kv_heads
        if architecture in PERMUTED and ("q_proj" in name or "k_proj" in name):
            weight = permuted(weight, of_head)
        if kind == "glm4v_text" and ("q_proj" in name or "k_proj" in name):
            turning = config["rope_parameters"].get("partial_rotary_factor", 1.0) * config["hidden_size"] // n_heads
            weight = halved(weight, of_head, int(turning))
        if config.get("tie_word_embeddings") and name.startswith(("lm_head", "embed_out")):
            continue
        if own_name := gguf_next_head.own(name, n_layers):
            yield own_name, weight
            continue
        if kind == "bloom":
            name = name.removeprefix("transformer.")
        name = name.replace("attn_sub_norm", "inner_attn_ln").replace("ffn_sub_norm", "ffn_layernorm")  # BitNet's first names
        if own == "bailingmoe2" and name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight")):
            yield f"blk.{name.split('.')[2]}.attn_{name[-len('q_proj.weight')]}.weight", weight  # to be one
            continue
        yield names.get_name(name, try_suffixes=(".weight", ".bias")), weight
    if alone and kind not in gguf_recurrent.DELTA:
        for start, parts in experts.items():
            name = names.get_name(start + ".weight", try_suffixes=(".weight",))
            yield from ((name.replace("_exps", f".{i}"), weight) for i, weight in parts.items())
        experts = {}
    for start, parts in (heads | experts).items():
        weight = numpy.stack([parts[i] for i in range(len(parts))])
        yield names.get_name(start + ".weight", try_suffixes=(".weight",)), weight


def add_deepseek_keys(writer, config):
    """The second's as files of 2024 have it: a head's widths where later ones have those of what is cached."""
    is_third = config["model_type"] in APART
    rank, turning = config["kv_lora_rank"], config["qk_rope_head_dim"]
    key, value = config["qk_nope_head_dim"] + turning, config["v_head_dim"]
    if config.get("q_lora_rank"):
        writer.add_q_lora_rank(config["q_lora_rank"])
    writer.add_kv_lora_rank(rank)
    writer.add_key_length(rank + turning if is_third else key)
    if config["model_type"] != "kimi_linear":
        writer.add_value_length(rank if is_third else value)
    if is_third:
        writer.add_key_length_mla(key)
        writer.add_value_length_mla(value)


def add_routing_keys(writer, config, softmax):
    """How experts are chosen, as DeepSeek's files have it and others after them."""
    n_shared = config.get("n_shared_experts", config.get("num_shared_experts"))
    n_dense = config.get("first_k_dense_replace", config.get("num_dense_layers"))
    if config["model_type"] in ("glm4_moe_lite", "kimi_linear"):
        n_dense = config["mlp_layer_types"].count("dense")
    if n_dense is not None:
        writer.add_leading_dense_block_count(n_dense)
    if n_shared is not None:
        writer.add_expert_shared_count(n_shared)
    if config["model_type"] == "exaone_moe":
        writer.add_expert_shared_feed_forward_length(n_shared * config["moe_intermediate_size"])
    scale = config.get("routed_scaling_factor", config.get("route_scale"))
    if scale is not None:
        writer.add_expert_weights_scale(scale)
    if config.get("norm_topk_prob"):
        writer.add_expert_weights_norm(True)
    elif config["model_type"] in ("kimi_linear", "mimo_v2_flash"):  # which have it without a key
        writer.add_expert_weights_norm(False)
    if not softmax:
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if config.get("n_group") and config.get("topk_method") != "greedy":
        writer.add_expert_group_count(config["n_group"])
        writer.add_expert_group_used_count(config["topk_group"])


def add_gemma4_keys(writer, config):
    """Windows and full layers have heads of their own; of full layers the file divides the frequencies that do not turn."""
    sliding = [kind == "sliding_attention" for kind in config["layer_types"]]
    own = {"head_dim": config["head_dim"]} | (config.get("per_layer_config") or {}).get(str(sliding.index(False)), {})
    n_layers, n_shared = len(sliding), config["num_kv_shared_layers"]
    for key_length, value_length, rotary, head_dim in (
            (writer.add_key_length, writer.add_value_length, writer.add_rope_dimension_count, own["head_dim"]),
            (writer.add_key_length_swa, writer.add_value_length_swa, writer.add_rope_dimension_count_swa,
             config["head_dim"])):
        key_length(head_dim)
        value_length(head_dim)
        rotary(head_dim)
    if "num_key_value_heads" in own:
        writer.add_head_count_kv([config["num_key_value_heads"] if s else own["num_key_value_heads"] for s in sliding])
    if config["use_double_wide_mlp"]:
        wide = [i >= n_layers - n_shared for i in range(n_layers)]
        writer.add_feed_forward_length([config["intermediate_size"] * (2 if is_wide else 1) for is_wide in wide])
    writer.add_shared_kv_layers(n_shared)
    writer.add_embedding_length_per_layer_input(config["hidden_size_per_layer_input"])
    writer.add_sliding_window_pattern(sliding)
    writer.add_rope_freq_base_swa(config["rope_parameters"]["sliding_attention"]["rope_theta"])
    if config["final_logit_softcapping"]:
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    turning = int(own["head_dim"] * config["rope_parameters"]["full_attention"]["partial_rotary_factor"] / 2)
    divisors = numpy.full(own["head_dim"] // 2, 1e30, numpy.float32)
    divisors[:turning] = 1.0
    writer.add_tensor("rope_freqs.weight", divisors)


def add_xielu_keys(writer, folder, n_layers):
    saved = load_file(folder / "model.safetensors")
    for key in ("alpha_p", "alpha_n", "beta", "eps"):
        numbers = (saved[f"model.layers.{i}.mlp.act_fn.{key}"].float().item() for i in range(n_layers))
        getattr(writer, f"add_xielu_{key}")(list(numbers))


def add_granite_keys(writer, config):
    writer.add_logit_scale(config["logits_scaling"])
    writer.add_residual_scale(config["residual_multiplier"])
    writer.add_embedding_scale(config["embedding_multiplier"])
    if config.get("shared_intermediate_size") and config["num_local_experts"]:
        writer.add_expert_shared_feed_forward_length(config["shared_intermediate_size"])


def add_mimo_keys(writer, config):
    sliding = [kind == "sliding_attention" for kind in config["layer_types"]]
    writer.add_head_count_kv([config["num_key_value_heads"] * (2 if is_window else 1) for is_window in sliding])
    writer.add_sliding_window_pattern([int(is_window) for is_window in sliding])
    writer.add_rope_freq_base_swa(config["rope_parameters"]["sliding_attention"]["rope_theta"])
    if config.get("attention_value_scale") is not None:
        writer.add_float32("mimo2.attention.value_scale", config["attention_value_scale"])


def add_keys(writer, config, architecture, n_next=0):
    """The metadata of that configuration, and of layers that predict further tokens."""
    kind = config["model_type"]

    def first(*keys, otherwise=None):
        return next((config[key] for key in keys if config.get(key) is not None), otherwise)

    d_model = first("hidden_size", "d_model", "n_embd")
    n_heads = first("num_attention_heads", "n_head", "n_heads", otherwise=0)
    writer.add_embedding_length(d_model)
    writer.add_block_count(gguf_recurrent.n_layers(config) + n_next)
    if n_next or kind == "glm4_moe":  # whose files always say so
        writer.add_nextn_predict_layers(n_next)
    writer.add_context_length(first("max_position_embeddings", "max_seq_len", "n_positions", otherwise=2048))
    writer.add_head_count(n_heads)
    n_kv_heads = first("num_key_value_heads", otherwise=n_heads)
    if kind == "falcon":
        n_kv_heads = config["num_kv_heads"] if config["new_decoder_architecture"] else 1
    if kind == "gpt_bigcode":
        n_kv_heads = 1
    if kind == "dbrx":
        n_kv_heads = config["attn_config"]["kv_n_heads"]
        config = config | {"intermediate_size": config["ffn_config"]["ffn_hidden_size"],
                           "num_experts": config["ffn_config"]["moe_num_experts"],
                           "num_experts_per_tok": config["ffn_config"]["moe_top_k"]}
    if kind in gguf_recurrent.NAMED_BY_LAYERS or architecture == "granitehybrid":
        n_kv_heads = gguf_recurrent.of_attending(config, n_kv_heads)
    if kind == "kimi_linear":
        n_kv_heads = gguf_recurrent.of_attending(config, 1)
    if kind == "mimo_v2_flash":
        add_mimo_keys(writer, config)
    else:
        writer.add_head_count_kv(n_kv_heads)
    head_dim = first("head_dim", otherwise=d_model // n_heads if n_heads else 0)
    if n_heads and head_dim * n_heads != d_model and "kv_lora_rank" not in config:
        writer.add_key_length(head_dim)
        writer.add_value_length(config.get("v_head_dim", head_dim))
    writer.add_layer_norm_eps(1e-5 if kind == "olmo" else first("layer_norm_eps", "norm_epsilon", "layer_norm_epsilon",
                                                               otherwise=1e-5))
    writer.add_layer_norm_rms_eps(first("rms_norm_eps", "norm_eps", "layer_norm_epsilon", otherwise=1e-5))
    d_ff = first("intermediate_size", "ffn_hidden_size", "n_inner", otherwise=4 * d_model)
    if kind == "lfm2" and config["block_auto_adjust_ff_dim"]:
        multiple = config["block_multiple_of"]
        d_ff = -(-int(config["block_ffn_dim_multiplier"] * int(2 * d_ff / 3)) // multiple) * multiple
    n_experts = first("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    if kind == "nemotron_h":  # which has the number without experts too
        n_experts = None
    if kind == "granitemoehybrid" and not n_experts:
        d_ff = config["shared_intermediate_size"]
    if kind != "qwen3_5_moe_text":
        d_ff = first("intermediate_size_mlp", otherwise=d_ff)
        writer.add_feed_forward_length(2 * d_ff if architecture == "qwen" else d_ff)
    gguf_recurrent.add_keys(writer, config, architecture)
    if n_experts:
        writer.add_expert_count(n_experts)
        writer.add_expert_used_count(first("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"))
    if config.get("moe_intermediate_size"):
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if config.get("shared_expert_intermediate_size"):
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    if kind in LATENT:
        add_deepseek_keys(writer, config)
    if kind in ROUTED or kind in LATENT and kind != "minicpm3":
        add_routing_keys(writer, config, kind == "deepseek_v2")
    if kind == "llama4_text":
        writer.add_interleave_moe_layer_step(config["interleave_moe_layer_step"])
        writer.add_expert_feed_forward_length(config["intermediate_size"])
    if kind == "hunyuan_v1_moe":
        writer.add_expert_shared_count(1)
        writer.add_expert_feed_forward_length(config["intermediate_size"])
        writer.add_expert_shared_feed_forward_length(config["intermediate_size"])
    if kind == "minimax_m2":
        writer.add_expert_feed_forward_length(config["intermediate_size"])
    if architecture == "deepseek":  # its own models' are not
        writer.add_expert_weights_norm(True)
    if kind == "ernie4_5_moe":
        writer.add_leading_dense_block_count(config["moe_layer_start_index"])
        writer.add_interleave_moe_layer_step(config["moe_layer_interval"])
        writer.add_expert_shared_count(config["moe_num_shared_experts"])
        if config["moe_num_shared_experts"]:
            writer.add_expert_shared_feed_forward_length(
                config["moe_num_shared_experts"] * config["moe_intermediate_size"])
    if kind == "qwen3_vl_moe_text":
        writer.add_rope_dimension_sections([*config["rope_parameters"]["mrope_section"], 0])
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    if kind == "olmo3":
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config["layer_types"]])
    settings = config.get("rope_parameters") or {}
    settings = settings.get("full_attention", settings)
    if settings:
        writer.add_rope_freq_base(settings["rope_theta"])
        turning = first("qk_rope_head_dim", otherwise=int(head_dim * settings.get("partial_rotary_factor", 1.0)))
        writer.add_rope_dimension_count(turning)
        if settings["rope_type"] == "linear":
            writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            writer.add_rope_scaling_factor(settings["factor"])
    if settings.get("rope_type") == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(settings["factor"])
        writer.add_rope_scaling_orig_ctx_len(settings["original_max_position_embeddings"])
        if settings.get("mscale_all_dim"):
            share = 1.0 if kind == "ministral3" else 0.1  # their converters differ in it
            writer.add_rope_scaling_yarn_log_mul(share * settings["mscale_all_dim"])
    if settings.get("llama_4_scaling_beta"):
        writer.add_attn_temperature_scale(settings["llama_4_scaling_beta"])
    if settings.get("mrope_section"):
        writer.add_rope_dimension_sections((settings["mrope_section"] + [0] * 4)[:4])
    if settings.get("rope_type") == "longrope":
        writer.add_rope_scaling_orig_ctx_len(config["original_max_position_embeddings"])
        factor = config["max_position_embeddings"] / config["original_max_position_embeddings"]
        writer.add_rope_scaling_attn_factors(
            (1 + numpy.log(factor) / numpy.log(config["original_max_position_embeddings"]))**0.5)
        for name in ("short", "long"):
            writer.add_tensor(f"rope_factors_{name}.weight", numpy.array(settings[f"{name}_factor"], numpy.float32))
    attention = config.get("attn_config", config)
    if attention.get("clip_qkv"):
        writer.add_clamp_kqv(attention["clip_qkv"])
    if kind == "mpt":
        writer.add_max_alibi_bias(8.0)
    if kind in ("cohere", "cohere2"):
        writer.add_logit_scale(config["logit_scale"])
    if kind.startswith("granite"):
        add_granite_keys(writer, config)
    if kind.startswith("granite") and architecture.startswith("granite"):
        writer.add_attention_scale(config["attention_multiplier"])
    if "use_parallel_residual" in config:
        writer.add_parallel_residual(config["use_parallel_residual"])
    if kind == "gemma4_text":
        add_gemma4_keys(writer, config)
    if kind == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])


def write_gguf(folder, path, narrow=False, alone=False, architecture=None, more=None):
    """The Hugging Face folder as a GGUF file of float32 or, with `narrow`, of matrices in bfloat16.

    It has its own architecture or another that computes the same. `more` adds keys.
    """
    whole = json.loads((folder / "config.json").read_text())
    config = whole.get("text_config", whole) | {"tie_word_embeddings": whole.get("tie_word_embeddings", False)}
    config = gguf_recurrent.with_usual_names(config)
    usual = ARCHITECTURES.get(config["model_type"], config["model_type"])
    architecture = gguf_recurrent.architecture_of(config, architecture or usual)
    writer = gguf.GGUFWriter(path, architecture)
    add_keys(writer, config, architecture, gguf_next_head.n_layers(folder, gguf_recurrent.n_layers(config)))
    if architecture == "apertus":
        add_xielu_keys(writer, folder, config["num_hidden_layers"])
    if more:
        more(writer, config)
    tensors = converted_tensors(config, folder, architecture, alone)
    for name, weight in fused(tensors) if architecture in ("qwen", "bailingmoe2") else tensors:
        weight = numpy.ascontiguousarray(weight)
        if weight.dtype == numpy.uint8:
            writer.add_tensor(name, weight, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
        elif narrow and weight.ndim >= 2 and not any(part in name for part in ("norm", "ssm_a", "ssm_d", "conv1d", ".conv.")):
            kind = gguf.GGMLQuantizationType.BF16
            writer.add_tensor(name, gguf.quants.quantize(weight, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

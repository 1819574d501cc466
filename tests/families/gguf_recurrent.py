"""What gguf_models.py writes of models with recurrent layers: tensors and keys as llama.cpp's converter has them."""
import gguf
import numpy

DELTA = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
SELECTIVE = ("mamba", "falcon_mamba", "jamba")
USUAL = {"model_max_length": "max_position_embeddings", "num_experts_per_token": "num_experts_per_tok",
         "num_expert_group": "n_group", "moe_renormalize": "norm_topk_prob"}  # Kimi's names, and others'
NAMED_BY_LAYERS = ("lfm2", "lfm2_moe", "jamba")  # files say which layers attend by their key-value heads


def architecture_of(config, architecture):
    """Nemotron-H has another name with experts."""
    return architecture + "_moe" if config["model_type"] == "nemotron_h" and "moe" in kinds(config) else architecture


def with_usual_names(config):
    return config | {usual: config[theirs] for theirs, usual in USUAL.items() if theirs in config}


def kinds(config):
    """What each layer is."""
    if "attn_layer_period" in config:
        return ["full_attention" if i % config["attn_layer_period"] == config["attn_layer_offset"] else "linear_attention"
                for i in range(config["num_hidden_layers"])]
    kinds = config.get("layers_block_type") or config.get("layer_types")
    return kinds or ["full_attention" if i in config["full_attn_idxs"] else "conv" for i in range(config["num_hidden_layers"])]


def n_layers(config):
    counted = next((config[k] for k in ("num_hidden_layers", "n_layer", "n_layers") if k in config), None)
    return counted or len(kinds(config))


def of_attending(config, n, attending="full_attention"):
    return [n if kind == attending else 0 for kind in kinds(config)]


def rounds_otherwise(fields):
    """Whether in_turn changes the order of a sum over heads, or matrices hold factors that are no powers of 2."""
    multiplied = numpy.frexp(fields.get("lm_head_multiplier", 1.0))[0] != 0.5
    return multiplied or 1 < fields.get("linear_num_key_heads", 1) < fields["linear_num_value_heads"]


def in_turn(name, weight, config):
    """Heads of values, of which those of one key follow each other, in the order in which each key has one in turn."""
    n_keys, n_values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    if ".linear_attn." not in name or name.endswith("linear_attn.norm.weight"):
        return weight
    axis = 1 if ".out_proj." in name else 0
    n_others = 2 * n_keys * config["linear_key_head_dim"] if name.endswith(("in_proj_qkv.weight", "conv1d.weight")) else 0
    others, values = numpy.split(weight, [n_others], axis)
    shape = values.shape
    turned = values.reshape(*shape[:axis], n_keys, n_values // n_keys, -1, *shape[axis + 1:]).swapaxes(axis, axis + 1)
    return numpy.concatenate([others, turned.reshape(shape)], axis)


def apart(weight, config):
    """Queries, keys and values of all heads, and their gates, from a matrix of each key head's."""
    n_keys, key, value = (config[f"linear_{of}"] for of in ("num_key_heads", "key_head_dim", "value_head_dim"))
    value *= config["linear_num_value_heads"] // n_keys
    parts = numpy.split(weight.reshape(n_keys, -1, weight.shape[-1]), [key, 2 * key, 2 * key + value], axis=1)
    *queries_to_values, gates = (part.reshape(-1, weight.shape[-1]) for part in parts)
    return numpy.concatenate(queries_to_values), gates


def multiplied(name, weight, config):
    """Falcon-H1's matrices, with what their results are multiplied by."""
    attends, recurs = config["attention_in_multiplier"], config["ssm_in_multiplier"]
    inner, states = config["mamba_d_ssm"], config["mamba_n_groups"] * config["mamba_d_state"]
    maps = numpy.repeat(config["ssm_multipliers"], [inner, inner, states, states, config["mamba_n_heads"]])
    factors = {"q_proj": attends, "k_proj": attends * config["key_multiplier"], "v_proj": attends,
               "o_proj": config["attention_out_multiplier"], "out_proj": config["ssm_out_multiplier"],
               "in_proj": recurs * maps[:, None], "gate_proj": config["mlp_multipliers"][0],
               "down_proj": config["mlp_multipliers"][1], "lm_head": config["lm_head_multiplier"],
               "embed_tokens": config["embedding_multiplier"]}
    return (weight * factors.get(name.split(".")[-2], 1.0)).astype(numpy.float32)


def converted(name, weight, config, older=False):
    """(name, array): the folder's tensor as the file has it, still by a folder's name; `older` files keep one matrix."""
    kind = config["model_type"]
    if kind.startswith("qwen3_5"):
        weight = in_turn(name, weight, config)
    if name.endswith(".A_log"):
        weight = -numpy.exp(weight.astype(numpy.float64)).astype(numpy.float32)
    if config["model_type"] == "falcon_h1":
        weight = multiplied(name, weight, config)
    if name.endswith((".A_log", ".D")) and kind not in DELTA + SELECTIVE:
        weight = weight.reshape(-1, 1)
    if name.endswith((".conv.weight", ".conv1d.weight")):
        weight = weight.squeeze(1)
    if name.endswith("_conv1d.weight"):
        weight = weight.reshape(1, weight.shape[0], 1, -1)
    if name.endswith((".mamba.norm.weight", ".mixer.norm.weight")):
        weight = weight.reshape(config.get("mamba_n_groups") or config["n_groups"], -1)
    if "in_proj_qkvz" in name and not older:
        return list(zip((name.replace("qkvz", "qkv"), name.replace("qkvz", "z")), apart(weight, config)))
    if kind == "nemotron_h" and ".experts." in name:  # the package knows no names of these
        _, _, layer, _, _, number, part, _ = name.split(".")
        name = f"blk.{layer}.experts.{number}.ffn_{part.removesuffix('_proj')}_exps.weight"
    if ".block_sparse_moe." in name and name.split(".")[-2] in ("gate_proj", "up_proj", "down_proj") and "shared" not in name:
        name = name.replace("block_sparse_moe", "mlp")  # of a layer without experts
    name = name.replace(".dt_bias", ".dt_proj.bias").replace(".expert_bias", ".expert_bias.bias")
    return [(name, weight)]


def add_delta_keys(writer, config):
    n_heads = config["linear_num_value_heads"]
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_inner_size(config["linear_value_head_dim"] * n_heads)
    writer.add_ssm_time_step_rank(n_heads)
    writer.add_full_attention_interval(config["layer_types"].index("full_attention") + 1)


def add_mamba_keys(writer, config):
    """Mamba-2's, by the names of Granite, of Nemotron-H or of Mamba-2 itself."""
    def first(*keys):
        return next(config[key] for key in keys if config.get(key) is not None)

    n_heads = first("mamba_n_heads", "mamba_num_heads", "num_heads")
    writer.add_ssm_conv_kernel(first("mamba_d_conv", "conv_kernel"))
    writer.add_ssm_state_size(first("mamba_d_state", "ssm_state_size", "state_size"))
    writer.add_ssm_group_count(first("mamba_n_groups", "n_groups"))
    writer.add_ssm_inner_size(first("mamba_d_head", "mamba_head_dim", "head_dim") * n_heads)
    writer.add_ssm_time_step_rank(n_heads)


def add_selective_keys(writer, config):
    def first(*keys):
        return next(config[key] for key in keys if config.get(key) is not None)

    writer.add_ssm_conv_kernel(first("mamba_d_conv", "conv_kernel"))
    writer.add_ssm_state_size(first("mamba_d_state", "state_size"))
    writer.add_ssm_inner_size(first("mamba_expand", "expand") * config["hidden_size"])
    writer.add_ssm_time_step_rank(first("mamba_dt_rank", "time_step_rank"))
    writer.add_ssm_dt_b_c_rms(config["model_type"] == "falcon_mamba")


def add_kimi_keys(writer, config):
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_kda_head_dim(config["linear_head_dim"])
    writer.add_rope_dimension_count(config["qk_rope_head_dim"])


def add_nemotron_keys(writer, config):
    sparse = "moe" in kinds(config)
    d_ff = config["moe_intermediate_size" if sparse else "intermediate_size"]
    writer.add_feed_forward_length(of_attending(config, d_ff, "moe" if sparse else "mlp"))
    writer.add_head_count_kv(of_attending(config, config["num_key_value_heads"]))
    if not sparse:
        return
    writer.add_expert_count(config["n_routed_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_expert_shared_feed_forward_length(config["moe_shared_expert_intermediate_size"])
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_norm(config["norm_topk_prob"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_group_count(config["n_group"])


def add_keys(writer, config, architecture):
    """Beside those that models without recurrent layers have too."""
    kind = config["model_type"]
    if kind in DELTA:
        add_delta_keys(writer, config)
    if kind == "kimi_linear":
        add_kimi_keys(writer, config)
    if kind.startswith("lfm2"):
        writer.add_shortconv_l_cache(config["conv_L_cache"])
    if kind == "lfm2_moe":
        writer.add_leading_dense_block_count(config["num_dense_layers"])
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if kind in SELECTIVE:
        add_selective_keys(writer, config)
    if architecture in ("granitehybrid", "falcon-h1", "mamba2", "nemotron_h", "nemotron_h_moe"):
        add_mamba_keys(writer, config)
    if architecture == "granitehybrid":
        writer.add_rope_scaling_finetuned(config.get("position_embedding_type") == "rope")
    if kind == "nemotron_h":
        add_nemotron_keys(writer, config)

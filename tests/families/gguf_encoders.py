"""Hugging Face folders of bare encoders as GGUF files, for comparisons: metadata, names and numbers as llama.cpp's files have them.

Needs gguf, torch and safetensors.
"""
import json

import gguf
import numpy
from safetensors.torch import load_file

ENCODERS = {"nomic_bert": "nomic-bert", "modernbert": "modern-bert", "t5": "t5encoder", "gemma_embedding": "gemma-embedding",
            "eurobert": "eurobert", "jina_bert": "jina-bert-v2", "jina_v3": "jina-bert-v3",
            "nomic_moe": "nomic-bert-moe"}
KINDS = {"gemma3_text": "gemma_embedding", "bert": "jina_bert", "jina_embeddings_v3": "jina_v3"}  # where the type is another name


def add_sentence_modules(writer, folder):
    """sentence-transformers' mean and matrices, where the folder has them."""
    if not (folder / "modules.json").exists():
        return
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    for number in (2, 3):
        weight = load_file(folder / f"{number}_Dense" / "model.safetensors")["linear.weight"].numpy()
        writer.add_dense_features_dims(f"dense_{number}", weight.shape[1], weight.shape[0])
        writer.add_tensor(f"dense_{number}.weight", weight)


def write_encoder(folder, path):
    """The folder of a bare encoder as a GGUF file of float32."""
    config = json.loads((folder / "config.json").read_text())
    rotary = config.get("rope_parameters") or {"rope_theta": config.get("rotary_emb_base")}
    kind = "nomic_moe" if "num_experts" in config else KINDS.get(config["model_type"], config["model_type"])

    def first(*keys):
        return next(config[key] for key in keys if config.get(key) is not None)

    n_layers = first("num_hidden_layers", "num_layers", "n_layer")
    writer = gguf.GGUFWriter(path, ENCODERS[kind])
    writer.add_embedding_length(first("hidden_size", "d_model", "n_embd"))
    writer.add_block_count(n_layers)
    writer.add_context_length(first("max_position_embeddings", "n_positions"))
    writer.add_head_count(first("num_attention_heads", "num_heads", "n_head"))
    writer.add_feed_forward_length(first("intermediate_size", "d_ff", "n_inner"))
    epsilon = first("layer_norm_eps", "norm_eps", "layer_norm_epsilon", "rms_norm_eps")
    writer.add_layer_norm_eps(epsilon)
    if kind == "t5":
        writer.add_layer_norm_rms_eps(epsilon)
        writer.add_key_length(config["d_kv"])
        writer.add_value_length(config["d_kv"])
        writer.add_relative_attn_buckets_count(config["relative_attention_num_buckets"])
    elif kind == "jina_bert":
        writer.add_causal_attention(False)
    else:
        writer.add_causal_attention(False)
        writer.add_rope_freq_base(rotary.get("full_attention", rotary)["rope_theta"])
    if kind == "gemma_embedding":
        writer.add_layer_norm_rms_eps(epsilon)
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
        writer.add_rope_freq_base_swa(rotary["sliding_attention"]["rope_theta"])
        writer.add_sliding_window(config["sliding_window"])
        add_sentence_modules(writer, folder)
    if kind == "nomic_moe":
        writer.add_expert_count(config["num_experts"])
        writer.add_expert_used_count(config["moe_top_k"])
        writer.add_moe_every_n_layers(config["moe_every_n_layers"])
    if kind == "eurobert":
        writer.add_layer_norm_rms_eps(epsilon)
        writer.add_head_count_kv(config["num_key_value_heads"])
    if kind == "modernbert":
        writer.add_rope_freq_base_swa(rotary["sliding_attention"]["rope_theta"])
        writer.add_sliding_window(config["local_attention"])
    architecture = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == ENCODERS[kind])
    names = gguf.get_tensor_name_map(architecture, n_layers)
    for name, tensor in load_file(folder / "model.safetensors").items():
        if name.startswith("pooler.") or name.endswith("experts.bias"):  # which llama.cpp's files have not
            continue
        weight = numpy.ascontiguousarray(tensor.float().numpy())
        if kind == "gemma_embedding":
            name = "model." + name
            weight = weight + numpy.float32(1) if "norm" in name else weight
        if "experts.mlp" in name:
            weight = weight.reshape(config["num_experts"], config["n_inner"], -1)
            weight = numpy.ascontiguousarray(weight.transpose(0, 2, 1)) if name.endswith("w2") else weight
            writer.add_tensor(names.get_name(name) + ".weight", weight)
            continue
        if "gated_layers" in name:  # the gate's rows are the first
            for part, rows in zip("wv", numpy.split(weight, 2)):
                writer.add_tensor(names.get_name(name.replace("layers", f"layers_{part}"), try_suffixes=(".weight",)), rows)
            continue
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

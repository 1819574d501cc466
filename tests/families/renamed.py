"""Random models of types whose classes come with their checkpoints: a model of transformers computes the same.

SHAPES[model_type] lists configurations of that model, TWINS[model_type] is its type.
"""
import json
import re

import torch
from safetensors.torch import load_file, save_file

from settings import TINY, llama_like, rope

TWINS = {"internlm2": "llama", "minicpm": "granite"}

SHAPES = {
    "internlm2": [
        llama_like(**TINY, attention_bias=True),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3,
                   rope_parameters=rope(100.0, "dynamic", factor=2.0)),
        llama_like(hidden=40, heads=5, kv_heads=5, d_ff=33, tie_word_embeddings=True),
    ],
    "minicpm": [
        llama_like(**TINY | dict(heads=3), embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.4,
                   attention_multiplier=0.5),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, tie_word_embeddings=True,
                   embedding_multiplier=12.0, logits_scaling=9.0, residual_multiplier=0.22,
                   attention_multiplier=6**-0.5),
    ],
}

FIELDS = {"internlm2": {"attention_bias": "bias"}, "minicpm": {}}  # what a field is called
LEFT_OUT = ("attention_bias", "mlp_bias", "embedding_multiplier", "logits_scaling", "residual_multiplier",
            "attention_multiplier")
TENSORS = {
    "internlm2": [("embed_tokens", "tok_embeddings"), ("lm_head", "output"), ("input_layernorm", "attention_norm"),
                  ("post_attention_layernorm", "ffn_norm"), ("self_attn.o_proj", "attention.wo"),
                  ("self_attn", "attention"), ("mlp.gate_proj", "feed_forward.w1"), ("mlp.up_proj", "feed_forward.w3"),
                  ("mlp.down_proj", "feed_forward.w2")],
    "minicpm": [],
}


def grouped(tensors, config):
    """Queries, keys and values as one tensor: of each key-value head in turn its queries, its key, its value."""
    n_kv = config["num_key_value_heads"]
    for name in [name for name in tensors if re.search(r"attention.q_proj.(weight|bias)$", name)]:
        parts = [tensors.pop(name.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
        heads = [part.reshape(n_kv, -1, *part.shape[1:]) for part in parts]
        tensors[name.replace("q_proj", "wqkv")] = torch.cat(heads, 1).reshape(-1, *parts[0].shape[1:])


def rename(model_type, folder):
    """Makes a folder of the twin one of that type."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        for theirs, ours in TENSORS[model_type]:
            name = name.replace(theirs, ours)
        tensors[name] = tensor
    if model_type == "internlm2":
        grouped(tensors, config)
    named = {FIELDS[model_type].get(key, key): value for key, value in config.items()
             if key in FIELDS[model_type] or key not in LEFT_OUT}
    if model_type == "minicpm":
        named |= {"scale_emb": config["embedding_multiplier"],
                  "scale_depth": config["residual_multiplier"] * config["num_hidden_layers"]**0.5,
                  "dim_model_base": config["hidden_size"] / config["logits_scaling"]}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors",
              {"format": "pt"})
    path.write_text(json.dumps(named | {"model_type": model_type, "architectures": ["OfItsOwn"]}))

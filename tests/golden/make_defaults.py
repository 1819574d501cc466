#!/usr/bin/env python3
"""Makes tests/golden/config_defaults.json: what transformers takes a field of config.json for where there is none, of the
fields in NAMES that a golden model's type has. A null means that it does without.

Needs transformers 5.
"""
import json
import logging
import pathlib

logging.disable(logging.WARNING)

from transformers import AutoConfig  # noqa: E402

HERE = pathlib.Path(__file__).parent
# Sizes that only name tensors' shapes are left out: a model that differs there is refused.
NAMES = """rope_theta max_position_embeddings n_positions max_seq_len sliding_window window_size max_window_layers
use_sliding_window num_experts_per_tok n_group topk_group attention_bias mlp_bias use_bias use_qkv_bias qkv_bias
num_key_value_heads partial_rotary_factor tie_word_embeddings rms_norm_eps layer_norm_eps layer_norm_epsilon norm_epsilon
hidden_act hidden_activation activation_function query_pre_attn_scalar attn_logit_softcapping final_logit_softcapping
logit_scale embedding_multiplier logits_scaling residual_multiplier attention_multiplier norm_topk_prob
decoder_sparse_step first_k_dense_replace routed_scaling_factor topk_method use_qk_norm qk_layernorm
num_nextn_predict_layers use_parallel_residual clip_qkv original_max_position_embeddings scale_embedding
is_encoder_decoder share_encoder_decoder_embeddings""".split()
ROTARY = "rope_theta", "partial_rotary_factor"


def defaults_of(model_type):
    config = AutoConfig.for_model(model_type)
    named = {name: getattr(config, name) for name in NAMES if name not in ROTARY and hasattr(config, name)}
    # None there means that there are as many as query heads; else the class itself has a number.
    if "num_key_value_heads" in named and type(config).num_key_value_heads is None:
        named["num_key_value_heads"] = None
    if hasattr(config, "kv_lora_rank"):  # all heads share the latent vector, whatever the field says
        named.pop("num_key_value_heads")
        named = {name: value for name, value in named.items() if value is not None}  # of routing: its code wants numbers
    rotary = getattr(config, "rope_parameters", None) or {}
    kinds = [rotary[kind] for kind in ("full_attention", "sliding_attention") if kind in rotary]
    if kinds:  # of layers, each with its own, which one number does not say
        named["rope_parameters"] = rotary
    else:
        named |= {name: rotary[name] for name in ROTARY if name in rotary}
    return named


def main():
    types = {json.loads(path.read_text())["model_type"]
             for path in [*HERE.glob("families/*/config.json"), *HERE.glob("pairs/*/config.json")]}
    found = {model_type: defaults_of(model_type) for model_type in sorted(types)}
    (HERE / "config_defaults.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

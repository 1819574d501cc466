#!/usr/bin/env python3
"""Makes tests/golden/config_defaults.json: what transformers takes a field of config.json for where there is none, of the
fields in NAMES that a golden model's type has. A null means that it does without.

Needs transformers 5.
"""
import json
import logging
import pathlib

logging.disable(logging.WARNING)

from transformers import CONFIG_MAPPING, AutoConfig  # noqa: E402

HERE = pathlib.Path(__file__).parent
# Sizes that only name tensors' shapes are left out: a model that differs there is refused.
NAMES = """rope_theta max_position_embeddings n_positions max_seq_len sliding_window window_size max_window_layers
use_sliding_window num_experts_per_tok n_group topk_group attention_bias mlp_bias use_bias use_qkv_bias qkv_bias
num_key_value_heads partial_rotary_factor tie_word_embeddings rms_norm_eps layer_norm_eps layer_norm_epsilon norm_epsilon
hidden_act hidden_activation activation_function query_pre_attn_scalar attn_logit_softcapping final_logit_softcapping
logit_scale embedding_multiplier logits_scaling residual_multiplier attention_multiplier norm_topk_prob
decoder_sparse_step first_k_dense_replace routed_scaling_factor topk_method use_qk_norm qk_layernorm
num_nextn_predict_layers use_parallel_residual clip_qkv original_max_position_embeddings multi_query scale_embedding
 scale_attn_weights use_post_norm rope_interleave moe_k moe_layer_start_index moe_layer_end_index moe_layer_interval
 norm_eps conv_bias conv_L_cache block_multiple_of block_ffn_dim_multiplier block_auto_adjust_ff_dim num_dense_layers
 use_expert_bias linear_conv_kernel_dim mamba_d_conv mamba_conv_bias mamba_proj_bias conv_kernel use_conv_bias
 mamba_rms_norm mamba_norm_before_gate mixer_rms_eps lm_head_multiplier key_multiplier attention_in_multiplier
 attention_out_multiplier ssm_in_multiplier ssm_out_multiplier attn_layer_period attn_layer_offset expert_layer_period
 expert_layer_offset time_step_min moe_norm_min is_encoder_decoder share_encoder_decoder_embeddings scale_emb scale_depth dim_model_base
 attention_chunk_size floor_scale attn_scale attn_temperature_tuning interleave_moe_layer_step lm_head_bias
 router_jitter_noise local_attention classifier_activation decoder_bias expert_selection_fn num_shared_experts
 shared_expert_combination_strategy mup_enabled route_scale global_attn_every_n_layers moe_topk
 intermediate_multiple_size use_sandwich_norm use_attention_gate""".split()
ROTARY = "rope_theta", "partial_rotary_factor"


def defaults_of(model_type):
    config = AutoConfig.for_model(model_type)
    named = {name: getattr(config, name) for name in NAMES if name not in ROTARY and hasattr(config, name)}
    # None there means as many as query heads, or what a head's width makes; else the class itself has a number.
    for name in ("num_key_value_heads", "attention_multiplier"):
        if name in named and getattr(type(config), name, None) is None:
            named[name] = None
    if named.get("num_experts_per_tok", 0) is None:  # its code wants a number
        named.pop("num_experts_per_tok")
    if hasattr(config, "local_attention"):  # of which half is the window
        named.pop("sliding_window", None)
    if hasattr(config, "kv_lora_rank"):  # all heads share the latent vector, whatever the field says
        named.pop("num_key_value_heads")
        named = {name: value for name, value in named.items() if value is not None}  # of routing: its code wants numbers
    rotary = getattr(config, "rope_parameters", None) or {}
    kinds = [rotary[kind] for kind in ("full_attention", "sliding_attention") if kind in rotary]
    # Of layers, each with its own, or a whole scaling: one number does not say them.
    if kinds or rotary.get("rope_type", "default") != "default":
        named["rope_parameters"] = rotary
    else:
        named |= {name: rotary[name] for name in ROTARY if name in rotary}
    return named


def type_of(path):
    config = json.loads(path.read_text())
    return config.get("text_config", config)["model_type"]


def main():
    types = {type_of(path) for path in [*HERE.glob("families/*/config.json"), *HERE.glob("pairs/*/config.json")]}
    # Classes that come with their checkpoints are not there.
    found = {name: defaults_of(name) if name in CONFIG_MAPPING else {} for name in sorted(types)}
    (HERE / "config_defaults.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

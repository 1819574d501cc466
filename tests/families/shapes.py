"""Small random models of every family that convert reads from Hugging Face folders: their configurations, and weights.

Needs torch and transformers. SHAPES[model_type] lists configurations, the first the smallest: odd widths, windows shorter
than the text, grouped and single key-value heads, biases there and not there.
"""
import copy
import json

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

import dense_shapes
import expert_shapes
import recurrent_shapes
import renamed
import wholes
from settings import LAYERS3, TINY, latent, llama_like, rope, without, yarn

N_TOKENS = 40
CHOSEN = "num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"  # names of how many experts a row has

SHAPES = {
    "llama": [
        llama_like(**TINY, rope_parameters=rope(kind="linear", factor=2.0)),
        llama_like(hidden=36, heads=6, kv_heads=1, d_ff=50, head_dim=10, attention_bias=True, mlp_bias=True,
                   rope_parameters=rope(500.0, "yarn", factor=4.0, original_max_position_embeddings=16)),
        llama_like(rope_parameters=rope(kind="longrope", factor=1.0, short_factor=[1.0, 1.5, 2.0],
                                        long_factor=[2.0, 3.0, 4.0], original_max_position_embeddings=64)),
        llama_like(rope_parameters=rope(100.0, "proportional", partial_rotary_factor=0.4)),
    ],
    "llama_relu2": [
        llama_like(**TINY, hidden_act="relu2"),
        llama_like(hidden=36, heads=6, kv_heads=1, d_ff=50, hidden_act="relu2", mlp_bias=True),
        llama_like(hidden=30, heads=5, kv_heads=1, d_ff=41, layers=3, hidden_act="relu2"),
    ],
    "mistral": [
        llama_like(**TINY, sliding_window=5, head_dim=6),
        llama_like(hidden=30, heads=6, kv_heads=3, d_ff=41, layers=3, sliding_window=None, head_dim=8),
        llama_like(hidden=36, heads=6, kv_heads=1, d_ff=50, head_dim=10, sliding_window=39),
    ],
    "qwen2": [
        llama_like(**TINY, use_sliding_window=True, sliding_window=7, max_window_layers=1),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, tie_word_embeddings=True, rope_parameters=rope(100.0)),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, rope_parameters=rope(
            5000.0, "yarn", factor=4.0, original_max_position_embeddings=16)),
    ],
    "qwen3": [
        llama_like(**TINY, head_dim=8, attention_bias=True),
        llama_like(hidden=33, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, tie_word_embeddings=True,
                   use_sliding_window=True, sliding_window=13, max_window_layers=2),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=6, d_ff=33, rope_parameters=rope(
            5000.0, "yarn", factor=4.0, original_max_position_embeddings=16)),
    ],
    "gpt2": [
        dict(vocab_size=23, n_positions=64, n_embd=12, n_layer=2, n_head=2, n_inner=14),
        dict(vocab_size=37, n_positions=64, n_embd=33, n_layer=3, n_head=3, scale_attn_by_inverse_layer_idx=True,
             activation_function="relu", tie_word_embeddings=False),
        dict(vocab_size=37, n_positions=40, n_embd=35, n_layer=2, n_head=7, scale_attn_weights=False, n_inner=41),
    ],
    "gemma": [
        llama_like(**TINY, head_dim=8, rope_parameters=rope(100.0)),
        llama_like(hidden=30, heads=6, kv_heads=3, head_dim=6, d_ff=41, layers=3),
        llama_like(hidden=20, heads=5, kv_heads=1, head_dim=4, d_ff=33, attention_bias=True),
    ],
    "gemma2": [
        llama_like(**TINY, head_dim=8, sliding_window=7, query_pre_attn_scalar=5),
        llama_like(hidden=30, heads=6, kv_heads=3, head_dim=6, d_ff=41, layers=3, sliding_window=13,
                   attn_logit_softcapping=4.0, final_logit_softcapping=3.0, layer_types=LAYERS3),
        llama_like(hidden=20, heads=5, kv_heads=1, head_dim=4, d_ff=33, sliding_window=39, attention_bias=True,
                   attn_logit_softcapping=None, final_logit_softcapping=None),
    ],
    "gemma3_text": [
        llama_like(**TINY, head_dim=8, sliding_window=7, query_pre_attn_scalar=5, layer_types=LAYERS3[:2],
                   rope_parameters={"sliding_attention": rope(50.0), "full_attention": rope(9000.0)}),
        llama_like(hidden=30, heads=6, kv_heads=3, head_dim=6, d_ff=41, layers=7, sliding_window=13,
                   rope_parameters={"sliding_attention": rope(50.0),
                                    "full_attention": rope(9000.0, "linear", factor=8.0)}),
        llama_like(hidden=20, heads=5, kv_heads=1, head_dim=4, d_ff=33, layers=3, sliding_window=39,
                   attention_bias=True, layer_types=LAYERS3, final_logit_softcapping=3.0),
    ],
    "phi": [
        llama_like(**TINY, rope_parameters=rope(partial_rotary_factor=0.67)),
        llama_like(hidden=48, heads=6, kv_heads=3, d_ff=41, layers=3, qk_layernorm=True,
                   rope_parameters=rope(partial_rotary_factor=0.5)),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, hidden_act="gelu",
                   rope_parameters=rope(partial_rotary_factor=1.0)),
    ],
    "phi_quick_gelu": [
        llama_like(**TINY, hidden_act="quick_gelu", rope_parameters=rope(partial_rotary_factor=0.67)),
        llama_like(hidden=48, heads=6, kv_heads=3, d_ff=41, layers=3, hidden_act="quick_gelu"),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, hidden_act="quick_gelu"),
    ],
    "phi3": [
        llama_like(**TINY, pad_token_id=0, bos_token_id=1, eos_token_id=2, sliding_window=7),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                   rope_parameters=rope(kind="longrope", short_factor=[1.0, 1.25, 2.0], long_factor=[2.0, 4.0, 8.0],
                                        original_max_position_embeddings=44),
                   original_max_position_embeddings=44),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                   rope_parameters=rope(partial_rotary_factor=0.5)),
    ],
    "phi3_long": [
        llama_like(**TINY, pad_token_id=0, bos_token_id=1, eos_token_id=2, original_max_position_embeddings=12,
                   rope_parameters=rope(kind="longrope", short_factor=[1.0, 1.25, 2.0], long_factor=[2.0, 4.0, 8.0],
                                        original_max_position_embeddings=12)),
    ],
    "gpt_neox": [
        without(llama_like(hidden=16, heads=2, d_ff=14, vocab=23), "num_key_value_heads"),
        without(llama_like(hidden=36, heads=3, d_ff=41, layers=3, use_parallel_residual=False,
                           rope_parameters=rope(partial_rotary_factor=0.5)), "num_key_value_heads"),
        without(llama_like(hidden=40, heads=5, d_ff=33, attention_bias=False, tie_word_embeddings=True,
                           rope_parameters=rope(100.0, partial_rotary_factor=1.0)), "num_key_value_heads"),
    ],
    "gptj": [
        dict(vocab_size=23, n_positions=64, n_embd=12, n_layer=2, n_head=2, rotary_dim=4, n_inner=14),
        dict(vocab_size=37, n_positions=64, n_embd=30, n_layer=3, n_head=3, rotary_dim=10),
        dict(vocab_size=37, n_positions=64, n_embd=36, n_layer=2, n_head=6, rotary_dim=2, n_inner=41,
             activation_function="gelu"),
    ],
    "gpt_neo": [
        dict(vocab_size=23, max_position_embeddings=64, hidden_size=10, num_layers=2, num_heads=2,
             attention_types=[[["global", "local"], 1]], window_size=5, intermediate_size=14),
        dict(vocab_size=37, max_position_embeddings=64, hidden_size=27, num_layers=3, num_heads=3,
             attention_types=[[["local"], 2], [["global"], 1]], window_size=11),
        dict(vocab_size=37, max_position_embeddings=64, hidden_size=35, num_layers=2, num_heads=5,
             attention_types=[[["global", "local"], 1]], window_size=39, intermediate_size=33,
             activation_function="relu"),
    ],
    "opt": [
        dict(vocab_size=23, hidden_size=10, word_embed_proj_dim=10, num_hidden_layers=2, ffn_dim=14,
             max_position_embeddings=64, num_attention_heads=2),
        dict(vocab_size=37, hidden_size=27, word_embed_proj_dim=27, num_hidden_layers=3, ffn_dim=41,
             max_position_embeddings=64, num_attention_heads=3, do_layer_norm_before=False),
        dict(vocab_size=37, hidden_size=24, word_embed_proj_dim=24, num_hidden_layers=3, ffn_dim=41,
             max_position_embeddings=64, num_attention_heads=3, layer_norm_elementwise_affine=False),
        dict(vocab_size=37, hidden_size=35, word_embed_proj_dim=35, num_hidden_layers=2, ffn_dim=33,
             max_position_embeddings=64, num_attention_heads=5, enable_bias=False, activation_function="gelu",
             tie_word_embeddings=False),
    ],
    "opt_narrow": [  # tables of another width than the model
        dict(vocab_size=23, hidden_size=12, word_embed_proj_dim=5, num_hidden_layers=2, ffn_dim=14,
             max_position_embeddings=64, num_attention_heads=2, do_layer_norm_before=False),
        dict(vocab_size=37, hidden_size=24, word_embed_proj_dim=10, num_hidden_layers=3, ffn_dim=41,
             max_position_embeddings=64, num_attention_heads=3, enable_bias=False),
        dict(vocab_size=37, hidden_size=21, word_embed_proj_dim=35, num_hidden_layers=2, ffn_dim=33,
             max_position_embeddings=64, num_attention_heads=3, tie_word_embeddings=False),
    ],
    "bloom": [
        dict(vocab_size=23, hidden_size=12, n_layer=2, n_head=3),
        dict(vocab_size=37, hidden_size=36, n_layer=3, n_head=4),
        dict(vocab_size=37, hidden_size=35, n_layer=2, n_head=7),
    ],
    "mpt": [
        dict(vocab_size=23, d_model=12, n_layers=2, n_heads=3, max_seq_len=64, attn_config=dict(clip_qkv=0.8)),
        dict(vocab_size=37, d_model=36, n_layers=3, n_heads=4, max_seq_len=64,
             attn_config=dict(alibi_bias_max=5, softmax_scale=0.3)),
        dict(vocab_size=37, d_model=35, n_layers=2, n_heads=7, max_seq_len=64, attn_config=dict(clip_qkv=2.0)),
    ],
    "falcon": [
        dict(vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2,
             new_decoder_architecture=True, ffn_hidden_size=14),
        dict(vocab_size=37, hidden_size=36, num_hidden_layers=3, num_attention_heads=6, multi_query=True, bias=True),
        dict(vocab_size=37, hidden_size=48, num_hidden_layers=2, num_attention_heads=8, multi_query=False,
             parallel_attn=False, alibi=True, bias=True),
        dict(vocab_size=37, hidden_size=36, num_hidden_layers=2, num_attention_heads=6, num_kv_heads=3,
             new_decoder_architecture=True, num_ln_in_parallel_attn=1, ffn_hidden_size=33),
    ],
    "stablelm": [
        llama_like(**TINY, rope_parameters=rope(partial_rotary_factor=0.34), qk_layernorm=True),
        llama_like(hidden=48, heads=6, kv_heads=3, d_ff=41, layers=3, use_parallel_residual=True, use_qkv_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, qk_layernorm=True, tie_word_embeddings=True,
                   rope_parameters=rope(partial_rotary_factor=0.5)),
    ],
    "starcoder2": [
        llama_like(**TINY, sliding_window=7),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, use_bias=False),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, tie_word_embeddings=False, sliding_window=39),
    ],
    "olmo": [
        llama_like(**TINY, clip_qkv=0.7, pad_token_id=0, eos_token_id=1),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, pad_token_id=0, eos_token_id=1,
                   attention_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, pad_token_id=0, eos_token_id=1, clip_qkv=2.0,
                   tie_word_embeddings=True),
    ],
    "olmo2": [
        llama_like(**TINY, pad_token_id=0, eos_token_id=1),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, pad_token_id=0, eos_token_id=1,
                   attention_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, pad_token_id=0, eos_token_id=1, tie_word_embeddings=True,
                   rms_norm_eps=1e-3),
    ],
    "olmo3": [
        llama_like(**TINY, pad_token_id=0, eos_token_id=1, sliding_window=7, layer_types=LAYERS3[:2]),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=5, pad_token_id=0, eos_token_id=1,
                   sliding_window=13, attention_bias=True,
                   rope_parameters={"sliding_attention": rope(50.0), "full_attention": rope(
                       9000.0, "yarn", factor=4.0, original_max_position_embeddings=16)}),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, pad_token_id=0, eos_token_id=1,
                   sliding_window=39, layer_types=LAYERS3),
    ],
    "granite": [
        llama_like(**TINY, embedding_multiplier=3.0, logits_scaling=2.5, residual_multiplier=0.4,
                   attention_multiplier=0.2),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, attention_bias=True, mlp_bias=True,
                   residual_multiplier=0.22, attention_multiplier=0.5),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, tie_word_embeddings=True, logits_scaling=8.0,
                   embedding_multiplier=12.0, attention_multiplier=0.3),
    ],
    "arcee": [
        llama_like(**TINY),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, head_dim=10, attention_bias=True, mlp_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, tie_word_embeddings=True,
                   rope_parameters=rope(100.0, "yarn", factor=4.0, original_max_position_embeddings=16)),
    ],
    "seed_oss": [
        llama_like(**TINY, head_dim=8),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, head_dim=10, attention_bias=False, mlp_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, head_dim=8, attention_out_bias=True, tie_word_embeddings=True),
    ],
    "nemotron": [
        llama_like(**TINY, head_dim=8),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, head_dim=12, attention_bias=True, mlp_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, tie_word_embeddings=True, norm_eps=1e-3,
                   rope_parameters=rope(100.0, partial_rotary_factor=1.0)),
    ],
    "bitnet": [
        llama_like(**TINY),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, attention_bias=True, rms_norm_eps=1e-3),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, tie_word_embeddings=True, hidden_act="silu"),
    ],
    "cohere": [
        llama_like(**TINY, use_qk_norm=True, logit_scale=0.5),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, attention_bias=True, pad_token_id=0,
                   bos_token_id=1, eos_token_id=2),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, use_qk_norm=True, tie_word_embeddings=False),
    ],
    "cohere2": [
        llama_like(**TINY, head_dim=6, sliding_window=7, logit_scale=0.5, layer_types=LAYERS3[:2]),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=5, attention_bias=True,
                   sliding_window=13),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, layers=3, sliding_window=39,
                   layer_types=LAYERS3),
    ],
    "smollm3": [
        llama_like(**TINY, no_rope_layers=[1, 0], pad_token_id=0, bos_token_id=1, eos_token_id=2),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=5, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                   attention_bias=True, mlp_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                   no_rope_layers=[1, 0, 1], use_sliding_window=True, sliding_window=13, layer_types=LAYERS3,
                   tie_word_embeddings=False),
    ],
    "ernie4_5": [
        llama_like(**TINY, head_dim=6),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, use_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, tie_word_embeddings=False,
                   rope_parameters=rope(100.0)),
    ],
    "glm": [
        llama_like(**TINY, head_dim=8, pad_token_id=0, eos_token_id=1),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=8, d_ff=41, layers=3, attention_bias=False,
                   pad_token_id=0, eos_token_id=1),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, tie_word_embeddings=True, pad_token_id=0,
                   eos_token_id=1, rope_parameters=rope(partial_rotary_factor=1.0)),
    ],
    "glm4": [
        llama_like(**TINY, head_dim=8, pad_token_id=0, eos_token_id=1),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=8, d_ff=41, layers=3, attention_bias=False,
                   pad_token_id=0, eos_token_id=1),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, tie_word_embeddings=True, pad_token_id=0,
                   eos_token_id=1, rope_parameters=rope(partial_rotary_factor=1.0)),
    ],
    "exaone4": [
        llama_like(**TINY, sliding_window=7, layer_types=LAYERS3[:2]),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=5, sliding_window=13),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, sliding_window=None,
                   layer_types=["full_attention"] * 3, tie_word_embeddings=True),
    ],
    "mixtral": [
        llama_like(**TINY, num_local_experts=4, num_experts_per_tok=2),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, num_local_experts=5,
                   num_experts_per_tok=3, sliding_window=11),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, num_local_experts=3, num_experts_per_tok=1,
                   tie_word_embeddings=True, rope_parameters=rope(100.0)),
    ],
    "qwen2_moe": [
        llama_like(**TINY, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=9,
                   shared_expert_intermediate_size=11),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=5, num_experts=7, num_experts_per_tok=3,
                   moe_intermediate_size=19, shared_expert_intermediate_size=50, norm_topk_prob=True,
                   decoder_sparse_step=2, mlp_only_layers=[3], use_sliding_window=True, sliding_window=13),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, qkv_bias=False, num_experts=6, num_experts_per_tok=6,
                   moe_intermediate_size=17, shared_expert_intermediate_size=1),
    ],
    "qwen3_moe": [
        llama_like(**TINY, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=9,
                   norm_topk_prob=True),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=4, num_experts=9,
                   num_experts_per_tok=4, moe_intermediate_size=20, attention_bias=True, decoder_sparse_step=2),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, layers=3, num_experts=17,
                   num_experts_per_tok=1, moe_intermediate_size=5, mlp_only_layers=[0], use_sliding_window=True,
                   sliding_window=13, tie_word_embeddings=True),
    ],
    "olmoe": [
        llama_like(**TINY, clip_qkv=0.7, pad_token_id=0, eos_token_id=1, num_experts=4, num_experts_per_tok=2),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, pad_token_id=0, eos_token_id=1,
                   attention_bias=True, num_experts=8, num_experts_per_tok=3, norm_topk_prob=True),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=17, pad_token_id=0, eos_token_id=1, num_experts=5,
                   num_experts_per_tok=5, tie_word_embeddings=True),
    ],
    "gpt_oss": [
        llama_like(**TINY, head_dim=6, num_local_experts=4, num_experts_per_tok=2, sliding_window=7,
                   rope_parameters=yarn(4.0)),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, num_local_experts=5,
                   num_experts_per_tok=3, sliding_window=13, attention_bias=False, rope_parameters=yarn(2.5)),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, layers=3, num_local_experts=7,
                   num_experts_per_tok=7, sliding_window=39, layer_types=LAYERS3[1:] + LAYERS3[:1],
                   tie_word_embeddings=True, rope_parameters=rope(100.0)),
    ],
    # The same with its experts in four bits, as it is published.
    "gpt_oss_mxfp4": [
        llama_like(hidden=32, heads=2, kv_heads=1, head_dim=8, d_ff=32, vocab=23, num_local_experts=3,
                   num_experts_per_tok=2, sliding_window=7, rope_parameters=yarn(4.0)),
        llama_like(hidden=64, heads=4, kv_heads=2, head_dim=10, d_ff=96, layers=3, num_local_experts=5,
                   num_experts_per_tok=2, sliding_window=13, rope_parameters=yarn(32.0)),
        llama_like(hidden=96, heads=4, kv_heads=1, head_dim=16, d_ff=64, num_local_experts=4, num_experts_per_tok=1,
                   sliding_window=39, rope_parameters=yarn(8.0)),
    ],
    "deepseek_v2": [
        # transformers' rotation wants even offsets there
        latent(hidden=12, heads=2, d_ff=14, vocab=23, q_rank=None, kv_rank=10, nope=6, turning=4, value=7,
               n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=9, n_shared_experts=2,
               first_k_dense_replace=1, topk_method="greedy", routed_scaling_factor=1.0),
        latent(hidden=36, heads=6, d_ff=41, layers=3, q_rank=20, kv_rank=18, nope=8, turning=6, value=10,
               n_routed_experts=12, num_experts_per_tok=3, moe_intermediate_size=19, n_shared_experts=1, n_group=4,
               topk_group=2, first_k_dense_replace=1, topk_method="group_limited_greedy", routed_scaling_factor=16.0,
               rope_parameters=rope(kind="yarn", factor=40.0, original_max_position_embeddings=16, mscale=0.707,
                                    mscale_all_dim=0.707)),
        latent(hidden=40, heads=5, d_ff=33, q_rank=7, kv_rank=34, nope=16, turning=8, value=5, n_routed_experts=6,
               num_experts_per_tok=6, moe_intermediate_size=5, n_shared_experts=3, topk_method="greedy",
               tie_word_embeddings=True, rope_parameters=rope(100.0)),
    ],
    "deepseek_v3": [
        latent(hidden=12, heads=2, d_ff=14, vocab=23, q_rank=11, kv_rank=10, nope=5, turning=4, value=6,
               n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=9, n_shared_experts=1, n_group=2,
               topk_group=1, first_k_dense_replace=1),
        latent(hidden=36, heads=6, d_ff=41, layers=3, q_rank=50, kv_rank=18, nope=8, turning=6, value=10,
               n_routed_experts=12, num_experts_per_tok=3, moe_intermediate_size=19, n_shared_experts=2, n_group=4,
               topk_group=2, first_k_dense_replace=1, norm_topk_prob=False, routed_scaling_factor=1.0,
               rope_parameters=rope(kind="yarn", factor=40.0, original_max_position_embeddings=16, mscale=1.0,
                                    mscale_all_dim=0.8)),
        latent(hidden=40, heads=5, d_ff=33, q_rank=None, kv_rank=33, nope=16, turning=8, value=4, n_routed_experts=8,
               num_experts_per_tok=4, moe_intermediate_size=5, n_shared_experts=1, n_group=1, topk_group=1,
               first_k_dense_replace=0, rope_interleave=False, tie_word_embeddings=True,
               rope_parameters=rope(100.0)),
    ],
}
SHAPES |= dense_shapes.SHAPES | expert_shapes.SHAPES | recurrent_shapes.SHAPES | renamed.SHAPES | wholes.SHAPES
FP4 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])  # E2M1; the next bit is the sign


def randomize(model, seed):
    """Weights large enough that attention is far from uniform and every bias and norm matters."""
    generator = torch.Generator().manual_seed(seed)
    scales_queries = "gemma4" in model.config.model_type  # where nothing else divides its scores
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        own = name.rpartition("norm_attn_norm.")[2]  # DBRX's name for both
        is_norm = "norm" in own or "ln_" in own
        if name.endswith("e_score_correction_bias"):  # where it is no buffer
            parameter.data = (noise * 0.05).bfloat16().float()
            continue
        if ("shared_transformer" in name or name.endswith(".linear.weight")) and parameter.dim() >= 2:
            parameter.data = noise * (0.3 / parameter.shape[-1]**0.5)  # a chain without a stream beside it
        elif "gate_up_proj" in name:  # that some are clamped
            parameter.data = noise * 2.0
        elif scales_queries and name.endswith("q_norm.weight"):
            parameter.data = (noise * 0.2 + 1.0) * parameter.numel()**-0.5
        elif is_norm:
            parameter.data = noise * 0.2 + (0.0 if name.endswith("bias") else 1.0)
        elif parameter.dim() >= 2:
            parameter.data = noise * (1.2 / parameter.shape[-1]**0.5)
        else:
            parameter.data = noise * 0.3
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.data = (torch.randn(buffer.shape, generator=generator) * 0.2).bfloat16().float()
        if name.endswith("layer_scalar"):
            buffer.data = (torch.rand(buffer.shape, generator=generator) * 0.5 + 0.6).bfloat16().float()


def to_mxfp4(weight):
    """(blocks, scales) of rows [..., columns]: of 32 columns 16 bytes and the exponent that they share."""
    groups = weight.unflatten(-1, (-1, 32))
    exponent = torch.floor(torch.log2(groups.abs().amax(-1))) - 2
    scaled = groups / torch.exp2(exponent)[..., None]
    quants = (scaled.abs()[..., None] - FP4).abs().argmin(-1) + 8 * (scaled < 0)
    return (quants[..., ::2] + 16 * quants[..., 1::2]).to(torch.uint8), (exponent + 127).to(torch.uint8)


def from_mxfp4(blocks, scales):
    quants = torch.stack([blocks % 16, blocks // 16], -1).flatten(-2).long()
    values = FP4[quants % 8] * torch.where(quants >= 8, -1.0, 1.0)
    return (values * torch.exp2(scales.float() - 127)[..., None]).flatten(-2)


def quantize_experts(model, folder):
    """Makes the experts of a model that is saved there MXFP4, in the folder and in the model."""
    saved = load_file(folder / "model.safetensors")
    for name, parameter in model.named_parameters():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            continue
        blocks, scales = to_mxfp4(parameter.data.float().transpose(1, 2).contiguous())
        parameter.data = from_mxfp4(blocks, scales).transpose(1, 2).contiguous()
        del saved[name]
        saved |= {name + "_blocks": blocks, name + "_scales": scales}
    save_file(saved, folder / "model.safetensors", {"format": "pt"})
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": {"quant_method": "mxfp4"}}))


def plain_type(name):
    """Without what tells several lists of shapes of one type apart."""
    for ending in ("_mxfp4", "_experts", "_narrow", "_relu2", "_quick_gelu", "_long"):
        name = name.removesuffix(ending)
    return renamed.TWINS.get(name, name)


def model_of(model_type, fields, seed):
    """(random model, configuration) of that shape."""
    if "text_config" in fields:
        model, config = wholes.model_of(fields)
    else:
        config = AutoConfig.for_model(plain_type(model_type), **fields)
        # Falcon's plain attention adds the slopes twice: its mask has them already.
        attention = "sdpa" if model_type == "falcon" else "eager"
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()
    text = fields.get("text_config", fields)
    if any(name in text for name in CHOSEN):  # one expert after another: grouped products want rows of whole 16 bytes
        model.set_experts_implementation("eager")
    randomize(model, seed)
    return model, config


def write_model(model_type, fields, folder, seed, dtype=torch.float32, n_tokens=N_TOKENS):
    """Writes a random model of that shape to `folder` and returns (token ids, logits [n_tokens, vocab_size])."""
    model, config = model_of(model_type, fields, seed)
    copy.deepcopy(model).to(dtype).save_pretrained(folder)
    if model_type.endswith("_mxfp4"):
        quantize_experts(model, folder)
    if "text_config" in fields:
        wholes.leave_out_most(folder)
    if model_type in renamed.TWINS:
        renamed.rename(model_type, folder)
    if model_type == "qwen3_vl_moe_text":  # as it is published: columns before rows
        saved = load_file(folder / "model.safetensors")
        turned = {n: t.transpose(1, 2).contiguous() if ".mlp.experts." in n else t for n, t in saved.items()}
        save_file(turned, folder / "model.safetensors", {"format": "pt"})
    for parameter in model.parameters():  # rotary frequencies are not rounded
        parameter.data = parameter.data.to(dtype).float()
    (folder / "generation_config.json").unlink(missing_ok=True)
    path = folder / "config.json"
    written = json.loads(path.read_text())
    written.pop("transformers_version", None)
    path.write_text(json.dumps(written, indent=1) + "\n")
    vocab_size = config.get_text_config().vocab_size
    tokens = [(7 * i + 3) % vocab_size for i in range(n_tokens)]
    with torch.no_grad():
        # Its class around both parts fails where there is no picture.
        of_texts = model.language_model if model_type == "llama4" else model
        logits = of_texts(torch.tensor([tokens]), use_cache=False).logits[0]
    return tokens, logits.numpy()

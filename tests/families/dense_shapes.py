"""More of shapes.py: decoders without experts."""
from settings import LAYERS3, TINY, latent, llama3_rope, llama_like, rope, without


def ministral_rope(**more):
    return rope(5000.0, "yarn", factor=4.0, original_max_position_embeddings=44, mscale=1.0, mscale_all_dim=1.0,
                llama_4_scaling_beta=0.1, **more)


def gemma4(full, n_shared=0, width=0, **more):
    """`full` is what heads of full layers have of their own."""
    return llama_like(**more, hidden_size_per_layer_input=width, num_kv_shared_layers=n_shared, global_head_dim=full[0],
                      num_global_key_value_heads=full[1], attention_k_eq_v=full[1] is not None,
                      vocab_size_per_layer_input=more["vocab"])


def unified(full, n_shared=0, **more):
    """The same without an input to every layer."""
    return llama_like(**more, num_kv_shared_layers=n_shared, global_head_dim=full[0],
                      num_global_key_value_heads=full[1], attention_k_eq_v=full[1] is not None, bos_token_id=1)


SPECIAL = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)

SHAPES = {
    "gemma4_text": [
        gemma4((16, None), 3, 6, hidden=24, heads=2, kv_heads=1, d_ff=28, vocab=23, layers=6, head_dim=8,
               sliding_window=7, use_double_wide_mlp=True, final_logit_softcapping=30.0, bos_token_id=1,
               layer_types=LAYERS3[:2] * 3,
               rope_parameters={"sliding_attention": rope(50.0), "full_attention": rope(
                   9000.0, "proportional", partial_rotary_factor=0.25)}),
        gemma4((10, 2), hidden=30, heads=6, kv_heads=3, d_ff=41, vocab=37, layers=7, head_dim=6, sliding_window=13,
               bos_token_id=1, rope_parameters={"sliding_attention": rope(50.0), "full_attention": rope(
                   9000.0, "proportional", partial_rotary_factor=0.6)}),
        gemma4((4, None), 1, 34, hidden=20, heads=5, kv_heads=1, d_ff=33, vocab=37, layers=3, head_dim=4,
               sliding_window=39, layer_types=["sliding_attention", "full_attention", "full_attention"]),
    ],
    "gemma4_text_experts": [
        gemma4((16, None), hidden=24, heads=2, kv_heads=1, d_ff=21, vocab=23, layers=3, head_dim=8,
               sliding_window=7, bos_token_id=1, layer_types=LAYERS3,
               enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=9),
        gemma4((16, None), 3, 6, hidden=24, heads=2, kv_heads=1, d_ff=28, vocab=23, layers=6, head_dim=8,
               sliding_window=7, use_double_wide_mlp=True, bos_token_id=1, layer_types=LAYERS3[:2] * 3,
               enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=9),
        gemma4((10, 2), hidden=30, heads=6, kv_heads=3, d_ff=21, vocab=37, layers=3, head_dim=6, sliding_window=13,
               bos_token_id=1, enable_moe_block=True, num_experts=9, top_k_experts=9, moe_intermediate_size=19),
    ],
    "apertus": [
        llama_like(**TINY, head_dim=6),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=600, layers=3, attention_bias=True,
                   rms_norm_eps=1e-3, rope_parameters=rope(100.0)),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, tie_word_embeddings=True, hidden_act="relu2"),
    ],
    "gemma4_unified_text": [
        unified((16, None), 3, hidden=24, heads=2, kv_heads=1, d_ff=28, vocab=23, layers=6, head_dim=8,
                sliding_window=7, use_double_wide_mlp=True, final_logit_softcapping=30.0,
                layer_types=LAYERS3[:2] * 3),
        unified((10, 2), hidden=30, heads=6, kv_heads=3, d_ff=41, layers=7, head_dim=6, sliding_window=13,
                rope_parameters={"sliding_attention": rope(50.0), "full_attention": rope(
                    9000.0, "proportional", partial_rotary_factor=0.6)}),
        unified((4, None), 1, hidden=20, heads=5, kv_heads=1, d_ff=33, layers=3, head_dim=4, sliding_window=39,
                layer_types=["sliding_attention", "full_attention", "full_attention"]),
    ],
    "ministral": [
        llama_like(**TINY, sliding_window=5, head_dim=6),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, sliding_window=13,
                   layer_types=LAYERS3),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, sliding_window=39, tie_word_embeddings=True),
    ],
    "ministral3": [  # queries are multiplied from position 44 on
        llama_like(**TINY, head_dim=6, rope_parameters=ministral_rope()),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, sliding_window=13,
                   rope_parameters=ministral_rope(beta_fast=16.0)),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, tie_word_embeddings=True,
                   rope_parameters=rope(100.0, llama_4_scaling_beta=0.0, original_max_position_embeddings=8)),
    ],
    "cwm": [
        llama_like(**TINY, head_dim=6, sliding_window=7, rope_parameters=llama3_rope()),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=5, sliding_window=13, mlp_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, layers=3, sliding_window=39,
                   layer_types=LAYERS3, rope_parameters=rope(100.0)),
    ],
    "internlm3": [
        llama_like(**TINY, head_dim=6),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, qkv_bias=True, bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, tie_word_embeddings=True,
                   rope_parameters=rope(5000.0, "dynamic", factor=6.0)),
    ],
    "iquestcoder": [
        llama_like(**TINY, head_dim=6),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, attention_bias=True, mlp_bias=True),
    ],
    "exaone": [
        llama_like(**TINY, head_dim=6),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, tie_word_embeddings=True,
                   rms_norm_eps=1e-3, rope_parameters=llama3_rope()),
        llama_like(hidden=40, heads=5, kv_heads=5, head_dim=8, d_ff=33, attention_bias=True, mlp_bias=True),
    ],
    "jais2": [
        llama_like(**TINY),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, attention_bias=False, mlp_bias=False,
                   layer_norm_eps=1e-3),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, tie_word_embeddings=True, hidden_act="silu"),
    ],
    "helium": [
        llama_like(**TINY, head_dim=6),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=6, d_ff=41, layers=3, attention_bias=True, mlp_bias=True),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, tie_word_embeddings=True,
                   rope_parameters=rope(100.0)),
    ],
    "hyperclovax": [
        llama_like(**TINY, embedding_multiplier=3.0, logits_scaling=0.4, residual_multiplier=0.4,
                   attention_multiplier=0.2),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, attention_bias=True, mlp_bias=True,
                   residual_multiplier=0.22),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, tie_word_embeddings=True, use_post_norm=False,
                   logits_scaling=2.0),
    ],
    "granite_swa": [
        llama_like(**TINY, sliding_window=7, embedding_multiplier=3.0, logits_scaling=2.5, residual_multiplier=0.4,
                   attention_multiplier=0.2, layer_rope_theta=[0, 500.0]),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=6, sliding_window=13, attention_bias=True,
                   mlp_bias=True, attention_multiplier=0.5),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, tie_word_embeddings=False, sliding_window=39,
                   layer_types=LAYERS3, attention_multiplier=0.3, layer_rope_theta=[100.0, 0, 9000.0]),
    ],
    "vaultgemma": [
        llama_like(**TINY, head_dim=8, sliding_window=7, query_pre_attn_scalar=5),
        llama_like(hidden=30, heads=6, kv_heads=3, head_dim=6, d_ff=41, layers=3, sliding_window=13,
                   attn_logit_softcapping=4.0, final_logit_softcapping=3.0, layer_types=LAYERS3),
        llama_like(hidden=20, heads=5, kv_heads=1, head_dim=4, d_ff=33, sliding_window=39, attention_bias=True,
                   attn_logit_softcapping=None, final_logit_softcapping=None),
    ],
    "nanochat": [
        llama_like(**TINY),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, attention_bias=True, rms_norm_eps=1e-3,
                   final_logit_softcapping=3.0),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, tie_word_embeddings=True, final_logit_softcapping=None,
                   hidden_act="silu", rope_parameters=rope(100.0)),
    ],
    "youtu": [
        latent(hidden=12, heads=2, d_ff=14, vocab=23, q_rank=11, kv_rank=10, nope=5, turning=4, value=6),
        latent(hidden=36, heads=6, d_ff=41, layers=3, q_rank=None, kv_rank=18, nope=8, turning=6, value=10,
               tie_word_embeddings=False, rope_interleave=False),
        latent(hidden=40, heads=5, d_ff=33, q_rank=50, kv_rank=33, nope=16, turning=8, value=4,
               rope_parameters=rope(kind="yarn", factor=40.0, original_max_position_embeddings=16, mscale=1.0,
                                    mscale_all_dim=0.8)),
    ],
    "gpt_bigcode": [
        dict(vocab_size=23, n_positions=64, n_embd=12, n_layer=2, n_head=2, n_inner=14),
        dict(vocab_size=37, n_positions=64, n_embd=33, n_layer=3, n_head=3, multi_query=False,
             activation_function="relu", tie_word_embeddings=False),
        dict(vocab_size=37, n_positions=40, n_embd=35, n_layer=2, n_head=7, scale_attn_weights=False, n_inner=41),
    ],
    "codegen": [
        dict(vocab_size=23, n_positions=64, n_embd=16, n_layer=2, n_head=4, rotary_dim=4, n_inner=14),
        dict(vocab_size=37, n_positions=64, n_embd=48, n_layer=3, n_head=8, rotary_dim=2, activation_function="gelu"),
    ],
    "biogpt": [
        without(llama_like(hidden=12, heads=2, d_ff=14, vocab=23), "num_key_value_heads"),
        without(llama_like(hidden=27, heads=3, d_ff=41, layers=3, scale_embedding=False, hidden_act="relu",
                           tie_word_embeddings=False), "num_key_value_heads"),
    ],
    "persimmon": [
        without(llama_like(hidden=16, heads=2, d_ff=14, vocab=23), "num_key_value_heads"),
        without(llama_like(hidden=36, heads=3, d_ff=41, layers=3, qk_layernorm=False, hidden_act="gelu",
                           rope_parameters=rope(100.0, partial_rotary_factor=1.0)), "num_key_value_heads"),
        without(llama_like(hidden=40, heads=5, d_ff=33, tie_word_embeddings=True, layer_norm_eps=1e-3),
                "num_key_value_heads"),
    ],
    "gpt_neox_japanese": [
        without(llama_like(hidden=16, heads=2, vocab=23, intermediate_multiple_size=2), "num_key_value_heads",
                "intermediate_size"),
        without(llama_like(hidden=36, heads=3, layers=3, hidden_act="relu", intermediate_multiple_size=1,
                           rope_parameters=rope(100.0, partial_rotary_factor=0.5)), "num_key_value_heads",
                "intermediate_size"),
        without(llama_like(hidden=40, heads=5, layers=1, tie_word_embeddings=False, layer_norm_eps=1e-3),
                "num_key_value_heads", "intermediate_size"),
    ],
    "xglm": [
        dict(vocab_size=23, d_model=12, num_layers=2, attention_heads=2, ffn_dim=14, max_position_embeddings=64),
        dict(vocab_size=37, d_model=27, num_layers=3, attention_heads=3, ffn_dim=41, max_position_embeddings=64,
             activation_function="relu", scale_embedding=False, tie_word_embeddings=False),
        dict(vocab_size=37, d_model=40, num_layers=2, attention_heads=5, ffn_dim=33, max_position_embeddings=40),
    ],
    "modernbert-decoder": [
        without(llama_like(hidden=12, heads=2, d_ff=14, vocab=23, layers=3, local_attention=14, **SPECIAL),
                "num_key_value_heads"),
        without(llama_like(hidden=36, heads=6, d_ff=41, layers=5, local_attention=26, norm_bias=True, mlp_bias=True,
                           attention_bias=True, classifier_bias=True, decoder_bias=False,
                           classifier_activation="relu", hidden_activation="silu", **SPECIAL), "num_key_value_heads"),
        without(llama_like(hidden=40, heads=5, d_ff=33, layers=2, local_attention=78, tie_word_embeddings=False,
                           layer_types=LAYERS3[:2], norm_eps=1e-3, **SPECIAL,
                           rope_parameters={"sliding_attention": rope(50.0), "full_attention": rope(9000.0)}),
                "num_key_value_heads"),
    ],
    "hunyuan_v1_dense": [
        llama_like(**TINY, head_dim=8, rope_parameters=rope(50.0, "dynamic", factor=1.0, alpha=20.0)),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, attention_bias=True,
                   rms_norm_eps=1e-3, rope_parameters=rope(5000.0, "dynamic", factor=6.0)),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33, tie_word_embeddings=True,
                   rope_parameters=rope(5000.0, "yarn", factor=4.0, original_max_position_embeddings=16)),
    ],
    "minicpm3": [
        latent(hidden=12, heads=2, d_ff=14, vocab=23, q_rank=11, kv_rank=10, nope=5, turning=4, value=6),
        latent(hidden=36, heads=6, d_ff=41, layers=3, q_rank=None, kv_rank=18, nope=8, turning=6, value=None,
               tie_word_embeddings=False, scale_emb=3.0, scale_depth=None, dim_model_base=None, rms_norm_eps=1e-3,
               rope_parameters=rope(100.0)),
        latent(hidden=40, heads=5, d_ff=33, q_rank=50, kv_rank=33, nope=16, turning=8, value=4, scale_depth=0.7,
               dim_model_base=7, rope_parameters=rope(
                   kind="longrope", short_factor=[1.0, 1.25, 2.0, 2.5], long_factor=[2.0, 4.0, 8.0, 9.0],
                   original_max_position_embeddings=44)),
    ],
}

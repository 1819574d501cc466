"""More configurations of shapes.py: decoders with recurrent layers."""
from settings import TINY, llama_like, rope, without


def layers(kind, *attending, of):
    return ["full_attention" if i in attending else kind for i in range(of)]


def delta(key_heads, value_heads, key_dim, value_dim, kernel=4):
    return dict(linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, linear_key_head_dim=key_dim,
                linear_value_head_dim=value_dim, linear_conv_kernel_dim=kernel)


def partly(share, theta=10000.0):
    return rope(theta, partial_rotary_factor=share)


SHAPES = {
    "lfm2": [
        llama_like(**TINY, layer_types=layers("conv", 1, of=2), block_auto_adjust_ff_dim=False),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=4, layer_types=layers("conv", 2, of=4),
                   conv_bias=True, conv_L_cache=4, block_multiple_of=8, block_ffn_dim_multiplier=1.3,
                   tie_word_embeddings=False),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, full_attn_idxs=[1], conv_L_cache=2,
                   block_multiple_of=3, rope_parameters=rope(100.0)),
    ],
    "lfm2_moe": [
        llama_like(**TINY, layer_types=layers("conv", 1, of=2), num_experts=4, num_experts_per_tok=2,
                   moe_intermediate_size=9, num_dense_layers=1),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=4, layer_types=layers("conv", 1, 2, of=4),
                   conv_bias=True, num_experts=7, num_experts_per_tok=3, moe_intermediate_size=19, num_dense_layers=2,
                   norm_topk_prob=False, use_expert_bias=False, routed_scaling_factor=2.5),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, layer_types=layers("conv", 0, of=3),
                   num_experts=5, num_experts_per_tok=5, moe_intermediate_size=5, num_dense_layers=0,
                   tie_word_embeddings=False),
    ],
    "qwen3_next": [
        llama_like(**TINY, head_dim=8, layer_types=layers("linear_attention", 1, of=2), num_experts=4,
                   num_experts_per_tok=2, moe_intermediate_size=9, shared_expert_intermediate_size=7,
                   **delta(1, 2, 4, 6)),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=12, d_ff=41, layers=3, num_experts=7,
                   layer_types=layers("linear_attention", 1, of=3), num_experts_per_tok=6, moe_intermediate_size=19, shared_expert_intermediate_size=20,
                   norm_topk_prob=False, mlp_only_layers=[0], rope_parameters=partly(0.5), **delta(2, 6, 17, 18, 3)),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=16, d_ff=33, layers=3, num_experts=5,
                   num_experts_per_tok=5, moe_intermediate_size=5, shared_expert_intermediate_size=9,
                   decoder_sparse_step=2, layer_types=layers("linear_attention", 2, of=3),
                   rope_parameters=partly(0.25, 100.0), tie_word_embeddings=True, **delta(3, 3, 16, 32, 2)),
    ],
    "qwen3_5_text": [
        llama_like(**TINY, head_dim=8, layer_types=layers("linear_attention", 1, of=2), **delta(1, 2, 4, 6)),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=12, d_ff=41, layers=4, rope_parameters=partly(0.5),
                   **delta(2, 6, 17, 18, 3)),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=16, d_ff=33, layers=3,
                   layer_types=layers("linear_attention", 0, of=3), rope_parameters=partly(0.25, 100.0),
                   tie_word_embeddings=True, **delta(3, 3, 16, 32, 2)),
    ],
    "qwen3_5_moe_text": [
        without(llama_like(**TINY, head_dim=8, layer_types=layers("linear_attention", 1, of=2), num_experts=4,
                           num_experts_per_tok=2, moe_intermediate_size=9, shared_expert_intermediate_size=7,
                           **delta(1, 2, 4, 6)), "intermediate_size"),
        without(llama_like(hidden=36, heads=6, kv_heads=3, head_dim=12, layers=4, num_experts=7, num_experts_per_tok=3,
                           moe_intermediate_size=19, shared_expert_intermediate_size=20, rope_parameters=partly(0.5),
                           **delta(2, 6, 17, 18, 3)), "intermediate_size"),
        without(llama_like(hidden=40, heads=5, kv_heads=1, head_dim=16, layers=3, num_experts=5, num_experts_per_tok=5,
                           moe_intermediate_size=5, shared_expert_intermediate_size=9, tie_word_embeddings=True,
                           layer_types=layers("linear_attention", 0, of=3), rope_parameters=partly(0.25, 100.0),
                           **delta(3, 3, 16, 32, 2)), "intermediate_size"),
    ],
}

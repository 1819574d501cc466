"""More configurations of shapes.py: decoders with recurrent layers."""
from settings import TINY, latent, llama_like, rope, without


def layers(kind, *attending, of):
    return ["full_attention" if i in attending else kind for i in range(of)]


def delta(key_heads, value_heads, key_dim, value_dim, kernel=4):
    return dict(linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, linear_key_head_dim=key_dim,
                linear_value_head_dim=value_dim, linear_conv_kernel_dim=kernel)


def mamba(heads, dim, groups, state, kernel=4, **more):
    return dict(mamba_n_heads=heads, mamba_d_head=dim, mamba_n_groups=groups, mamba_d_state=state, mamba_d_conv=kernel,
                **more)


def mamba2(hidden, heads, groups, state, layers=2, vocab=37, **more):
    return dict(hidden_size=hidden, num_heads=heads, head_dim=2 * hidden // heads, n_groups=groups, state_size=state,
                num_hidden_layers=layers, vocab_size=vocab, **more)


def selective(hidden, state, layers=2, vocab=37, **more):
    return dict(hidden_size=hidden, state_size=state, num_hidden_layers=layers, vocab_size=vocab, **more)


def jamba(period, offset, state, rank, kernel=4, expert_period=2, expert_offset=1, **more):
    return llama_like(attn_layer_period=period, attn_layer_offset=offset, expert_layer_period=expert_period,
                      expert_layer_offset=expert_offset, mamba_d_state=state, mamba_dt_rank=rank, mamba_d_conv=kernel,
                      **more)


def falcon_h1(inner, n_states, groups, state, *, attends=(1.0, 1.0, 1.0), recurs=(1.0, 1.0), maps=(1.0,) * 5,
              feeds=(1.0, 1.0), **more):
    return llama_like(mamba_d_ssm=inner, mamba_n_heads=n_states, mamba_d_head=inner // n_states, mamba_n_groups=groups,
                      mamba_d_state=state, attention_in_multiplier=attends[0], key_multiplier=attends[1],
                      attention_out_multiplier=attends[2], ssm_in_multiplier=recurs[0], ssm_out_multiplier=recurs[1],
                      ssm_multipliers=list(maps), mlp_multipliers=list(feeds), **more)


def nemotron(kinds, n_states, dim, groups, state, **more):
    return without(llama_like(layers_block_type=kinds, mamba_num_heads=n_states, mamba_head_dim=dim, n_groups=groups,
                              ssm_state_size=state, **more), "num_hidden_layers")


def kimi(fields, heads, dim, kernel=4, **more):
    return fields | dict(linear_num_heads=heads, linear_head_dim=dim, linear_conv_kernel_dim=kernel, pad_token_id=0,
                         bos_token_id=1, eos_token_id=2, **more)


def ling(fields, dim, kernel=4, **more):
    return fields | dict(head_dim=dim, short_conv_kernel_size=kernel, **ENDS, **more)


def zamba(hidden, heads, states, groups, state, kinds, **more):
    return dict(hidden_size=hidden, num_attention_heads=heads, n_mamba_heads=states, mamba_ngroups=groups,
                mamba_d_state=state, layers_block_type=[HYBRID if k == "h" else MAMBA for k in kinds],
                num_hidden_layers=len(kinds), max_position_embeddings=64, **more)


ENDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
MAMBA, ATTENDS, FEEDS, MOE, HYBRID = "linear_attention", "full_attention", "mlp", "moe", "hybrid"


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
    "lfm3": [
        llama_like(**TINY, **ENDS, head_dim=8, layers=3, sliding_window=5,
                   layer_types=["conv", "sliding_attention", "full_attention"]),
        llama_like(hidden=36, heads=6, kv_heads=3, head_dim=12, d_ff=41, layers=6, conv_bias=True, conv_L_cache=4,
                   sliding_window=7, attention_bias=True, tie_word_embeddings=False, **ENDS,
                   rope_parameters={"sliding_attention": rope(50.0), "full_attention": partly(0.75, 900.0)}),
        llama_like(hidden=40, heads=5, kv_heads=1, head_dim=16, d_ff=33, layers=3, use_sandwich_norm=False,
                   layer_types=["full_attention", "conv", "sliding_attention"], use_attention_gate=False,
                   conv_L_cache=2, sliding_window=3, **ENDS),
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
    "olmo_hybrid": [
        llama_like(**TINY, pad_token_id=0, eos_token_id=1, layer_types=layers("linear_attention", 1, of=2),
                   rope_parameters=rope(None), **delta(2, 2, 4, 6)),
        llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=4, pad_token_id=0, eos_token_id=1,
                   rope_parameters=rope(50.0), attention_bias=True, rms_norm_eps=1e-3, **delta(2, 6, 17, 18, 3)),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, pad_token_id=0, eos_token_id=1,
                   layer_types=layers("linear_attention", 0, of=3), tie_word_embeddings=True,
                   linear_allow_neg_eigval=False, linear_conv_kernel_dim=2),
    ],
    "kimi_linear": [
        kimi(latent(hidden=12, heads=2, d_ff=14, vocab=23, q_rank=None, kv_rank=10, nope=5, turning=4, value=6),
             2, 6, layer_types=layers("linear_attention", 1, of=2), mlp_layer_types=["dense", "sparse"],
             num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=9),
        kimi(latent(hidden=36, heads=6, d_ff=41, layers=5, q_rank=20, kv_rank=18, nope=8, turning=6, value=10), 6, 17,
             kernel=3, num_local_experts=6, num_experts_per_tok=4, moe_intermediate_size=19, n_shared_experts=2,
             n_group=3, topk_group=2, norm_topk_prob=False, rms_norm_eps=1e-3, routed_scaling_factor=1.5),
        kimi(latent(hidden=40, heads=5, d_ff=33, layers=3, q_rank=None, kv_rank=33, nope=16, turning=8, value=4), 3, 16,
             kernel=2, layer_types=layers("linear_attention", 0, of=3), mlp_layer_types=["sparse"] * 3,
             num_local_experts=5, num_experts_per_tok=5, moe_intermediate_size=5, routed_scaling_factor=1.0),
    ],
    "bailing_hybrid": [
        ling(latent(hidden=12, heads=2, d_ff=14, vocab=23, q_rank=None, kv_rank=10, nope=5, turning=4, value=6),
             6, layer_types=layers("linear_attention", 1, of=2), mlp_layer_types=["dense", "sparse"],
             num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=9, n_group=1, topk_group=1),
        ling(latent(hidden=36, heads=6, d_ff=41, layers=5, q_rank=20, kv_rank=18, nope=8, turning=6, value=40), 17,
             kernel=3, num_local_experts=6, num_experts_per_tok=4, moe_intermediate_size=19, n_shared_experts=2,
             n_group=3, topk_group=2, norm_topk_prob=False, rms_norm_eps=1e-3, routed_scaling_factor=1.5,
             layer_group_size=3, kda_lower_bound=-2.5, first_k_dense_replace=1),
        ling(latent(hidden=40, heads=5, d_ff=33, layers=3, q_rank=None, kv_rank=33, nope=16, turning=8, value=4), 16,
             kernel=2, layer_types=layers("linear_attention", 0, of=3), mlp_layer_types=["sparse"] * 3,
             num_local_experts=5, num_experts_per_tok=5, moe_intermediate_size=5, n_group=1, topk_group=1,
             routed_scaling_factor=1.0, kda_safe_gate=False, rope_parameters=rope(100.0)),
    ],
    "mamba2": [
        mamba2(12, 2, 1, 5, vocab=23),
        mamba2(36, 6, 3, 17, layers=3, conv_kernel=3, use_bias=True, time_step_limit=[0.2, 0.9]),
        mamba2(40, 5, 1, 16, conv_kernel=2, use_conv_bias=False, tie_word_embeddings=True),
    ],
    "bamba": [
        llama_like(hidden=16, heads=2, kv_heads=1, d_ff=14, vocab=23, attn_layer_indices=[1], **mamba(2, 16, 1, 5)),
        llama_like(hidden=48, heads=6, kv_heads=3, d_ff=41, layers=3, attn_layer_indices=[0], attention_bias=True,
                   mlp_bias=True, rope_parameters=rope(100.0), **mamba(6, 16, 3, 17, 3, mamba_proj_bias=True)),
        llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, attn_layer_indices=[1, 2],
                   tie_word_embeddings=True, **mamba(5, 16, 1, 16, 2, mamba_conv_bias=False)),
    ],
    "mamba": [
        selective(12, 5, vocab=23),
        selective(36, 17, layers=3, conv_kernel=3, use_bias=True, time_step_rank=7, tie_word_embeddings=False),
        selective(40, 16, conv_kernel=2, use_conv_bias=False, expand=3, layer_norm_epsilon=1e-3),
    ],
    "falcon_mamba": [
        selective(12, 5, vocab=23),
        selective(36, 17, layers=3, conv_kernel=3, use_bias=True, time_step_rank=7, mixer_rms_eps=1e-2),
        selective(40, 16, conv_kernel=2, use_conv_bias=False, tie_word_embeddings=False),
    ],
    "jamba": [
        jamba(2, 1, 5, 3, **TINY, num_experts=4, num_experts_per_tok=2),
        jamba(3, 0, 17, "auto", 3, 2, 0, hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, num_experts=7,
              num_experts_per_tok=6, mamba_proj_bias=True),
        jamba(2, 0, 16, 20, 2, hidden=40, heads=5, kv_heads=1, d_ff=33, layers=3, num_experts=1,
              num_experts_per_tok=1, mamba_conv_bias=False, mamba_expand=1, tie_word_embeddings=True),
    ],
    "falcon_h1": [
        falcon_h1(24, 2, 1, 5, **TINY, maps=(0.5, 2.0, 0.25, 4.0, 0.5), recurs=(2.0, 0.5), attends=(0.5, 2.0, 4.0),
                  feeds=(2.0, 0.5), embedding_multiplier=4.0, lm_head_multiplier=0.25),
        falcon_h1(54, 6, 3, 17, hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3, mamba_d_conv=3,
                  mamba_rms_norm=True, mamba_norm_before_gate=False, maps=(0.35, 0.7, 1.4, 2.1, 0.6), recurs=(1.3, 0.3),
                  attends=(0.9, 0.4, 1.7), feeds=(0.9, 0.6), embedding_multiplier=5.6, lm_head_multiplier=0.04),
        falcon_h1(80, 5, 1, 16, hidden=40, heads=5, kv_heads=1, head_dim=16, d_ff=33, mamba_rms_norm=True,
                  mamba_conv_bias=False, time_step_limit=[0.3, 0.9], rope_parameters=rope(100.0)),
    ],
    "nemotron_h": [
        nemotron([MAMBA, FEEDS, ATTENDS], 2, 6, 1, 5, **TINY, head_dim=8),
        nemotron([MAMBA, FEEDS, MAMBA, ATTENDS, FEEDS], 6, 7, 3, 17, hidden=36, heads=6, kv_heads=3, head_dim=10,
                 d_ff=41, mlp_bias=True, use_bias=True, conv_kernel=3, time_step_min=0.4),
        nemotron([MAMBA, MOE, ATTENDS, MOE], 4, 16, 2, 16, hidden=40, heads=5, kv_heads=1, head_dim=8, d_ff=33,
                 n_routed_experts=5, num_experts_per_tok=3, moe_intermediate_size=9,
                 moe_shared_expert_intermediate_size=11, routed_scaling_factor=2.5, use_conv_bias=False,
                 tie_word_embeddings=True),
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
    "zamba2": [
        zamba(12, 2, 3, 1, 5, "mhh", vocab_size=23, intermediate_size=14, adapter_rank=3),
        zamba(36, 6, 4, 2, 17, "hmhh", vocab_size=37, intermediate_size=41, adapter_rank=5, num_mem_blocks=2,
              use_mem_rope=True, use_shared_attention_adapter=True, mamba_d_conv=3, time_step_min=0.3,
              rope_parameters=rope(100.0), tie_word_embeddings=False),
        zamba(20, 4, 5, 5, 16, "mmhm", vocab_size=37, intermediate_size=33, adapter_rank=7, num_key_value_heads=2,
              add_bias_linear=True, mamba_expand=3, mamba_d_conv=2, hidden_act="silu", rms_norm_eps=1e-3),
    ],
}

"""What models of gguf_models.py there are: what such a file can say, for some numbers follow from the architecture's name."""
import shapes
from recurrent_shapes import delta, mamba2, partly
from settings import TINY, llama_like, rope

TOKENS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
# Architectures that no type of transformers is, and the type that computes the same: shapes are that type's.
TWINS = {"internlm2": "llama", "xverse": "llama", "baichuan": "llama", "pangu-embedded": "llama",
         "qwen": "qwen2", "orion": "stablelm", "minicpm": "granite", "codeshell": "starcoder2",
         "bailingmoe2": "glm4_moe", "granitehybrid": "granitemoehybrid"}


def at_intervals(fields, interval):
    """All layers recurrent but every so many."""
    return {key: value for key, value in fields.items() if key != "layer_types"} | {"full_attention_interval": interval}


SHAPES = {  # the first of each is the smallest
    "gemma": shapes.SHAPES["gemma"][:2],
    "gemma2": [llama_like(**TINY, head_dim=8, sliding_window=7, query_pre_attn_scalar=8),
               llama_like(hidden=30, heads=6, kv_heads=3, head_dim=6, d_ff=41, layers=3, sliding_window=13,
                          query_pre_attn_scalar=6)],
    "gemma3_text": [llama_like(**TINY, head_dim=8, layers=6, sliding_window=7, query_pre_attn_scalar=8,
                               rope_parameters={"sliding_attention": rope(10000.0),
                                                "full_attention": rope(90000.0, "linear", factor=8.0)}),
                    llama_like(hidden=30, heads=6, kv_heads=3, head_dim=6, d_ff=41, layers=7, sliding_window=13,
                               query_pre_attn_scalar=6)],
    "gemma4_text": shapes.SHAPES["gemma4_text"],
    "phi": [shapes.SHAPES["phi"][0],
            llama_like(hidden=48, heads=6, kv_heads=3, d_ff=41, rope_parameters=rope(partial_rotary_factor=0.5))],
    "phi3": shapes.SHAPES["phi3"][:2],
    "phi3_long": shapes.SHAPES["phi3_long"],
    "gpt_neox": shapes.SHAPES["gpt_neox"][:2],
    "bloom": shapes.SHAPES["bloom"][:2],
    "mpt": [shapes.SHAPES["mpt"][0], shapes.SHAPES["mpt"][2]],
    "falcon": shapes.SHAPES["falcon"][:2],
    "stablelm": shapes.SHAPES["stablelm"],
    "starcoder2": shapes.SHAPES["starcoder2"],
    "olmo": [shapes.SHAPES["olmo"][0], shapes.SHAPES["olmo"][2]],
    "olmo2": [shapes.SHAPES["olmo2"][0], shapes.SHAPES["olmo2"][2]],
    "olmo3": [llama_like(**TINY, layers=4, pad_token_id=0, eos_token_id=1, sliding_window=7,
                         layer_types=["sliding_attention", "full_attention"] * 2,
                         rope_parameters={"sliding_attention": rope(50.0), "full_attention": rope(
                             50.0, "yarn", factor=4.0, original_max_position_embeddings=16)}),
              shapes.SHAPES["olmo3"][2]],
    "granite": shapes.SHAPES["granite"],
    "arcee": shapes.SHAPES["arcee"][:2],
    "seed_oss": shapes.SHAPES["seed_oss"][:2],
    "nemotron": shapes.SHAPES["nemotron"][:2],
    "bitnet": [llama_like(**TINY, tie_word_embeddings=True, hidden_act="silu"), shapes.SHAPES["bitnet"][2]],
    "qwen2_vl_text": shapes.SHAPES["qwen2_vl_text"][:1],
    "qwen2_5_vl_text": shapes.SHAPES["qwen2_5_vl_text"],
    "qwen3_vl_text": shapes.SHAPES["qwen3_vl_text"][:1],
    "glm4v_text": shapes.SHAPES["glm4v_text"],
    "ministral3": [shapes.SHAPES["ministral3"][0]],
    "jais2": [shapes.SHAPES["jais2"][0], llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3)],
    "gpt_bigcode": [shapes.SHAPES["gpt_bigcode"][0]],
    "exaone": [shapes.SHAPES["exaone"][0],
               llama_like(hidden=36, heads=6, kv_heads=3, head_dim=6, d_ff=41, tie_word_embeddings=True)],
    "internlm2": [llama_like(**TINY), llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, rope_parameters=rope(100.0))],
    "xverse": [llama_like(**TINY | dict(kv_heads=2))],
    "pangu-embedded": [llama_like(**TINY, attention_bias=True)],
    "baichuan": [llama_like(hidden=4, heads=1, kv_heads=1, d_ff=4, layers=32, vocab=7)],
    "qwen": [llama_like(**TINY | dict(kv_heads=2))],
    "orion": [llama_like(**TINY, rope_parameters=rope(partial_rotary_factor=1.0)),
              llama_like(hidden=36, heads=6, kv_heads=6, d_ff=41, layers=3,
                         rope_parameters=rope(100.0, partial_rotary_factor=1.0))],
    "minicpm": [llama_like(**TINY | dict(heads=3), embedding_multiplier=3.0, logits_scaling=2.5,
                           residual_multiplier=0.4, attention_multiplier=0.5),
                llama_like(hidden=24, heads=6, kv_heads=3, d_ff=41, layers=3, tie_word_embeddings=True,
                           embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.5)],
    "codeshell": [llama_like(**TINY, sliding_window=None, tie_word_embeddings=False)],
    "cohere": shapes.SHAPES["cohere"][:2],
    "cohere2": [llama_like(**TINY, head_dim=6, layers=4, sliding_window=7, logit_scale=0.5),
                shapes.SHAPES["cohere2"][1]],
    "smollm3": [llama_like(**TINY, layers=4, **TOKENS),
                llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=5, **TOKENS)],
    "ernie4_5": shapes.SHAPES["ernie4_5"][:1],
    "glm": shapes.SHAPES["glm"][:2],
    "glm4": shapes.SHAPES["glm4"][:2],
    "exaone4": [llama_like(**TINY, layers=4, sliding_window=7),
                llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=5, sliding_window=13)],
    # Every layer has experts there; whether their weights are normalized follows from the name.
    "mixtral": [shapes.SHAPES["mixtral"][0], shapes.SHAPES["mixtral"][1]],
    "qwen2_moe": [shapes.SHAPES["qwen2_moe"][0], shapes.SHAPES["qwen2_moe"][2]],
    "qwen3_moe": [shapes.SHAPES["qwen3_moe"][0],
                  llama_like(hidden=36, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, num_experts=9,
                             num_experts_per_tok=4, moe_intermediate_size=20, norm_topk_prob=True)],
    "olmoe": [shapes.SHAPES["olmoe"][0], shapes.SHAPES["olmoe"][2]],
    "gpt_oss": shapes.SHAPES["gpt_oss"][:2],
    "gpt_oss_mxfp4": shapes.SHAPES["gpt_oss_mxfp4"],
    "deepseek_v2": shapes.SHAPES["deepseek_v2"],  # as files of 2024 have it: keys' and values' maps in one tensor
    "deepseek_v3": [shapes.SHAPES["deepseek_v3"][0],
                    shapes.SHAPES["deepseek_v3"][1] | dict(rope_parameters=rope(
                        kind="yarn", factor=40.0, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=1.0))],
    "glm4_moe": shapes.SHAPES["glm4_moe"],
    "dots1": [shapes.SHAPES["dots1"][0], shapes.SHAPES["dots1"][2] | dict(layer_types=None, sliding_window=None)],
    "exaone_moe": [llama_like(**TINY, head_dim=8, layers=4, num_experts=4, num_experts_per_tok=2,
                              moe_intermediate_size=9, num_shared_experts=1, sliding_window=7),
                   shapes.SHAPES["exaone_moe"][1] | dict(mlp_layer_types=None, first_k_dense_replace=2)],
    "minimax_m2": shapes.SHAPES["minimax_m2"],
    "ernie4_5_moe": [shapes.SHAPES["ernie4_5_moe"][0], shapes.SHAPES["ernie4_5_moe"][2]],
    "granitemoe": shapes.SHAPES["granitemoe"],
    "granitemoeshared": shapes.SHAPES["granitemoeshared"],
    "granitemoehybrid": shapes.SHAPES["granitemoehybrid"][:2],
    "qwen3_vl_moe_text": shapes.SHAPES["qwen3_vl_moe_text"][:1],
    "qwen3_5_text": [at_intervals(fields, 2) for fields in
                     [llama_like(**TINY, head_dim=8, **delta(2, 4, 4, 6)), *shapes.SHAPES["qwen3_5_text"]]],
    "qwen3_5_moe_text": [at_intervals(fields, 2) for fields in shapes.SHAPES["qwen3_5_moe_text"]],
    "qwen3_next": [at_intervals(shapes.SHAPES["qwen3_next"][0], 2),
                   at_intervals(llama_like(hidden=36, heads=6, kv_heads=3, head_dim=12, d_ff=41, layers=3, num_experts=7,
                                           num_experts_per_tok=3, moe_intermediate_size=19, rope_parameters=partly(0.5),
                                           shared_expert_intermediate_size=20, **delta(2, 6, 17, 18, 3)), 3)],
    "lfm2": [shapes.SHAPES["lfm2"][0], shapes.SHAPES["lfm2"][2]],
    "lfm2_moe": [shapes.SHAPES["lfm2_moe"][0], shapes.SHAPES["lfm2_moe"][2] | dict(tie_word_embeddings=True)],
    # Such files do not bound steps, and have no biases of maps.
    "mamba2": [shapes.SHAPES["mamba2"][0], mamba2(36, 6, 3, 17, layers=3, conv_kernel=3), shapes.SHAPES["mamba2"][2]],
    "mamba": [shapes.SHAPES["mamba"][0], shapes.SHAPES["mamba"][1] | dict(use_bias=False), shapes.SHAPES["mamba"][2]],
    # Such files have one epsilon.
    "falcon_mamba": [fields | dict(use_bias=False, mixer_rms_eps=1e-5) for fields in shapes.SHAPES["falcon_mamba"]],
    "jamba": [fields | dict(mamba_proj_bias=False) for fields in shapes.SHAPES["jamba"]],
    "falcon_h1": shapes.SHAPES["falcon_h1"][:2],
    "nemotron_h": [fields | dict(use_bias=False, time_step_min=1e-9, tie_word_embeddings=False) for fields in shapes.SHAPES["nemotron_h"]],
    "granitehybrid": [shapes.SHAPES["granitemoehybrid"][3] | dict(position_embedding_type="rope"),
                      shapes.SHAPES["granitemoehybrid"][4] | dict(mamba_proj_bias=False)],
    # Ling 2.0, which transformers has no class of, computes what GLM 4.5 does.
    "bailingmoe2": [llama_like(hidden=16, heads=2, kv_heads=1, d_ff=14, vocab=23, n_routed_experts=4,
                               num_experts_per_tok=2, moe_intermediate_size=9, n_shared_experts=1, n_group=2,
                               topk_group=1, use_qk_norm=True),
                    llama_like(hidden=32, heads=4, d_ff=41, layers=4, n_routed_experts=12, num_experts_per_tok=3,
                               moe_intermediate_size=19, n_shared_experts=1, n_group=4, topk_group=2, use_qk_norm=True,
                               first_k_dense_replace=2, routed_scaling_factor=2.5, rope_parameters=rope(
                                   100.0, partial_rotary_factor=1.0))],
}

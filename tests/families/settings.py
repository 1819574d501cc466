"""Settings that the configurations of shapes.py share."""


def llama_like(hidden=24, heads=4, kv_heads=2, d_ff=28, layers=2, vocab=37, **more):
    return dict(vocab_size=vocab, hidden_size=hidden, intermediate_size=d_ff, num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=64, **more)


def without(fields, *names):
    return {key: value for key, value in fields.items() if key not in names}


def rope(theta=10000.0, kind="default", **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def llama3_rope():
    return rope(5000.0, "llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=16)


def yarn(factor):
    """gpt-oss' settings."""
    return rope(150000.0, "yarn", factor=factor, original_max_position_embeddings=16, truncate=False)


def seeing(text, **more):
    """A model whose text model that is, with the smallest part that sees."""
    vision = dict(depth=1, hidden_size=8, intermediate_size=8, num_heads=2, patch_size=2, num_position_embeddings=4,
                  out_hidden_size=text["hidden_size"], deepstack_visual_indexes=[0])
    return dict(model_type="qwen3_vl_moe", text_config=dict(text, model_type="qwen3_vl_moe_text"), vision_config=vision,
                image_token_id=2, video_token_id=3, vision_start_token_id=4, vision_end_token_id=5, **more)


def latent(heads, q_rank, kv_rank, nope, turning, value, **more):
    """DeepSeek's attention."""
    return llama_like(heads=heads, kv_heads=heads, q_lora_rank=q_rank, kv_lora_rank=kv_rank, qk_nope_head_dim=nope,
                      qk_rope_head_dim=turning, v_head_dim=value, **more)


TINY = dict(hidden=12, heads=2, kv_heads=1, d_ff=14, vocab=23)
LAYERS3 = ["sliding_attention", "full_attention", "sliding_attention"]

"""Small random models of pictures, or of sounds, and texts: what their models of texts make of texts alone.

SHAPES[name] lists their configurations. The model of texts has the fields that are given; the rest of the model is
what transformers has by default, made small. The name is the text model's type where no other family reads it, else the
whole's.
"""
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForImageTextToText, AutoModelForMultimodalLM

from dense_shapes import gemma4, llama3_rope, ministral_rope, unified
from recurrent_shapes import delta, layers
from settings import LAYERS3, TINY, llama_like, rope, without

WIDTHS = "hidden_size", "embed_dim", "d_model", "width", "out_hidden_size", "output_dim", "projection_dim", "hidden_dim"
SMALL = dict.fromkeys(WIDTHS, 16) | dict.fromkeys(("intermediate_size", "ffn_dim", "mlp_dim"), 16) | dict.fromkeys(
    ("num_hidden_layers", "depth", "num_layers", "n_layers", "encoder_layers"), 1) | dict.fromkeys(
    ("num_heads", "num_attention_heads", "encoder_attention_heads", "num_key_value_heads"), 2) | {"image_size": 28}


def whole(model_type, text_type, of_whole={}, **text):
    return {"model_type": model_type, "text_config": {"model_type": text_type, **text}, **of_whole}


def sections(theta, *numbers):
    """How many pairs turn by a position in time, in height and in width."""
    return rope(theta, mrope_section=list(numbers))


SHAPES = {
    "qwen2_vl_text": [
        whole("qwen2_vl", "qwen2_vl_text", **llama_like(**TINY, rope_parameters=sections(100.0, 1, 1, 1))),
        whole("qwen2_vl", "qwen2_vl_text", **llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=3,
              rope_parameters=sections(5000.0, 1, 1, 1), use_sliding_window=True, sliding_window=13,
              max_window_layers=1)),
    ],
    "qwen2_5_vl_text": [
        whole("qwen2_5_vl", "qwen2_5_vl_text", **llama_like(**TINY, rope_parameters=sections(100.0, 1, 1, 1))),
        whole("qwen2_5_vl", "qwen2_5_vl_text", {"tie_word_embeddings": True},
              **llama_like(hidden=40, heads=5, kv_heads=1, d_ff=33, rope_parameters=sections(9000.0, 2, 1, 1))),
    ],
    "qwen3_vl_text": [
        whole("qwen3_vl", "qwen3_vl_text", **llama_like(**TINY, head_dim=8, rope_parameters=sections(100.0, 2, 1, 1))),
        whole("qwen3_vl", "qwen3_vl_text", {"tie_word_embeddings": True},
              **llama_like(hidden=33, heads=6, kv_heads=3, head_dim=10, d_ff=41, layers=3, attention_bias=True,
                           rope_parameters=sections(9000.0, 3, 1, 1))),
    ],
    "glm4v_text": [
        whole("glm4v", "glm4v_text", **llama_like(**TINY | dict(hidden=16), rope_parameters=sections(100.0, 1, 1, 2))),
        whole("glm46v", "glm4v_text", **llama_like(hidden=36, heads=3, kv_heads=3, d_ff=41, layers=3,
              rope_parameters=sections(9000.0, 1, 1, 1) | dict(partial_rotary_factor=0.5))),
    ],
    "mllama_text_model": [
        whole("mllama", "mllama_text_model", **llama_like(**TINY | dict(layers=3), cross_attention_layers=[1],
              pad_token_id=0, rope_parameters=rope(100.0))),
        whole("mllama", "mllama_text_model", **llama_like(hidden=36, heads=6, kv_heads=3, d_ff=41, layers=6,
              cross_attention_layers=[0, 5, 3], pad_token_id=0, rope_parameters=llama3_rope())),
    ],
    "gemma3": [whole("gemma3", "gemma3_text", **llama_like(**TINY, head_dim=8, sliding_window=7, layers=6))],
    "gemma4_unified": [whole("gemma4_unified", "gemma4_unified_text", **unified(
        (16, None), hidden=24, heads=2, kv_heads=1, d_ff=28, vocab=23, layers=6, head_dim=8, sliding_window=7))],
    "llama4": [whole("llama4", "llama4_text", **llama_like(
        **TINY, head_dim=8, layers=4, num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=19,
        attention_chunk_size=7, floor_scale=5, attn_scale=0.4))],
    "gemma4": [whole("gemma4", "gemma4_text", **gemma4((16, None), 2, 6, hidden=24, heads=2, kv_heads=1, d_ff=28, vocab=23,
                                                       layers=4, head_dim=8, sliding_window=7,
                                                       layer_types=LAYERS3[:2] * 2))],
    "mistral3": [whole("mistral3", "mistral", **llama_like(**TINY, sliding_window=None, head_dim=8)),
                 whole("mistral3", "ministral3", **llama_like(**TINY, head_dim=6, rope_parameters=ministral_rope()))],
    "qwen3_5": [
        whole("qwen3_5", "qwen3_5_text", **llama_like(
            **TINY, head_dim=8, layer_types=layers("linear_attention", 1, of=2), **delta(1, 2, 4, 6),
            rope_parameters=sections(100.0, 1, 1, 0) | dict(partial_rotary_factor=0.5))),
        whole("qwen3_5_moe", "qwen3_5_moe_text", **without(llama_like(
            hidden=36, heads=6, kv_heads=3, head_dim=12, layers=4, num_experts=7, num_experts_per_tok=3,
            moe_intermediate_size=19, shared_expert_intermediate_size=20, **delta(2, 6, 17, 18, 3),
            rope_parameters=sections(9000.0, 1, 1, 1) | dict(partial_rotary_factor=0.5)), "intermediate_size")),
    ],
    "llava": [whole("llava", "llama", **llama_like())],
    "llava_next": [whole("llava_next", "mistral", **llama_like(sliding_window=None))],
    "llava_next_video": [whole("llava_next_video", "qwen2", **llama_like())],
    "llava_onevision": [whole("llava_onevision", "qwen2", **llama_like())],
    "video_llava": [whole("video_llava", "llama", **llama_like())],
    "vipllava": [whole("vipllava", "llama", **llama_like())],
    "internvl": [whole("internvl", "qwen3", **llama_like(head_dim=8))],
    "idefics2": [whole("idefics2", "mistral", **llama_like(sliding_window=None))],
    "idefics3": [whole("idefics3", "llama", **llama_like())],
    "smolvlm": [whole("smolvlm", "llama", **llama_like())],
    "qwen2_audio": [whole("qwen2_audio", "qwen2", **llama_like())],
    "voxtral": [whole("voxtral", "llama", **llama_like(head_dim=8))],
    "exaone4_5": [whole("exaone4_5", "exaone4", **llama_like(sliding_window=7, layer_types=LAYERS3[:2]))],
    "got_ocr2": [whole("got_ocr2", "qwen2", **llama_like())],
    "lighton_ocr": [whole("lighton_ocr", "qwen3", **llama_like(head_dim=8))],
    "ovis2": [whole("ovis2", "qwen2", **llama_like())],
    "deepseek_vl": [whole("deepseek_vl", "llama", **llama_like())],
    "video_llama_3": [whole("video_llama_3", "qwen2", **llama_like())],
}
ALONE = [name for name in SHAPES if "_text" not in name]  # which hold a model that has a golden one by itself


def shrink(fields):
    return {name: shrink(value) if isinstance(value, dict) else
            SMALL.get(name, value) if isinstance(value, int) and not isinstance(value, bool) else value
            for name, value in fields.items() if name != "rope_parameters"}


def model_of(fields):
    """(model, configuration) of a shape of this file."""
    own = {key: value for key, value in fields.items() if key != "model_type"}
    defaults = AutoConfig.for_model(fields["model_type"]).to_dict()
    others = {key: shrink(value) for key, value in defaults.items() if isinstance(value, dict) and key != "text_config"}
    config = AutoConfig.for_model(fields["model_type"], **others | own)
    of_pictures = type(config) in AutoModelForImageTextToText._model_mapping
    auto = AutoModelForImageTextToText if of_pictures else AutoModelForMultimodalLM
    return auto.from_config(config, attn_implementation="eager").eval(), config


def leave_out_most(folder):
    """Of what the saved model has for pictures a vector stays: enough to see that it is left out."""
    path = folder / "model.safetensors"
    saved = load_file(path)
    is_text = {name: any(part in name for part in ("language_model", "text_model", "lm_head")) for name in saved}
    if not any(is_text.values()) or all(name.startswith("lm_head") for name, text in is_text.items() if text):
        is_text = {name: name.startswith(("model.layers.", "model.embed", "model.norm", "lm_head")) for name in saved}
    kept = {name: tensor for name, tensor in saved.items() if is_text[name]}
    other = min((name for name in saved if not is_text[name] and saved[name].dim() == 1), default=None)
    if other:
        kept[other] = saved[other][:4].clone()
    save_file({name: tensor.contiguous() for name, tensor in kept.items()}, path, {"format": "pt"})

#!/usr/bin/env python3
"""Writes small/TARGET/NAME: sources of every kind in a few hundred to a few thousand bytes, for fuzzing to start from.

A fuzzer runs thousands of inputs a second only where they are small. Vocabularies are those of ../golden with nearly all
tokens left out; weights are zeros, for no parser looks at them. small_services.py has the seeds of conversations, forms and
requests. Needs nothing but Python.

    python3 make_small.py [--check]      --check compares those that are there; exit status 1 where one differs
"""
import json
import math
import pathlib
import shutil
import struct
import sys
import tempfile

import small_files
from small_files import GOLDEN, HERE, compact, write
from small_services import make_services
from small_tokenizers import make_sentence_pieces, make_tokenizers

D_MODEL, D_FF, N_HEADS, N_KV_HEADS, HEAD_DIM, VOCAB_SIZE, MAX_POSITIONS = 8, 8, 2, 1, 4, 8, 8


# ---- Hugging Face --------------------------------------------------------------------------------------------------

WIDTH, KV_WIDTH = N_HEADS * HEAD_DIM, N_KV_HEADS * HEAD_DIM


def llama_tensors(biased=False, normed=False, tied=True):
    layer = {"input_layernorm.weight": [D_MODEL], "self_attn.q_proj.weight": [WIDTH, D_MODEL],
             "self_attn.k_proj.weight": [KV_WIDTH, D_MODEL], "self_attn.v_proj.weight": [KV_WIDTH, D_MODEL],
             "self_attn.o_proj.weight": [D_MODEL, WIDTH], "post_attention_layernorm.weight": [D_MODEL],
             "mlp.gate_proj.weight": [D_FF, D_MODEL], "mlp.up_proj.weight": [D_FF, D_MODEL],
             "mlp.down_proj.weight": [D_MODEL, D_FF]}
    if biased:
        layer |= {"self_attn.q_proj.bias": [WIDTH], "self_attn.k_proj.bias": [KV_WIDTH],
                  "self_attn.v_proj.bias": [KV_WIDTH]}
    if normed:
        layer |= {"self_attn.q_norm.weight": [HEAD_DIM], "self_attn.k_norm.weight": [HEAD_DIM]}
    tensors = {"model.embed_tokens.weight": [VOCAB_SIZE, D_MODEL], "model.norm.weight": [D_MODEL]}
    if not tied:
        tensors["lm_head.weight"] = [VOCAB_SIZE, D_MODEL]
    return tensors | {"model.layers.0." + name: shape for name, shape in layer.items()}


def gpt2_tensors():
    layer = {}
    for part, shape in {"ln_1": [D_MODEL], "ln_2": [D_MODEL], "attn.c_attn": [D_MODEL, 3 * D_MODEL],
                        "attn.c_proj": [D_MODEL, D_MODEL], "mlp.c_fc": [D_MODEL, D_FF],
                        "mlp.c_proj": [D_FF, D_MODEL]}.items():
        layer |= {f"transformer.h.0.{part}.weight": shape, f"transformer.h.0.{part}.bias": shape[-1:]}
    return layer | {"transformer.wte.weight": [VOCAB_SIZE, D_MODEL], "transformer.wpe.weight": [MAX_POSITIONS, D_MODEL],
                    "transformer.ln_f.weight": [D_MODEL], "transformer.ln_f.bias": [D_MODEL]}


def bert_tensors():
    tensors = {"embeddings.word_embeddings.weight": [VOCAB_SIZE, D_MODEL],
               "embeddings.position_embeddings.weight": [MAX_POSITIONS, D_MODEL],
               "embeddings.token_type_embeddings.weight": [2, D_MODEL],
               "pooler.dense.weight": [D_MODEL, D_MODEL], "pooler.dense.bias": [D_MODEL]}
    for norm in ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"):
        tensors |= {f"{norm}.LayerNorm.{kind}": [D_MODEL] for kind in ("weight", "bias")}
    for part, shape in {"attention.self.query": [D_MODEL, D_MODEL], "attention.self.key": [D_MODEL, D_MODEL],
                        "attention.self.value": [D_MODEL, D_MODEL], "attention.output.dense": [D_MODEL, D_MODEL],
                        "intermediate.dense": [D_FF, D_MODEL], "output.dense": [D_MODEL, D_FF]}.items():
        tensors |= {f"encoder.layer.0.{part}.weight": shape, f"encoder.layer.0.{part}.bias": shape[:1]}
    return tensors


def torch_tensors():
    return {"in_proj_weight": [3 * D_MODEL, D_MODEL], "in_proj_bias": [3 * D_MODEL],
            "out_proj.weight": [D_MODEL, D_MODEL], "out_proj.bias": [D_MODEL]}


def attention_tensors():
    shapes = {"q_proj": [WIDTH, D_MODEL], "k_proj": [KV_WIDTH, D_MODEL], "v_proj": [KV_WIDTH, D_MODEL],
              "o_proj": [D_MODEL, WIDTH]}
    return {f"{name}.weight": shape for name, shape in shapes.items()}


def stack_tensors(stack, n_attentions):
    tensors = {}
    for kind in ("weight", "bias"):
        vector = kind == "bias"
        for i in range(n_attentions):
            prefix = f"{stack}layers.0." + ("self_attn." if i == 0 else "multihead_attn.")
            tensors |= {f"{prefix}in_proj_{kind}": [3 * D_MODEL] if vector else [3 * D_MODEL, D_MODEL],
                        f"{prefix}out_proj.{kind}": [D_MODEL] if vector else [D_MODEL, D_MODEL]}
        tensors |= {f"{stack}layers.0.norm{i + 1}.{kind}": [D_MODEL] for i in range(n_attentions + 1)}
        tensors |= {f"{stack}layers.0.linear1.{kind}": [D_FF] if vector else [D_FF, D_MODEL],
                    f"{stack}layers.0.linear2.{kind}": [D_MODEL] if vector else [D_MODEL, D_FF],
                    f"{stack}norm.{kind}": [D_MODEL]}
    return tensors


def safetensors(tensors, dtype):
    """`tensors`: a shape, or a dtype of its own, a shape and maybe bytes in place of zeros."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape in sorted(tensors.items()):
        own, shape, *given = shape if isinstance(shape, tuple) else (dtype, shape)
        size = {"I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I8": 1, "U8": 1, "F8_E4M3": 1}[own]
        piece = given[0] if given else bytes(size * math.prod(shape))
        header[name] = {"dtype": own, "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = compact(header)
    text += " " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text.encode() + data


def make_hugging_face():
    llama = dict(model_type="llama", hidden_size=D_MODEL, intermediate_size=D_FF, num_hidden_layers=1,
                 num_attention_heads=N_HEADS, num_key_value_heads=N_KV_HEADS, head_dim=HEAD_DIM, hidden_act="silu",
                 max_position_embeddings=MAX_POSITIONS, rms_norm_eps=1e-5, vocab_size=VOCAB_SIZE,
                 tie_word_embeddings=True, rope_theta=1e4, bos_token_id=1, eos_token_id=[2, 3])
    stack = dict(d_model=D_MODEL, nhead=N_HEADS, dim_feedforward=D_FF, num_layers=1)
    # A configuration, and tensors that go with it or none where it differs from another in a few fields.
    models = {
        "llama": (llama, llama_tensors()),
        "gpt2": (dict(model_type="gpt2", n_embd=D_MODEL, n_head=N_HEADS, n_inner=D_FF, n_layer=1, vocab_size=VOCAB_SIZE,
                      n_positions=MAX_POSITIONS, layer_norm_epsilon=1e-5, activation_function="gelu_new"),
                 gpt2_tensors()),
        "bert": (dict(model_type="bert", hidden_size=D_MODEL, intermediate_size=D_FF, num_hidden_layers=1,
                      num_attention_heads=N_HEADS, max_position_embeddings=MAX_POSITIONS, vocab_size=VOCAB_SIZE,
                      type_vocab_size=2, layer_norm_eps=1e-12, hidden_act="gelu"), bert_tensors()),
        "multihead": (dict(model_type="torch.nn.MultiheadAttention", embed_dim=D_MODEL, num_heads=N_HEADS),
                      torch_tensors()),
        "attention": (dict(model_type="attention", d_model=D_MODEL, n_heads=N_HEADS, n_kv_heads=N_KV_HEADS,
                           head_dim=HEAD_DIM, bias=False, causal=True, softmax_scale=0.5, score_softcap=30.0),
                      attention_tensors()),
        "transformer": (dict(stack, model_type="torch.nn.Transformer", num_encoder_layers=1, num_decoder_layers=1),
                        stack_tensors("encoder.", 1) | stack_tensors("decoder.", 2)),
        "qwen3": (dict(llama, model_type="qwen3", tie_word_embeddings=False), llama_tensors(normed=True, tied=False)),
        "qwen2": (dict(llama, model_type="qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=0),
                  llama_tensors(biased=True)),
        "mistral": (dict(llama, model_type="mistral", sliding_window=4), None),
        "encoder": (dict(stack, model_type="torch.nn.TransformerEncoder", activation="gelu", norm_first=True), None),
        "decoder": (dict(stack, model_type="torch.nn.TransformerDecoder"), None),
    }
    scalings = {"linear": {}, "dynamic": {}, "yarn": dict(original_max_position_embeddings=4, attention_factor=1.0),
                "llama3": dict(low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=4)}
    for kind, more in scalings.items():
        models[kind] = (dict(llama, rope_scaling=dict(rope_type=kind, factor=2.0, **more)), None)
    models["jina"] = (dict(models["bert"][0], position_embedding_type="alibi", feed_forward_type="geglu"), None)
    latent = dict(llama, q_lora_rank=4, kv_lora_rank=6, qk_nope_head_dim=4, qk_rope_head_dim=2, v_head_dim=4, rms_norm_eps=1e-6,
                  n_routed_experts=4, num_experts_per_tok=1, moe_intermediate_size=8, n_shared_experts=1, n_group=2,
                  topk_group=1, first_k_dense_replace=0)
    scaled = dict(rope_type="yarn", factor=2.0, original_max_position_embeddings=4, mscale=1.0, mscale_all_dim=0.5)
    models["deepseek_v2"] = (dict(latent, model_type="deepseek_v2", topk_method="group_limited_greedy"), None)
    models["deepseek_v3"] = (dict(latent, model_type="deepseek_v3", rope_scaling=scaled), None)
    gemma = json.loads((GOLDEN / "families/gemma3_text/config.json").read_text())
    models["gemma_embedding"] = (dict(gemma, use_bidirectional_attention=True), None)
    for name, (config, tensors) in models.items():
        write("config_json", name, compact(config))
        if tensors:
            write("safetensors", name + ".safetensors", safetensors(tensors, "F32" if name == "bert" else "F16"))
    write("safetensors", "index.json", compact({"weight_map": {name: "llama.safetensors" for name in llama_tensors()}}))


def make_packed():
    """Quantized folders: of each a configuration, and tensors that go with it. Every matrix has 8 rows and columns."""
    assert D_MODEL == D_FF == WIDTH == 8
    words = {"weight_packed": ("I32", [8, 1]), "weight_scale": [8, 2], "weight_zero_point": ("I32", [1, 2]),
             "weight_shape": ("I64", [2], struct.pack("<qq", 8, 8)), "weight_g_idx": ("I32", [8])}
    layouts = {
        "gptq": (dict(bits=4, group_size=4, desc_act=True, checkpoint_format="gptq_v2"),
                 {"qweight": ("I32", [1, 8]), "qzeros": ("I32", [2, 1]), "scales": [2, 8], "g_idx": ("I32", [8])}),
        "awq": (dict(bits=4, group_size=4, zero_point=True, version="gemm"),
                {"qweight": ("I32", [8, 1]), "qzeros": ("I32", [2, 1]), "scales": [2, 8]}),
        "words": (dict(format="pack-quantized", config_groups={"group_0": {"weights": dict(
            num_bits=4, type="int", group_size=4, strategy="group")}}), words),
        "bytes": (dict(format="int-quantized", config_groups={"group_0": {"weights": dict(
            num_bits=8, type="int", strategy="channel")}}),
                  {"weight": ("I8", [8, 8]), "weight_scale": [8, 1], "weight_zero_point": ("I8", [8, 1])}),
        "floats": (dict(format="float-quantized", config_groups={"group_0": {"weights": dict(
            num_bits=8, type="float", strategy="block", block_structure=[4, 8])}}),
                   {"weight": ("F8_E4M3", [8, 8]), "weight_scale": [2, 1], "input_scale": [1]}),
        "fp8": (dict(fmt="e4m3", weight_block_size=[4, 4]),
                {"weight": ("F8_E4M3", [8, 8]), "weight_scale_inv": ("F32", [2, 2])}),
        "bitnet": (dict(linear_class="autobitlinear"), {"weight": ("U8", [2, 8]), "weight_scale": [1]}),
    }
    config = dict(model_type="llama", hidden_size=D_MODEL, intermediate_size=D_FF, num_hidden_layers=1,
                  num_attention_heads=N_HEADS, num_key_value_heads=N_HEADS, head_dim=HEAD_DIM,
                  max_position_embeddings=MAX_POSITIONS, rms_norm_eps=1e-5, vocab_size=VOCAB_SIZE)
    config["tie_word_embeddings"] = True
    for name, (quantization, parts) in layouts.items():
        method = "compressed-tensors" if name in ("words", "bytes", "floats") else name
        write("packed", name + ".json", compact(config | {"quantization_config": dict(quant_method=method, **quantization)}))
        tensors = {}
        for tensor, shape in llama_tensors().items():
            module = tensor.removesuffix(".weight")
            plain = len(shape) == 1 or "embed" in tensor
            tensors |= {tensor: shape} if plain else {f"{module}.{part}": at for part, at in parts.items()}
        write("packed", name + ".safetensors", safetensors(tensors, "F16"))


def make_adapters():
    """Of a query map and an embedding of the small Llama, with every field that the reader knows."""
    outer = "base_model.model.model."
    tensors = {outer + "layers.0.self_attn.q_proj.lora_A.weight": [2, D_MODEL],
               outer + "layers.0.self_attn.q_proj.lora_B.weight": [N_HEADS * HEAD_DIM, 2],
               outer + "embed_tokens.lora_embedding_A": [3, VOCAB_SIZE],
               outer + "embed_tokens.lora_embedding_B": [D_MODEL, 3],
               outer + "norm.weight": [D_MODEL]}
    config = dict(peft_type="LORA", r=2, lora_alpha=4, use_rslora=True, rank_pattern={"embed_tokens": 3},
                  alpha_pattern={"^model.layers.0.self_attn.q_proj": 8}, init_lora_weights="gaussian", use_dora=False,
                  layer_replication=None, target_modules=["q_proj", "embed_tokens"], modules_to_save=["norm"])
    write("lora", "llama.json", compact(config))
    write("lora", "plain.json", compact(dict(peft_type="LORA", r=2, lora_alpha=1, rank_pattern={"embed_tokens": 3})))
    for dtype in ("F32", "BF16"):
        name = "llama" if dtype == "F32" else "narrow"
        write("lora", name + ".safetensors", safetensors(tensors, dtype))


# ---- arrays --------------------------------------------------------------------------------------------------------


def make_arrays():
    for type_ in ("b1", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8"):
        shape = {"i4": "(3,)", "f8": "()", "u2": "(2, 0, 4)", "f4": "(2, 3)"}.get(type_, "(2, 1)")
        n = {"i4": 3, "f8": 1, "u2": 0, "f4": 6}.get(type_, 2)
        header = f"{{'descr': '{'|' if type_[1] == '1' else '<'}{type_}', 'fortran_order': False, 'shape': {shape}, }}"
        long = type_ == "f2"  # version 2 has a longer length
        front = b"\x93NUMPY" + (b"\2\0" if long else b"\1\0")
        header += " " * (-(len(header) + 1 + len(front) + (4 if long else 2)) % 64) + "\n"
        write("npy", type_, front + struct.pack("<I" if long else "<H", len(header)) + header.encode() +
              bytes(n * int(type_[1])))


# ---- GGUF ----------------------------------------------------------------------------------------------------------

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5


def gguf_text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_value(value):
    if isinstance(value, list):
        kind, _ = gguf_value(value[0])
        return ARRAY, struct.pack("<IQ", kind, len(value)) + b"".join(gguf_value(item)[1] for item in value)
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, str):
        return STRING, gguf_text(value)
    if isinstance(value, float):
        return F32, struct.pack("<f", value)
    return (U32, struct.pack("<I", value)) if value >= 0 else (I32, struct.pack("<i", value))


def gguf(values, tensors):
    """`tensors`: a name to (shape, type, bytes)."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(values))
    for key, value in values.items():
        kind, data = gguf_value(value)
        head += gguf_text(key) + struct.pack("<I", kind) + data
    at = 0
    for name, (shape, type_, n_bytes) in tensors.items():
        head += gguf_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), type_, at)
        at += -(-n_bytes // 32) * 32
    return head + bytes(-len(head) % 32) + bytes(at)


def gguf_tensors(shapes, type_, d_model):
    """Matrices of one type, vectors in float32."""
    block = {0: (1, 4), 1: (1, 2), 30: (1, 2), 8: (32, 34), 2: (32, 18)}
    tensors = {}
    for name, shape in shapes.items():
        shape = [d_model if n == D_MODEL else n for n in shape]
        kind = type_ if len(shape) > 1 and shape[-1] % block[type_][0] == 0 else 0
        n_elements = math.prod(shape)
        tensors[name + ("" if name.endswith((".bias", ".ssm_a")) else ".weight")] = (
            shape, kind, n_elements // block[kind][0] * block[kind][1])
    return tensors


def gguf_settings(architecture, d_model):
    settings = {"block_count": 1, "context_length": MAX_POSITIONS, "embedding_length": d_model,
                "feed_forward_length": d_model, "attention.head_count": N_HEADS}
    if architecture in ("llama", "qwen2", "qwen3", "gpt-oss", "deepseek2", "gemma-embedding", "glm4moe",
                        "kimi-linear"):
        settings |= {"attention.head_count_kv": N_KV_HEADS, "attention.layer_norm_rms_epsilon": 1e-5,
                     "attention.key_length": d_model // 2, "attention.value_length": d_model // 2,
                     "rope.dimension_count": d_model // 2, "rope.freq_base": 1e4}
    else:
        settings["attention.layer_norm_epsilon"] = 1e-5
    if architecture == "bert":
        settings |= {"attention.causal": False, "pooling_type": 1}
    values = {"general.architecture": architecture, "general.name": "small"}
    return values | {f"{architecture}.{key}": value for key, value in settings.items()}


def vocabulary(name):
    """Settings of a GGUF file's tokenizer, of the small tokenizer.json of that name."""
    parts = json.loads((HERE / "small" / "tokenizer_json" / name).read_text())
    tokens = list(parts["model"]["vocab"]) + [token["content"] for token in parts["added_tokens"]]
    tokens = list(dict.fromkeys(tokens))
    special = {token["content"] for token in parts["added_tokens"]}
    values = {"tokens": tokens, "token_type": [3 if token in special else 1 for token in tokens]}
    if name == "bert":
        stored = [token if token in special else token[2:] if token.startswith("##") else "▁" + token for token in tokens]
        values |= {"model": "bert", "tokens": stored, "bos_token_id": tokens.index("[CLS]"),
                   "seperator_token_id": tokens.index("[SEP]"), "unknown_token_id": tokens.index("[UNK]")}
    elif name == "metaspace":
        values |= {"model": "llama", "scores": [-float(i) for i in range(len(tokens))], "add_bos_token": True,
                   "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
        values["token_type"] = [6 if token.startswith("<0x") else 2 if token == "<unk>" else 3 if token in special else 1
                                for token in tokens]
    else:
        values |= {"model": "gpt2", "pre": {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2"}[name],
                   "merges": [" ".join(pair) for pair in parts["model"]["merges"]], "eos_token_id": len(tokens) - 1}
    # token_type is a list of signed numbers
    return {"tokenizer.ggml." + key: value for key, value in values.items()}, len(tokens)


def signed(data, key):
    """The list under `key` as signed numbers, which Python's own do not tell."""
    at = data.index(key) + len(key) + 4
    return data[:at] + struct.pack("<I", I32) + data[at + 4:]


def make_gguf():
    w, k = D_MODEL, D_MODEL // 2
    llama = {"token_embd": [VOCAB_SIZE, w], "output_norm": [w], "blk.0.attn_norm": [w], "blk.0.ffn_norm": [w],
             "blk.0.attn_q": [w, w], "blk.0.attn_k": [k, w], "blk.0.attn_v": [k, w], "blk.0.attn_output": [w, w],
             "blk.0.ffn_gate": [w, w], "blk.0.ffn_up": [w, w], "blk.0.ffn_down": [w, w]}
    norms = {"output_norm.bias": [w], "blk.0.attn_norm.bias": [w], "blk.0.ffn_norm.bias": [w]}
    gpt2 = {name: shape for name, shape in llama.items() if not name.endswith(("_q", "_k", "_v", "gate"))}
    gpt2 |= norms | {"position_embd": [MAX_POSITIONS, w], "blk.0.attn_qkv": [3 * w, w], "blk.0.attn_qkv.bias": [3 * w],
                     "blk.0.attn_output.bias": [w], "blk.0.ffn_up.bias": [w], "blk.0.ffn_down.bias": [w]}
    bert = {"token_embd": [VOCAB_SIZE, w], "position_embd": [MAX_POSITIONS, w], "token_types": [2, w],
            "token_embd_norm": [w], "token_embd_norm.bias": [w]}
    for part, shape in {"attn_q": [w, w], "attn_k": [w, w], "attn_v": [w, w], "attn_output": [w, w],
                        "attn_output_norm": [w], "ffn_up": [w, w], "ffn_down": [w, w], "layer_output_norm": [w]}.items():
        bert |= {f"blk.0.{part}": shape, f"blk.0.{part}.bias": [w]}
    biased = {f"blk.0.attn_{x}.bias": [w if x == "q" else k] for x in "qkv"}
    normed = {f"blk.0.attn_{x}_norm": [k] for x in "qk"}
    scaled = {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 2.0,
              "llama.rope.scaling.original_context_length": 4}
    routed = {name: shape for name, shape in llama.items() if not name.startswith("blk.0.ffn_") or "norm" in name}
    routed |= {"blk.0.ffn_gate_inp": [4, w]} | {f"blk.0.ffn_{x}_exps": [4, w, w] for x in ("gate", "up", "down")}
    experts = {"llama.expert_count": 4, "llama.expert_used_count": 2}
    alone = {name: shape for name, shape in routed.items() if "_exps" not in name}
    alone |= {f"blk.0.ffn_{x}.{i}": [w, w] for x in ("gate", "up", "down") for i in range(4)}
    modern = {"token_embd": llama["token_embd"], "token_embd_norm": [w], "output_norm": [w]}
    for i in range(2):
        modern |= {f"blk.{i}.attn_qkv": [3 * w, w], f"blk.{i}.attn_output": [w, w], f"blk.{i}.ffn_norm": [w],
                   f"blk.{i}.ffn_up": [2 * w, w], f"blk.{i}.ffn_down": [w, w]}
    modern["blk.1.attn_norm"] = [w]
    of_modern = {"modern-bert.block_count": 2, "modern-bert.attention.sliding_window": 4,
                 "modern-bert.attention.causal": False}
    t5 = {"token_embd": llama["token_embd"], "enc.output_norm": [w], "enc.blk.0.attn_rel_b": [8, N_HEADS]}
    t5 |= {f"enc.blk.0.{part}": [w] for part in ("attn_norm", "ffn_norm")}
    t5 |= {f"enc.blk.0.{part}": [w, w] for part in ("attn_q", "attn_k", "attn_v", "attn_o", "ffn_gate", "ffn_up", "ffn_down")}
    of_t5 = {"t5encoder.attention.relative_buckets_count": 8, "t5encoder.attention.layer_norm_rms_epsilon": 1e-6}
    gemma = llama | normed | {f"blk.0.post_{part}_norm": [w] for part in ("attention", "ffw")}
    gemma |= {"dense_2": [w + 4, w], "dense_3": [w, w + 4]}
    of_gemma = {"gemma-embedding.pooling_type": 1, "gemma-embedding.attention.sliding_window": 4}
    oss = {name.replace("ffn_norm", "post_attention_norm"): shape for name, shape in routed.items()} | biased
    oss |= {"blk.0.attn_sinks": [N_HEADS], "blk.0.attn_output.bias": [w], "blk.0.ffn_gate_inp.bias": [4]}
    oss |= {f"blk.0.ffn_{x}_exps.bias": [4, w] for x in ("gate", "up", "down")}
    of_oss = {key.replace("llama", "gpt-oss"): value for key, value in (scaled | experts).items()}
    of_oss |= {"gpt-oss.attention.sliding_window": 3}
    deepseek = {name: shape for name, shape in routed.items() if not name.startswith("blk.0.attn_") or "norm" in name}
    deepseek |= {"blk.0.attn_q_a": [4, w], "blk.0.attn_q_a_norm": [4], "blk.0.attn_q_b": [12, 4], "blk.0.attn_kv_a_mqa": [12, w],
                 "blk.0.attn_kv_a_norm": [10], "blk.0.attn_kv_b": [16, 10], "blk.0.attn_output": [w, w],
                 "blk.0.exp_probs_b.bias": [4]} | {f"blk.0.ffn_{x}_shexp": [w, w] for x in ("gate", "up", "down")}
    split = {name: shape for name, shape in deepseek.items() if "kv_b" not in name}
    split |= {"blk.0.attn_k_b": [2, 10, 4], "blk.0.attn_v_b": [2, 4, 10]}
    of_deepseek = {"attention.q_lora_rank": 4, "attention.kv_lora_rank": 10, "attention.key_length": 6,
                   "attention.value_length": 4, "rope.dimension_count": 2, "expert_count": 4, "expert_used_count": 1,
                   "expert_shared_count": 1, "expert_gating_func": 2, "expert_weights_scale": 2.5, "expert_group_count": 2,
                   "expert_group_used_count": 1, "leading_dense_block_count": 0}
    of_split = of_deepseek | {"attention.key_length": 12, "attention.value_length": 10, "attention.key_length_mla": 6,
                              "attention.value_length_mla": 4, "rope.scaling.type": "yarn", "rope.scaling.factor": 2.0,
                              "rope.scaling.yarn_log_multiplier": 0.1}
    of_deepseek, of_split = ({f"deepseek2.{key}": value for key, value in of.items()} for of in (of_deepseek, of_split))
    glm = {name.replace("ffn_norm", "post_attention_norm"): shape for name, shape in routed.items()}
    glm |= {"blk.0.exp_probs_b.bias": [4]}
    glm |= {name.replace("blk.0", "blk.1"): shape for name, shape in glm.items() if name.startswith("blk.0")}
    glm |= {"blk.1.nextn.eh_proj": [w, 2 * w]} | {f"blk.1.nextn.{x}": [w] for x in ("enorm", "hnorm", "shared_head_norm")}
    of_glm = {"glm4moe.block_count": 2, "glm4moe.nextn_predict_layers": 1, "glm4moe.expert_count": 4,
              "glm4moe.expert_used_count": 2}
    kimi = {name: shape for name, shape in llama.items() if name.startswith(("token", "output", "blk.0.ffn", "blk.0.attn_norm"))}
    kimi |= {f"blk.0.attn_{x}": [w, w] for x in ("q", "k", "v", "output")}
    kimi |= {f"blk.0.ssm_conv1d_{x}": [1, w, 1, 3] for x in "qkv"}
    kimi |= {f"blk.0.ssm_{x}_a": [4, w] for x in "fg"} | {f"blk.0.ssm_{x}_b": [w, 4] for x in "fg"}
    kimi |= {"blk.0.ssm_a": [2, 1], "blk.0.ssm_beta": [2, w], "blk.0.ssm_dt.bias": [w], "blk.0.ssm_norm": [4]}
    kimi |= {name.replace("blk.0", "blk.1"): shape for name, shape in (kimi | {"blk.0.attn_output": [w, w]}).items()
             if name.startswith(("blk.0.ffn", "blk.0.attn_norm", "blk.0.attn_output"))}
    kimi |= {"blk.1.attn_q": [12, w], "blk.1.attn_kv_a_mqa": [12, w], "blk.1.attn_kv_a_norm": [10],
             "blk.1.attn_k_b": [2, 10, 4], "blk.1.attn_v_b": [2, 4, 10]}
    of_kimi = {"block_count": 2, "attention.kv_lora_rank": 10, "attention.key_length": 12, "attention.value_length": 10,
               "attention.key_length_mla": 6, "attention.value_length_mla": 4, "rope.dimension_count": 2,
               "ssm.conv_kernel": 3, "kda.head_dim": 4, "attention.head_count_kv": [0, 1]}
    of_kimi = {f"kimi-linear.{key}": value for key, value in of_kimi.items()}
    files = {"glm4moe": (glm, 1, w, None, of_glm), "kimi-linear": (kimi, 1, w, None, of_kimi),
             "llama": (llama, 1, w, "llama3", {}), "llama_experts": (routed, 1, w, None, experts), "llama_yarn": (llama, 30, w, None, scaled),
             "llama_linear": (llama, 0, w, "metaspace", {"llama.rope.scaling.factor": 2.0}),
             "llama_q8": (llama, 8, 32, None, {}), "llama_q4": (llama, 2, 32, None, {}),
             "qwen2": (llama | biased, 1, w, "qwen2", {}), "qwen3": (llama | normed, 1, w, None, {}),
             "gpt-oss": (oss, 1, w, None, of_oss), "llama_alone": (alone, 1, w, None, experts),
             "modern-bert": (modern, 1, w, None, of_modern), "t5encoder": (t5, 0, w, None, of_t5),
             "gemma-embedding": (gemma, 1, w, None, of_gemma),
             "deepseek2": (deepseek, 1, w, None, of_deepseek), "deepseek2_split": (split, 1, w, None, of_split),
             "gpt2": (gpt2, 1, w, "gpt2", {}), "bert": (bert, 1, w, "bert", {})}
    for name, (shapes, type_, d_model, tokens, more) in files.items():
        shapes = dict(shapes)
        values = gguf_settings(name.split("_")[0], d_model) | more
        if d_model != D_MODEL:
            shapes = {part: [d_model // 2 if n == k and "attn" in part else n for n in shape]
                      for part, shape in shapes.items()}
            shapes["token_embd"] = [VOCAB_SIZE + 1, d_model]  # not taken for a width
        if tokens:
            more, n_tokens = vocabulary(tokens)
            values |= more
            shapes["token_embd"] = [n_tokens + (n_tokens == D_MODEL), D_MODEL]
        data = gguf(values, gguf_tensors(shapes, type_, d_model))
        write("gguf", name, signed(data, b"tokenizer.ggml.token_type") if tokens else data)


# ---- llama2.c, SentencePiece ----------------------------------------------------------------------------------------------


def make_checkpoints():
    """Of each version: a header, then weights that no parser looks at."""
    for checkpoint in GOLDEN.glob("llama2c_*.bin"):
        write("llama2c", checkpoint.stem, checkpoint.read_bytes())
    w, kv = D_MODEL, D_MODEL // 2
    vectors, head = 3 * w, VOCAB_SIZE * w
    matrices = [head, w * w, kv * w, kv * w, w * w, *[D_FF * w] * 3]

    def shape(vocab_size):
        return struct.pack("<7i", w, D_FF, 1, N_HEADS, N_KV_HEADS, vocab_size, MAX_POSITIONS)

    n = vectors + sum(matrices)
    rope = MAX_POSITIONS * (w // N_HEADS)
    write("llama2c", "v0", shape(VOCAB_SIZE) + bytes(4 * (n + rope)))
    write("llama2c", "v0_untied", shape(-VOCAB_SIZE) + bytes(4 * (n + rope + head)))
    for version, group, untied in ((1, 0, True), (2, 8, False), (2, 16, True)):
        header = struct.pack("<II", 0x616B3432, version) + shape(VOCAB_SIZE) + struct.pack("<?i", not untied, group)
        sizes = matrices + [head] * untied
        n_bytes = 4 * vectors + sum(m + m // group * 4 if group else 4 * m for m in sizes)
        write("llama2c", f"v{version}" + "_untied" * untied, header.ljust(256, b"\0") + bytes(n_bytes))


def make_all(folder):
    small_files.out = folder
    make_tokenizers()
    make_hugging_face()
    make_adapters()
    make_packed()
    make_arrays()
    make_gguf()
    make_checkpoints()
    make_sentence_pieces()
    make_services()


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def main():
    small = HERE / "small"
    if sys.argv[1:] != ["--check"]:
        shutil.rmtree(small, ignore_errors=True)
        return make_all(small)
    with tempfile.TemporaryDirectory() as scratch:
        make_all(pathlib.Path(scratch))
        made, there = files_in(pathlib.Path(scratch)), files_in(small)
    stale = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    print(f"{len(there)} seeds, {len(stale)} that make_small.py does not write so", *stale, sep="\n")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())

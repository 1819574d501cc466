#!/usr/bin/env python3
"""Folders of quantized models, and the floats that their matrices are.

Makes tests/golden/packed anew: NAME/{config.json, model.safetensors, expected.json} as AutoGPTQ, AutoAWQ, compressed-tensors,
DeepSeek's and transformers' writers lay them out, and floats/NAME/{config.json, model.safetensors} with the matrices in
float32. expected.json names those floats, and the type in which a file of ours has the matrices where none is chosen. Numbers,
scales and zeros are random; the words are packed here by the layouts' descriptions. Needs numpy. With --check the package
compressed-tensors must unpack its folders to the same floats (within the float16 it computes in).
"""
import json
import pathlib
import shutil
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent / "packed"
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
         "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu",
         "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 32, "vocab_size": 24,
         "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float16"}
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 32, "n_head": 4, "n_layer": 1,
        "n_positions": 32, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "vocab_size": 24,
        "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 0, "torch_dtype": "float16"}
DTYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64", "int8": "I8", "uint8": "U8"}


def save(folder, config, tensors):
    """`tensors`: by name an array, or a pair of a dtype's name and an array of its bits."""
    folder.mkdir(parents=True)
    header, data = {}, b""
    for name, array in tensors.items():
        kind, array = array if isinstance(array, tuple) else (DTYPES[str(array.dtype)], array)
        piece = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def llama(random):
    """The plain tensors, and the shapes of the matrices [outputs, inputs]."""
    layer = "model.layers.0."
    plain = {"model.embed_tokens.weight": random.standard_normal((24, 32)).astype(np.float16),
             "lm_head.weight": (random.standard_normal((24, 32)) / 6).astype(np.float16)}
    for norm in ("model.norm", layer + "input_layernorm", layer + "post_attention_layernorm"):
        plain[norm + ".weight"] = (1 + random.standard_normal(32) / 8).astype(np.float16)
    shapes = {"self_attn.q_proj": (64, 32), "self_attn.k_proj": (32, 32), "self_attn.v_proj": (32, 32),
              "self_attn.o_proj": (32, 64), "mlp.gate_proj": (64, 32), "mlp.up_proj": (64, 32), "mlp.down_proj": (32, 64)}
    return LLAMA, plain, {layer + name: shape for name, shape in shapes.items()}


def gpt2(random):
    layer = "transformer.h.0."
    plain = {"transformer.wte.weight": random.standard_normal((24, 32)).astype(np.float16),
             "transformer.wpe.weight": random.standard_normal((32, 32)).astype(np.float16)}
    for norm in ("transformer.ln_f", layer + "ln_1", layer + "ln_2"):
        plain[norm + ".weight"] = (1 + random.standard_normal(32) / 8).astype(np.float16)
        plain[norm + ".bias"] = (random.standard_normal(32) / 8).astype(np.float16)
    shapes = {"attn.c_attn": (96, 32), "attn.c_proj": (32, 32), "mlp.c_fc": (128, 32), "mlp.c_proj": (32, 128)}
    for name, (n_rows, _) in shapes.items():
        plain[layer + name + ".bias"] = (random.standard_normal(n_rows) / 8).astype(np.float16)
    return GPT2, plain, {layer + name: shape for name, shape in shapes.items()}


# ---- numbers, scales and zeros -------------------------------------------------------------------------------------


class Integers:
    """weight[row, col] = scale[row, g] * (quant[row, col] - zero[row, g]), g the group of col; quants are unsigned."""

    def __init__(self, random, shape, bits, group_size, symmetric, ordered=False, scale=None):
        n_rows, n_cols = shape
        self.bits, self.group_size = bits, group_size
        n_groups = -(-n_cols // group_size) if group_size > 0 else 1
        self.group_of = np.arange(n_cols) // (group_size if group_size > 0 else n_cols)
        if ordered:
            self.group_of = random.permutation(self.group_of)
        self.quants = random.integers(0, 2**bits, shape)
        # Of three bits zero is stored as 7, which AutoGPTQ's own code reads as 8.
        self.zeros = random.integers(bits == 3, 2**bits, (n_rows, n_groups))
        if symmetric:
            self.zeros[:] = 2 ** (bits - 1)
        self.scales = (random.uniform(0.5, 1, (n_rows, n_groups)) * 2.0**-bits).astype(np.float16)
        if scale is not None:
            self.scales = scale(self.scales)

    def floats(self):
        offsets = (self.quants - self.zeros[:, self.group_of]).astype(np.float32)
        return self.scales[:, self.group_of].astype(np.float32) * offsets


def packed(numbers, bits):
    """Rows of numbers as rows of 32-bit words: number i has bits i*bits to (i+1)*bits - 1 of the row, low bits first."""
    n_rows, n = numbers.shape
    each = (numbers[:, :, None] >> np.arange(bits)) & 1
    row = each.reshape(n_rows, n * bits).astype(np.uint8)
    row = np.pad(row, ((0, 0), (0, -row.shape[1] % 32)))
    return np.packbits(row, axis=1, bitorder="little").view("<i4")


def packed_awq(numbers):
    """Eight numbers of a row in a word: nibble i is that of column ORDER[i]."""
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    words = np.zeros((numbers.shape[0], numbers.shape[1] // 8), np.uint32)
    for i, column in enumerate(order):
        words |= numbers[:, column::8].astype(np.uint32) << np.uint32(4 * i)
    return words.view(np.int32)


# ---- one matrix in each layout -------------------------------------------------------------------------------------


def as_gptq(m, version=1):
    zeros = (m.zeros - (1 if version == 1 else 0)) % 2**m.bits
    return {"qweight": packed(m.quants, m.bits).T, "qzeros": packed(zeros.T, m.bits), "scales": m.scales.T,
            "g_idx": m.group_of.astype(np.int32)}


def as_awq(m):
    return {"qweight": packed_awq(m.quants.T), "qzeros": packed_awq(m.zeros.T), "scales": m.scales.T}


def as_awq_rows(m):
    """AutoAWQ's second layout: four words of zeros for 1 to 32 groups of 32 columns, and as many scales."""
    n_rows, n_groups = m.zeros.shape
    zeros = np.zeros((n_rows, 32), m.zeros.dtype)
    zeros[:, :n_groups] = m.zeros
    scales = np.zeros((n_rows, 32), np.float16)
    scales[:, :n_groups] = m.scales
    return {"qweight": packed(m.quants, 4), "qzeros": packed(zeros, 4), "scales": scales}


def as_words(m, zeros=None, ordered=False):
    tensors = {"weight_packed": packed(m.quants, m.bits), "weight_scale": m.scales,
               "weight_shape": np.array(m.quants.shape, np.int64)}
    if zeros == "packed":
        tensors["weight_zero_point"] = packed(m.zeros.T, m.bits).T
    if zeros == "bytes":
        tensors["weight_zero_point"] = (m.zeros - 2 ** (m.bits - 1)).astype(np.int8)
    if ordered:
        tensors["weight_g_idx"] = m.group_of.astype(np.int32)
    return tensors


def as_bytes(m, zeros=False):
    tensors = {"weight": (m.quants - 128).astype(np.int8), "weight_scale": m.scales}
    if zeros:
        tensors["weight_zero_point"] = (m.zeros - 128).astype(np.int8)
    return tensors


# ---- float8 and ternary numbers ------------------------------------------------------------------------------------


def e4m3(bits):
    sign, exponent, fraction = bits >> 7, bits >> 3 & 15, bits & 7
    size = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent.astype(float) - 10))
    return np.where(sign == 1, -size, size)


class Float8:
    def __init__(self, random, shape, block):
        self.bits = random.integers(0, 127, shape) | random.integers(0, 2, shape) << 7  # no NaN
        self.block = [block[i] or shape[i] for i in (0, 1)]
        counts = [-(-shape[i] // self.block[i]) for i in (0, 1)]
        self.scales = (random.uniform(0.5, 1, counts) / 1024).astype(np.float32)

    def floats(self):
        n_rows, n_cols = self.bits.shape
        scales = self.scales[np.arange(n_rows)[:, None] // self.block[0], np.arange(n_cols)[None] // self.block[1]]
        return e4m3(self.bits).astype(np.float32) * scales

    def tensors(self, scale, shape=None, extra=()):
        scales = self.scales if shape is None else self.scales.reshape(shape)
        return {"weight": ("F8_E4M3", self.bits.astype(np.uint8)), scale: scales,
                **{name: np.ones(1, np.float32) for name in extra}}


class Ternary:
    def __init__(self, random, shape, divides):
        self.numbers = random.integers(-1, 2, shape)
        self.scale = np.float32(random.uniform(8, 16)) if divides else np.float32(random.uniform(0.05, 0.1))
        self.divides = divides

    def floats(self):
        numbers = self.numbers.astype(np.float32)
        return numbers / self.scale if self.divides else numbers * self.scale

    def tensors(self):
        quarters = (self.numbers + 1).reshape(4, -1, self.numbers.shape[1])
        bytes_ = sum(quarter << 2 * i for i, quarter in enumerate(quarters))
        return {"weight": bytes_.astype(np.uint8), "weight_scale": np.array([self.scale], np.float32)}


class Online:
    """Floats of training, which become −1, 0 or 1 times their mean size where they are read."""

    def __init__(self, random, shape):
        self.weights = (random.standard_normal(shape) / 8).astype(np.float16)

    def floats(self):
        weights = self.weights.astype(np.float32)
        scale = np.float32(1) / np.float32(np.abs(weights.astype(np.float64)).mean())
        return np.clip(np.round(weights * scale), -1, 1) / scale

    def tensors(self):
        return {"weight": self.weights}


# ---- folders -------------------------------------------------------------------------------------------------------


def make(floats, seed, matrix, folders, model=llama, conv1d=False):
    """`matrix` makes one of a shape; `folders`: by name (type, quantization_config, how a matrix is laid out)."""
    random = np.random.default_rng(seed)
    config, plain, shapes = model(random)
    matrices = {name: matrix(random, shape) for name, shape in shapes.items()}
    weights = {name: m.floats() for name, m in matrices.items()}
    save(HERE / "floats" / floats, {**config, "torch_dtype": "float32"},
         {**plain, **{name + ".weight": w.T if conv1d else w for name, w in weights.items()}})
    for name, (kind, quantization, lay_out, *more) in folders.items():
        tensors = dict(plain)
        for module, m in matrices.items():
            tensors |= {module + "." + part: array for part, array in lay_out(m).items()}
            tensors |= {module + "." + part: np.zeros(m.floats().shape[0], np.float16) for part in more}
        save(HERE / name, {**config, "quantization_config": quantization}, tensors)
        (HERE / name / "expected.json").write_text(json.dumps({"floats": floats, "type": kind}) + "\n")
        older = name in ("words_int4_zero_bytes", "words_ordered")  # layouts of its first versions, gone from those of today
        if "--check" in sys.argv and quantization["quant_method"] == "compressed-tensors" and not older:
            check(name, quantization, tensors, weights)


def check(name, quantization, tensors, weights):
    import torch
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationScheme
    scheme = QuantizationScheme(**next(iter(quantization["config_groups"].values())))
    compressor = BaseCompressor.get_value_from_registry(quantization["format"])
    for module, want in weights.items():
        state = {}
        for part, array in tensors.items():
            if part.startswith(module + "."):
                bits = array[1] if isinstance(array, tuple) else array
                state[part[len(module) + 1:]] = torch.from_numpy(np.ascontiguousarray(bits))
        if isinstance(tensors.get(module + ".weight"), tuple):
            state["weight"] = state["weight"].view(torch.float8_e4m3fn)
        got = compressor.decompress(state, scheme)["weight"].float().numpy()
        error = np.abs(got - want).max() / np.abs(want).max()
        assert error < 2e-3, (name, module, error)
    print(f"{name}: compressed-tensors unpacks the same floats")


def gptq(bits, group_size, desc_act=False, sym=True, **more):
    return {"quant_method": "gptq", "bits": bits, "group_size": group_size, "desc_act": desc_act, "sym": sym,
            "damp_percent": 0.01, "true_sequential": True, **more}


def compressed(layout, bits, group_size=None, symmetric=True, kind="int", strategy=None, **more):
    weights = {"num_bits": bits, "type": kind, "symmetric": symmetric, "group_size": group_size, "dynamic": False,
               "strategy": strategy or ("group" if group_size else "channel"), "actorder": None, **more}
    return {"quant_method": "compressed-tensors", "format": layout, "quantization_status": "compressed",
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None,
                                          "output_activations": None}},
            "ignore": ["lm_head"], "kv_cache_scheme": None, "sparsity_config": {}, "transform_config": {},
            "global_compression_ratio": None}


def awq(group_size, **more):
    return {"quant_method": "awq", "bits": 4, "group_size": group_size, "zero_point": True, "version": "gemm",
            "modules_to_not_convert": None, **more}


def auto_round(layout, sym, **more):
    return {"quant_method": "auto-round", "bits": 4, "group_size": 32, "sym": sym, "data_type": "int",
            "packing_format": layout, "block_name_to_quantize": "model.layers", "autoround_version": "0.16.1", **more}


def without(tensors, name):
    return {part: array for part, array in tensors.items() if part != name}


shutil.rmtree(HERE, ignore_errors=True)
make("int4", 1, lambda r, s: Integers(r, s, 4, 32, True), {
    "gptq_int4": ("q4", gptq(4, 32), as_gptq, "bias"),
    "awq_int4": ("q4", awq(32), as_awq),
    "awq_symmetric": ("q4", awq(32, zero_point=False), as_awq),
    "awq_no_zeros": ("q4", awq(32, zero_point=False), lambda m: without(as_awq(m), "qzeros")),
    "auto_round_awq": ("q4", auto_round("auto_round:auto_awq", True), as_awq),
    "words_int4": ("q4", compressed("pack-quantized", 4, 32), as_words)})
make("int4_zeros", 2, lambda r, s: Integers(r, s, 4, 32, False), {
    "gptq_int4_zeros": ("q8", gptq(4, 32, sym=False, checkpoint_format="gptq"), as_gptq),
    "gptq_v2": ("q8", gptq(4, 32, sym=False, checkpoint_format="gptq_v2"), lambda m: as_gptq(m, 2)),
    "awq": ("q8", awq(32), as_awq),
    "awq_gemv": ("q8", awq(32, version="gemv"), as_awq_rows),
    "auto_round": ("q8", auto_round("auto_round", False, extra_config={"lm_head": {"bits": 16}}),
                   lambda m: without(as_gptq(m, 2), "g_idx")),
    "auto_round_gptq": ("q8", auto_round("auto_round:auto_gptq", False, bits=2, extra_config={
        "model.layers.0." + name: {"bits": 4, "group_size": 32} for name in (
            "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
            "mlp.down_proj")}), lambda m: without(as_gptq(m), "g_idx")),
    "words_int4_zeros": ("q8", compressed("pack-quantized", 4, 32, False), lambda m: as_words(m, "packed")),
    "words_int4_zero_bytes": ("q8", compressed("pack-quantized", 4, 32, False), lambda m: as_words(m, "bytes"))})
make("int4_ordered", 3, lambda r, s: Integers(r, s, 4, 16, False, ordered=True), {
    "gptq_ordered": ("q8", gptq(4, 16, True, False), as_gptq),
    "words_ordered": ("q8", compressed("pack-quantized", 4, 16, False, actorder="group"),
                      lambda m: as_words(m, "packed", True))})
make("int4_rows", 4, lambda r, s: Integers(r, s, 4, -1, False), {
    "gptq_rows": ("q8", gptq(4, -1, sym=False), lambda m: without(as_gptq(m), "g_idx")),
    "awq_rows": ("q8", awq(-1), as_awq)})
make("int8", 5, lambda r, s: Integers(r, s, 8, -1, True), {
    "gptq_int8": ("q8", gptq(8, -1), as_gptq),
    "words_int8": ("q8", compressed("pack-quantized", 8), as_words),
    "bytes_int8": ("q8", compressed("int-quantized", 8), as_bytes),
    "naive_int8": ("q8", compressed("naive-quantized", 8), as_bytes)})
# Scales beyond float16's numbers, zeros beyond q8's: floats, whose type is q8.
make("int8_zeros", 6, lambda r, s: Integers(r, s, 8, 16, False, scale=lambda x: x.astype(np.float32) * np.float32(1.001)), {
    "bytes_int8_zeros": ("q8", compressed("int-quantized", 8, 16, False), lambda m: as_bytes(m, True)),
    "words_int8_zeros": ("q8", compressed("pack-quantized", 8, 16, False), lambda m: as_words(m, "packed"))})
make("int3", 7, lambda r, s: Integers(r, s, 3, 32, False), {"gptq_int3": ("q4", gptq(3, 32, sym=False), as_gptq)})
make("int2", 8, lambda r, s: Integers(r, s, 2, 16, False), {"gptq_int2": ("q8", gptq(2, 16, sym=False), as_gptq)})
make("gpt2", 9, lambda r, s: Integers(r, s, 4, 32, True), {"gptq_gpt2": ("q4", gptq(4, 32), as_gptq)}, gpt2, True)
make("float8_blocks", 10, lambda r, s: Float8(r, s, (24, 20)), {
    "fp8_blocks": ("bf16", {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                            "weight_block_size": [24, 20]}, lambda m: m.tensors("weight_scale_inv")),
    "float_blocks": ("bf16", compressed("float-quantized", 8, kind="float", strategy="block", block_structure=[24, 20]),
                     lambda m: m.tensors("weight_scale"))})
make("float8_rows", 11, lambda r, s: Float8(r, s, (1, 0)), {
    "fbgemm_fp8": ("bf16", {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0},
                   lambda m: m.tensors("weight_scale")),
    "float_rows": ("bf16", compressed("float-quantized", 8, kind="float"),
                   lambda m: m.tensors("weight_scale", extra=("input_scale",)))})
make("float8", 12, lambda r, s: Float8(r, s, (0, 0)), {
    "fp8_whole": ("bf16", {"quant_method": "fp8", "activation_scheme": "static"},
                  lambda m: m.tensors("weight_scale", (), ("input_scale",))),
    "float_whole": ("bf16", compressed("naive-quantized", 8, kind="float", strategy="tensor"),
                    lambda m: m.tensors("weight_scale", (1,)))})
make("ternary", 13, lambda r, s: Ternary(r, s, True), {
    "bitnet": ("tq2_0", {"quant_method": "bitnet"}, Ternary.tensors)})
make("ternary_times", 14, lambda r, s: Ternary(r, s, False), {
    "bitnet_auto": ("tq2_0", {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline"},
                    Ternary.tensors)})
make("ternary_online", 15, Online, {
    "bitnet_online": ("tq2_0", {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online"},
                      Online.tensors)})

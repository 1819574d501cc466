#!/usr/bin/env python3
"""A GGUF file of a known model's shape with random weights, for comparing engines (bench/scripts/compare.py).

Needs the `gguf` package. Matrices have a variance of 1 / columns, so that activations keep their size. BitNet's are
ternary and its table of tokens is float16: i2_s as bitnet.cpp writes it, or tq2_0 for llama.cpp, whose architecture
bitnet has SiLU.

    bench/scripts/make_gguf_twins.py --shape smollm2-135m --type q8_0 -o twin.gguf
"""
import argparse

import gguf
import numpy

SHAPES = {  # d_model, d_ff, layers, heads, key-value heads, vocabulary, positions, rotary base, tied
    "smollm2-135m": (576, 1536, 30, 9, 3, 49152, 8192, 100000.0, True),
    "tinyllama-1.1b": (2048, 5632, 22, 32, 4, 32000, 2048, 10000.0, False),
    "bitnet-b1.58-2b": (2560, 6912, 30, 20, 5, 128256, 4096, 500000.0, True),
}
TYPES = {name: getattr(gguf.GGMLQuantizationType, name.upper()) for name in ("f32", "f16", "q8_0", "q4_0", "tq2_0")}
ARCHITECTURES = {"i2_s": "bitnet-b1.58", "tq2_0": "bitnet"}
I2_S = 36  # which the package does not know


def i2_s(trits, scale):
    """Byte i of each 128 elements has i, 32 + i, 64 + i and 96 + i, the first in the upper bits; last the scale."""
    quarters = (trits.reshape(-1, 4, 32) + 1).astype(numpy.uint8)
    packed = quarters[:, 0] << 6 | quarters[:, 1] << 4 | quarters[:, 2] << 2 | quarters[:, 3]
    return numpy.concatenate([packed.reshape(-1), numpy.array([scale] + 7 * [0], "<f4").view(numpy.uint8)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--type", choices=[*TYPES, "i2_s"], required=True)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    ternary = options.type in ARCHITECTURES
    if ternary != options.shape.startswith("bitnet"):
        parser.error("--type: expected i2_s or tq2_0 for bitnet's shape and another for others, got " + options.type)
    d_model, d_ff, n_layers, n_heads, n_kv_heads, vocab_size, positions, base, tied = SHAPES[options.shape]
    kv = n_kv_heads * (d_model // n_heads)
    generator = numpy.random.default_rng(1)
    writer = gguf.GGUFWriter(options.output, ARCHITECTURES.get(options.type, "llama"), use_temp_file=True)
    writer.add_name(options.shape + " with random weights")
    writer.add_context_length(positions)
    writer.add_embedding_length(d_model)
    writer.add_block_count(n_layers)
    writer.add_feed_forward_length(d_ff)
    writer.add_head_count(n_heads)
    writer.add_head_count_kv(n_kv_heads)
    writer.add_rope_dimension_count(d_model // n_heads)
    writer.add_rope_freq_base(base)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")  # engines want a vocabulary, if only of numbers
    writer.add_token_list([f"<{i}>" for i in range(vocab_size)])
    writer.add_token_scores([-float(i) for i in range(vocab_size)])
    writer.add_token_types([2, 3, 3] + [1] * (vocab_size - 3))

    def matrix(name, n_rows, n_cols):
        if ternary and name != "token_embd":
            trits = generator.integers(-1, 2, (n_rows, n_cols), dtype=numpy.int8)
            scale = numpy.float32((1.5 / n_cols)**0.5)
            if options.type == "i2_s":
                writer.add_tensor(name + ".weight", i2_s(trits, scale).view(numpy.int8), raw_shape=trits.shape,
                                  raw_dtype=I2_S)
            else:
                blocks = gguf.quantize(trits * scale, TYPES["tq2_0"])
                writer.add_tensor(name + ".weight", blocks, raw_dtype=TYPES["tq2_0"])
            return
        values = generator.standard_normal((n_rows, n_cols), dtype=numpy.float32) * numpy.float32(n_cols**-0.5)
        kind = TYPES["f16" if ternary else options.type]
        writer.add_tensor(name + ".weight", gguf.quantize(values, kind), raw_dtype=kind)

    def norm(name, width=d_model):
        writer.add_tensor(name + ".weight", numpy.ones(width, dtype=numpy.float32))

    matrix("token_embd", vocab_size, d_model)
    if not tied:
        matrix("output", vocab_size, d_model)
    norm("output_norm")
    for layer in range(n_layers):
        prefix = f"blk.{layer}."
        norm(prefix + "attn_norm")
        norm(prefix + "ffn_norm")
        if ternary:
            norm(prefix + "attn_sub_norm")
            norm(prefix + "ffn_sub_norm", d_ff)
        for name, n_rows, n_cols in (("attn_q", d_model, d_model), ("attn_k", kv, d_model), ("attn_v", kv, d_model),
                                     ("attn_output", d_model, d_model), ("ffn_gate", d_ff, d_model),
                                     ("ffn_up", d_ff, d_model), ("ffn_down", d_model, d_ff)):
            matrix(prefix + name, n_rows, n_cols)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()

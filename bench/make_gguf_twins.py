#!/usr/bin/env python3
"""A GGUF file of a known model's shape with random weights, for comparing engines (bench/compare.py).

Needs the `gguf` package. Matrices have a variance of 1 / columns, so that activations keep their size.

    bench/make_gguf_twins.py --shape smollm2-135m --type q8_0 -o twin.gguf
"""
import argparse

import gguf
import numpy

SHAPES = {  # d_model, d_ff, layers, heads, key-value heads, vocabulary, positions, rotary base, tied
    "smollm2-135m": (576, 1536, 30, 9, 3, 49152, 8192, 100000.0, True),
    "tinyllama-1.1b": (2048, 5632, 22, 32, 4, 32000, 2048, 10000.0, False),
}
TYPES = {name: getattr(gguf.GGMLQuantizationType, name.upper()) for name in ("f32", "f16", "q8_0", "q4_0")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--type", choices=TYPES, required=True)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    d_model, d_ff, n_layers, n_heads, n_kv_heads, vocab_size, positions, base, tied = SHAPES[options.shape]
    kv = n_kv_heads * (d_model // n_heads)
    generator = numpy.random.default_rng(1)
    writer = gguf.GGUFWriter(options.output, "llama", use_temp_file=True)
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
        values = generator.standard_normal((n_rows, n_cols), dtype=numpy.float32) * numpy.float32(n_cols**-0.5)
        writer.add_tensor(name + ".weight", gguf.quantize(values, TYPES[options.type]), raw_dtype=TYPES[options.type])

    def norm(name):
        writer.add_tensor(name + ".weight", numpy.ones(d_model, dtype=numpy.float32))

    matrix("token_embd", vocab_size, d_model)
    if not tied:
        matrix("output", vocab_size, d_model)
    norm("output_norm")
    for layer in range(n_layers):
        prefix = f"blk.{layer}."
        norm(prefix + "attn_norm")
        norm(prefix + "ffn_norm")
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

"""GGUF files of architectures with slopes that no type of transformers computes.

SLOPING[architecture] lists random models, as llama.cpp's converter lays them out. llama.cpp says what they compute
(beside_llama_cpp.py).
"""
import gguf
import numpy

N_TOKENS = 40


class SlopingModel:
    def __init__(self, architecture, seed, heads, head_dim, d_ff, kv_heads=None, layers=2, vocab=23, max_bias=None):
        self.architecture, self.seed, self.heads, self.head_dim, self.d_ff = architecture, seed, heads, head_dim, d_ff
        self.kv_heads, self.layers, self.vocab, self.max_bias = kv_heads or heads, layers, vocab, max_bias
        self.layer_norm = architecture == "jais"

    def tensors(self):
        """(name, rows, columns or 0 for a vector) of every tensor."""
        d_model, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        fused = self.architecture == "jais"

        def norm(name):
            yield name + ".weight", d_model, 0
            if self.layer_norm:
                yield name + ".bias", d_model, 0

        def matrix(name, rows, columns):
            yield name + ".weight", rows, columns
            if fused:
                yield name + ".bias", rows, 0

        yield "token_embd.weight", self.vocab, d_model
        yield "output.weight", self.vocab, d_model
        yield from norm("output_norm")
        for i in range(self.layers):
            yield from norm(f"blk.{i}.attn_norm")
            yield from norm(f"blk.{i}.ffn_norm")
            parts = {"qkv": d_model + 2 * kv} if fused else {"q": d_model, "k": kv, "v": kv}
            for part, rows in parts.items():
                yield from matrix(f"blk.{i}.attn_{part}", rows, d_model)
            yield from matrix(f"blk.{i}.attn_output", d_model, d_model)
            yield from matrix(f"blk.{i}.ffn_gate", self.d_ff, d_model)
            yield from matrix(f"blk.{i}.ffn_up", self.d_ff, d_model)
            yield from matrix(f"blk.{i}.ffn_down", d_model, self.d_ff)

    def write(self, path, more=None, narrow=False):
        """Writes the file, and returns tokens. Matrices have numbers that bfloat16 holds, with `narrow` that type."""
        writer = gguf.GGUFWriter(path, self.architecture)
        writer.add_embedding_length(self.heads * self.head_dim)
        writer.add_block_count(self.layers)
        writer.add_context_length(64)
        writer.add_head_count(self.heads)
        writer.add_head_count_kv(self.kv_heads)
        writer.add_feed_forward_length(self.d_ff)
        writer.add_layer_norm_eps(1e-5)
        writer.add_layer_norm_rms_eps(1e-6)
        if self.max_bias:
            writer.add_max_alibi_bias(self.max_bias)
        if more:
            more(writer, {"vocab_size": self.vocab})
        numbers = numpy.random.default_rng(self.seed)
        for name, rows, columns in self.tensors():
            noise = numbers.standard_normal((rows, columns) if columns else rows, dtype=numpy.float32)
            if not columns:
                writer.add_tensor(name, noise * numpy.float32(0.2) + numpy.float32(name.endswith("norm.weight")))
                continue
            kind = gguf.GGMLQuantizationType.BF16
            halves = gguf.quants.quantize(noise * numpy.float32(1.2 / columns**0.5), kind)
            if narrow:
                writer.add_tensor(name, halves, raw_dtype=kind)
            else:
                writer.add_tensor(name, gguf.quants.dequantize(halves, kind))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return [(7 * i + 3) % self.vocab for i in range(N_TOKENS)]


SLOPING = {
    "refact": [SlopingModel("refact", 1, 3, 4, 14, kv_heads=1),
               SlopingModel("refact", 2, 8, 6, 41, kv_heads=1, layers=3)],
    "jais": [SlopingModel("jais", 3, 3, 4, 14, max_bias=8.0),
             SlopingModel("jais", 4, 8, 6, 41, layers=3, max_bias=5.0)],
    "baichuan": [SlopingModel("baichuan", 5, 3, 2, 4, layers=40, vocab=7)],
}

#!/usr/bin/env python3
"""What fewer bits cost a model: ours beside ggml's quantizers, at their own bytes.

MODEL is a Fovea file of type f32. A peer's file is a copy of it in which every matrix holds what ggml's own
ggml_quantize_chunk makes of it, widened again, so that one program judges all; activations stay f32 there, which is to the
peer's favour. Types within a mix are llama.cpp's choices for it, those for rows that are no multiple of 256 included
(llama_tensor_get_type). Ours are `fovea convert --type`, and `--bits` with the bits that the peer's weights take.

A peer may also be a Hugging Face folder that another tool quantized from the same weights: GPTQ's, AWQ's,
compressed-tensors'. Its bytes are those of its tensors.

Needs numpy, the package gguf, and a shared library with ggml's quantizers: libggml-base.so, or a Python extension that
holds it (PyPI's xllamacpp). A language model is judged by `fovea eval`; one that gives vectors by their cosine.

    bench/scripts/quality.py MODEL --ggml LIBRARY --text HELD [--calibrate CAL] [--folder NAME=PATH]... [--fovea build/release/fovea]
"""
import argparse
import ctypes
import json
import pathlib
import shutil
import subprocess
import tempfile

import gguf
import numpy

TYPES = gguf.GGMLQuantizationType
LANES = 16
PEERS = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M")
UNIFORM = ("q8", "q6_k", "q5_k", "q4_k", "iq4_xs", "iq4_nl", "q3_k")
BASE = {"Q5_K_M": TYPES.Q5_K, "Q4_K_M": TYPES.Q4_K, "Q3_K_M": TYPES.Q3_K, "IQ4_XS": TYPES.IQ4_XS,
        "Q8_0": TYPES.Q8_0, "Q6_K": TYPES.Q6_K}
SMALLER_ROWS = {TYPES.Q3_K: TYPES.IQ4_NL, TYPES.IQ4_XS: TYPES.IQ4_NL, TYPES.Q4_K: TYPES.Q5_0,
                TYPES.Q5_K: TYPES.Q5_1, TYPES.Q6_K: TYPES.Q8_0}


def peer_type(mix, role, layer, n_layers, n_cols):
    """llama.cpp's choice for one matrix of a mix."""
    more = layer < n_layers // 8 or layer >= 7 * n_layers // 8 or (layer - n_layers // 8) % 3 == 2
    wanted = BASE[mix]
    if role in ("token_embedding", "output") and mix != "Q8_0":
        wanted = TYPES.Q6_K
    elif role == "value":
        if mix in ("Q4_K_M", "Q5_K_M") and more:
            wanted = TYPES.Q6_K
        elif mix == "Q3_K_M":
            wanted = TYPES.Q5_K if layer < 2 else TYPES.Q4_K
    elif role == "down":
        if mix in ("Q4_K_M", "Q5_K_M") and more:
            wanted = TYPES.Q6_K
        elif mix == "Q3_K_M":
            wanted = TYPES.Q5_K if layer < n_layers // 16 else TYPES.Q4_K if more else TYPES.Q3_K
        elif mix == "IQ4_XS" and layer < n_layers // 8:
            wanted = TYPES.Q5_K
    elif role == "attention_output" and mix == "Q3_K_M":
        wanted = TYPES.Q4_K
    if n_cols % gguf.GGML_QUANT_SIZES[wanted][0]:
        wanted = SMALLER_ROWS.get(wanted, TYPES.F16)
    return wanted if n_cols % gguf.GGML_QUANT_SIZES[wanted][0] == 0 else TYPES.F16


class Ggml:
    def __init__(self, path):
        library = ctypes.CDLL(path)
        self._chunk = library.ggml_quantize_chunk
        self._chunk.restype = ctypes.c_size_t
        self._chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]

    def there_and_back(self, rows, kind):
        """What the rows are in that type, and the bytes it takes."""
        rows = numpy.ascontiguousarray(rows, dtype=numpy.float32)
        if kind == TYPES.F16:
            return rows.astype(numpy.float16).astype(numpy.float32), rows.size * 2
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        made = numpy.zeros((rows.shape[0], rows.shape[1] // block * block_bytes), dtype=numpy.uint8)
        written = self._chunk(int(kind), rows.ctypes.data, made.ctypes.data, 0, *rows.shape, None)
        if written != made.size:
            raise SystemExit(f"{kind.name}: expected {made.size} bytes, got {written}")
        return gguf.quants.dequantize(made, kind).astype(numpy.float32), made.size


class Judge:
    def __init__(self, options):
        self._fovea, self._text, self._threads = options.fovea, options.text, str(options.threads)
        self.model = options.model
        self.inspected = json.loads(self.run("inspect", self.model, "--json"))
        self.is_language_model = "decoder" in self.inspected
        self._vectors = None if self.is_language_model else self._encode(self.model)

    def run(self, *arguments):
        done = subprocess.run([self._fovea, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr.strip())
        return done.stdout

    def _encode(self, file):
        with tempfile.NamedTemporaryFile(suffix=".npy") as out:
            self.run("encode", file, "--texts", self._text, "-o", out.name, "--threads", self._threads)
            vectors = numpy.load(out.name).astype(numpy.float64)
        return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)

    def convert(self, out, *arguments):
        self.run("convert", self.model, "-o", out, "--threads", self._threads, *arguments)

    def verdict(self, file):
        """Two columns of the table: perplexity and divergence, or 1 − cosine: mean and largest."""
        if not self.is_language_model:
            lost = 1 - (self._encode(file) * self._vectors).sum(axis=1)
            return f"{lost.mean():.6f} | {lost.max():.6f}"
        found = json.loads(self.run("eval", file, "--text", self._text, "--against", self.model, "--json",
                                    "--threads", self._threads))
        change = found["perplexity"] / found["against"]["perplexity"] - 1
        return f"{change * 100:+.2f} % | {found['against']['kl_divergence']:.5f}"


def tensor_bytes(folder):
    """Of a Hugging Face folder's tensors, without their names and shapes."""
    total = 0
    for path in pathlib.Path(folder).glob("*.safetensors"):
        with open(path, "rb") as file:
            header_bytes = int.from_bytes(file.read(8), "little")
        total += path.stat().st_size - 8 - header_bytes
    if not total:
        raise SystemExit(f"{folder}: expected a folder with .safetensors")
    return total


def weights_bytes(inspected):
    return next(s["bytes"] for s in inspected["sections"] if s["kind"] == "weights")


def make_peer(judge, ggml, mix, out):
    """Writes the peer's file, and returns its weights' bytes and the types that were taken."""
    shutil.copyfile(judge.model, out)
    pathlib.Path(out).chmod(0o600)
    stacks = {name: judge.inspected[name]["n_layers"] for name in ("encoder", "decoder") if name in judge.inspected}
    total, taken = 0, []
    with open(out, "r+b") as file:
        for tensor in judge.inspected["tensors"]:
            n_rows, n_cols = tensor["shape"]
            if tensor["layout"] == "vector" or tensor["role"] in ("position_embedding", "token_type_embedding"):
                total += 4 * n_rows * n_cols
                continue
            kind = peer_type(mix, tensor["role"], tensor["layer"], stacks[tensor["stack"]], n_cols)
            taken.append(kind.name)
            file.seek(tensor["offset"])
            stored = numpy.frombuffer(file.read(tensor["bytes"]), dtype="<f4")
            in_panels = tensor["layout"] == "panels"
            if in_panels:
                stored = stored.reshape(-1, n_cols, LANES).transpose(0, 2, 1)
            rows = stored.reshape(-1, n_cols).copy()
            rows[:n_rows], n_bytes = ggml.there_and_back(rows[:n_rows], kind)
            total += n_bytes
            if in_panels:
                rows = rows.reshape(-1, LANES, n_cols).transpose(0, 2, 1)
            file.seek(tensor["offset"])
            file.write(numpy.ascontiguousarray(rows, dtype="<f4").tobytes())
    return total, ", ".join(f"{taken.count(name)} {name}" for name in sorted(set(taken)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--ggml", required=True, help="a library that has ggml_quantize_chunk")
    parser.add_argument("--text", required=True, help="a text to judge by; a line each for models that give vectors")
    parser.add_argument("--calibrate", help="another text, for our own types")
    parser.add_argument("--folder", action="append", default=[], metavar="NAME=PATH", help="quantized by another tool")
    parser.add_argument("--fovea", default="build/release/fovea")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    folders = [named.partition("=")[::2] for named in options.folder]
    if not all(path for _, path in folders):
        raise SystemExit(f"--folder: expected NAME=PATH, got {' '.join(options.folder)}")
    judge, ggml = Judge(options), Ggml(options.ggml)
    if any(t["layout"] != "vector" and t["type"] != "f32" for t in judge.inspected["tensors"]):
        raise SystemExit(f"{options.model}: expected a file of type f32")
    n_weights = sum(t["shape"][0] * t["shape"][1] for t in judge.inspected["tensors"])
    columns = ("perplexity", "divergence, nats a token") if judge.is_language_model else ("1 − cosine, mean", "largest")
    print(f"| weights | bits of a weight | {' | '.join(columns)} |\n| --- | --- | --- | --- |", flush=True)

    def show(name, n_bytes, file):
        print(f"| {name} | {8 * n_bytes / n_weights:.3f} | {judge.verdict(file)} |", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.fovea"

        def show_ours(name, *arguments):
            file.unlink(missing_ok=True)
            try:
                judge.convert(file, *arguments)
            except SystemExit as refusal:  # a budget below the least that this model could have
                print(f"| {name} | – | {refusal} | |", flush=True)
                return
            show(name, weights_bytes(json.loads(judge.run("inspect", file, "--json"))), file)

        calibrated = ("--calibrate", options.calibrate) if options.calibrate else ()

        def show_with_as_many(n_bytes):
            bits = f"{8 * n_bytes / n_weights:.4f}"
            show_ours(f"`--bits {bits}`", "--bits", bits)
            if judge.is_language_model:
                show_ours(f"`--bits {bits} --calibrate self`", "--bits", bits, "--calibrate", "self")
            if calibrated:
                show_ours(f"`--bits {bits} --calibrate TEXT`", "--bits", bits, *calibrated)

        for mix in PEERS:
            n_bytes, taken = make_peer(judge, ggml, mix, file)
            show(f"ggml {mix} ({taken})", n_bytes, file)
            show_with_as_many(n_bytes)
        for name, path in folders:
            file.unlink(missing_ok=True)
            judge.run("convert", path, "-o", file, "--type", "f32")
            n_bytes = tensor_bytes(path)
            show(name, n_bytes, file)
            show_with_as_many(n_bytes)
        for kind in UNIFORM:
            show_ours(f"`--type {kind}`", "--type", kind)
            if calibrated:
                show_ours(f"`--type {kind} --calibrate TEXT`", "--type", kind, *calibrated)


if __name__ == "__main__":
    main()

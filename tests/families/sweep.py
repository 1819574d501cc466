#!/usr/bin/env python3
"""Compares Fovea's logits with those of Hugging Face's transformers for random models of every family (shapes.py).

    sweep.py FOVEA [MODEL_TYPE...]     FOVEA is the command line's path; prints a line for each family

The largest difference must be below 1e-4 of the largest logit. Of the same model in bf16 and q8 the logits after a token, as a
vector, must be within BOUNDS of transformers' in float32, as a share of its length, for half of the tokens or more: where
experts are chosen a rounding may choose others, which no bound on numbers holds. Families that llama.cpp has are written as GGUF files too
(gguf_models.py), whose logits must be those of the folder in every bit, but where files round otherwise. Needs torch,
transformers, gguf and numpy.
"""
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import gguf_models  # noqa: E402
import gguf_recurrent  # noqa: E402
import gguf_shapes  # noqa: E402
import shapes  # noqa: E402

LIMIT = 1e-4
BOUNDS = {"bf16": 0.04, "q8": 0.13}  # docs/families.md says what was measured


def logits_of(fovea, source, tokens, work, type="f32"):
    model, out = work / "model.fovea", work / "logits.npy"
    for command in (["convert", source, "-o", model, "--type", type],
                    ["logits", model, "--tokens", ",".join(map(str, tokens)), "-o", out]):
        subprocess.run([fovea, *command], check=True, capture_output=True, text=True)
    return numpy.load(out)


def compare(fovea, model_type, number, fields, work):
    """The largest difference, as a share of the largest logit, the distances of other types, and whether all are small enough."""
    tokens, expected = shapes.write_model(model_type, fields, work / "model", seed=100 + number)
    got = logits_of(fovea, work / "model", tokens, work)
    if got.shape != expected.shape or not numpy.isfinite(got).all():
        raise ValueError(f"logits: expected finite ones of shape {expected.shape}, got {got.shape}")
    error = float(numpy.abs(got - expected).max() / numpy.abs(expected).max())
    words, right = [f"{error:.1e}"], error < LIMIT
    for type, bound in BOUNDS.items():
        rounded = logits_of(fovea, work / "model", tokens, work, type)
        distances = numpy.linalg.norm(rounded - expected, axis=1) / numpy.linalg.norm(expected, axis=1)
        middle = float(numpy.median(distances))
        words.append(f"{type} {middle:.1e}")
        right = right and middle < bound
    return " ".join(words), right


def compare_gguf(fovea, model_type, number, fields, work):
    """Whether the model has the same logits from a GGUF file."""
    twin = gguf_shapes.TWINS.get(model_type)
    tokens, _ = shapes.write_model(twin or model_type, fields, work / "model", seed=200 + number)
    gguf_models.write_gguf(work / "model", work / "model.gguf", alone=model_type in ("mixtral", "qwen3_next") and number % 2 != 0,
                           architecture=model_type if twin else None)
    sources = (work / "model", work / "model.gguf")
    folder, file = (logits_of(fovea, source, tokens, work) for source in sources)
    if folder.tobytes() == file.tobytes():
        return "gguf: same bits", True
    error = float(numpy.abs(folder - file).max() / numpy.abs(folder).max())
    return f"gguf: {error:.1e}", gguf_recurrent.rounds_otherwise(fields) and error < LIMIT


def main():
    fovea, asked = sys.argv[1], sys.argv[2:] or list(shapes.SHAPES | gguf_shapes.TWINS)
    n_wrong = 0
    for model_type in asked:
        words = []
        tasks = [(compare, i, fields) for i, fields in enumerate(shapes.SHAPES.get(model_type, []))]
        tasks += [(compare_gguf, i, fields) for i, fields in enumerate(gguf_shapes.SHAPES.get(model_type, []))]
        for task, number, fields in tasks:
            with tempfile.TemporaryDirectory() as work:
                try:
                    word, right = task(fovea, model_type, number, fields, pathlib.Path(work))
                except subprocess.CalledProcessError as failed:
                    word, right = failed.stderr.strip().splitlines()[-1], False
                except Exception as failed:  # transformers' refusals have no type of their own
                    word, right = f"{type(failed).__name__}: {failed}", False
            words.append(word if right else "WRONG " + word)
            n_wrong += not right
        print(f"{model_type:12} {'; '.join(words)}", flush=True)
    print(f"{len(asked)} families, {n_wrong} wrong")
    return n_wrong != 0


if __name__ == "__main__":
    sys.exit(main())

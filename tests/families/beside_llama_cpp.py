#!/usr/bin/env python3
"""Compares the logits of GGUF files of random models with those of llama.cpp.

    beside_llama_cpp.py FOVEA [NAME...]     FOVEA is the command line's path; prints a line for each list of models

Without NAMEs these are the architectures that no type of transformers is: llama.cpp says what they compute. The largest
difference must be below 1e-3 of the largest logit. llama.cpp sums in its own order, takes GELU from a table of float16,
and leaves out the epsilon of qwen2vl's norms. Needs llama_cpp beside what sweep.py needs.
"""
import ctypes
import pathlib
import subprocess
import sys
import tempfile

import llama_cpp
import numpy

import gguf_models
import gguf_shapes
import shapes
from gguf_slopes import SLOPING, SlopingModel
from sweep import logits_of

LIMIT = 1e-3
N_THREADS = 1
SHAPES = {name: gguf_shapes.SHAPES.get(name, []) + SLOPING.get(name, []) for name in gguf_shapes.SHAPES | SLOPING}


def add_vocabulary(writer, config):
    """llama.cpp wants to know how many tokens there are."""
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(config["vocab_size"])


def llama_logits(path, tokens):
    settings = llama_cpp.llama_model_default_params()
    settings.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
    if not model:
        raise ValueError("llama.cpp does not read the file")
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx, settings.n_batch, settings.n_ubatch = 256, 256, 256
    settings.n_threads = settings.n_threads_batch = N_THREADS
    settings.type_k = settings.type_v = llama_cpp.GGML_TYPE_F32
    settings.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    context = llama_cpp.llama_init_from_model(model, settings)
    batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, True
        batch.seq_id[i][0] = 0
    if llama_cpp.llama_decode(context, batch):
        raise ValueError("llama.cpp does not compute the model")
    n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    logits = numpy.ctypeslib.as_array(llama_cpp.llama_get_logits(context), (len(tokens), n_vocab)).copy()
    llama_cpp.llama_batch_free(batch)
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return logits


def compare(fovea, name, number, fields, work):
    """The largest difference, as a share of the largest logit."""
    if isinstance(fields, SlopingModel):
        tokens = fields.write(work / "model.gguf", add_vocabulary)
        fields.write(work / "plain.gguf")
    else:
        twin = gguf_shapes.TWINS.get(name)
        tokens, _ = shapes.write_model(twin or name, fields, work / "model", seed=200 + number)
        architecture = name if twin else None
        gguf_models.write_gguf(work / "model", work / "model.gguf", architecture=architecture, more=add_vocabulary)
        gguf_models.write_gguf(work / "model", work / "plain.gguf", architecture=architecture)
    got, expected = logits_of(fovea, work / "plain.gguf", tokens, work), llama_logits(work / "model.gguf", tokens)
    return float(numpy.abs(got - expected).max() / numpy.abs(expected).max())


def main():
    fovea, asked = sys.argv[1], sys.argv[2:] or list(gguf_shapes.TWINS | SLOPING)
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    n_wrong = 0
    for name in asked:
        words = []
        for number, fields in enumerate(SHAPES[name]):
            with tempfile.TemporaryDirectory() as work:
                try:
                    error = compare(fovea, name, number, fields, pathlib.Path(work))
                    word, right = f"{error:.1e}", error < LIMIT
                except subprocess.CalledProcessError as failed:
                    word, right = failed.stderr.strip().splitlines()[-1], False
                except ValueError as failed:
                    word, right = str(failed), False
            words.append(word if right else "WRONG " + word)
            n_wrong += not right
        print(f"{name:12} {'; '.join(words)}", flush=True)
    print(f"{len(asked)} architectures, {n_wrong} wrong")
    return n_wrong != 0


if __name__ == "__main__":
    sys.exit(main())

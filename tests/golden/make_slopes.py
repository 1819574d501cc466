#!/usr/bin/env python3
"""Makes tests/golden/slopes: the smallest models of tests/families/gguf_slopes.py, in bfloat16.

Each has expected_logits.npy, float32 [n_tokens, vocab_size]: what llama.cpp computes for tokens (7·i + 3) mod
vocab_size.
llama.cpp reads the same numbers in float32, for beside matrices in bfloat16 it would round the rows that it multiplies.
Needs gguf, llama_cpp, torch and transformers.
"""
import pathlib
import sys
import tempfile

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
import beside_llama_cpp  # noqa: E402
from gguf_slopes import SLOPING  # noqa: E402

N_TOKENS = 16

for name, models in SLOPING.items():
    folder = HERE / "slopes" / name
    folder.mkdir(parents=True, exist_ok=True)
    tokens = models[0].write(folder / "model.gguf", narrow=True)
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "model.gguf"
        models[0].write(path, beside_llama_cpp.add_vocabulary)
        numpy.save(folder / "expected_logits.npy", beside_llama_cpp.llama_logits(path, tokens[:N_TOKENS]))

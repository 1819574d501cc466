#!/usr/bin/env python3
"""Writes llama2c_v0.bin and llama2c_v1.bin: llama2.c checkpoints of a tiny random model, the seeds of a fuzz target."""
import pathlib
import struct

import numpy as np

D_MODEL, D_FF, N_LAYERS, N_HEADS, N_KV_HEADS, VOCAB_SIZE, MAX_POSITIONS = 8, 12, 1, 2, 1, 16, 8
HEAD_DIM = D_MODEL // N_HEADS
NORMS = 2 * N_LAYERS * D_MODEL + D_MODEL
MATRICES = N_LAYERS * (2 * D_MODEL * N_HEADS * HEAD_DIM + 2 * D_MODEL * N_KV_HEADS * HEAD_DIM + 3 * D_MODEL * D_FF)
FREQUENCIES = MAX_POSITIONS * HEAD_DIM  # version 0 holds its cosines and sines
header = struct.pack("<7i", D_MODEL, D_FF, N_LAYERS, N_HEADS, N_KV_HEADS, VOCAB_SIZE, MAX_POSITIONS)


def weights(n):
    return np.random.default_rng(1).normal(size=n).astype("<f4").tobytes()


here = pathlib.Path(__file__).parent
shared = NORMS + MATRICES + VOCAB_SIZE * D_MODEL
(here / "llama2c_v0.bin").write_bytes(header + weights(shared + FREQUENCIES))
version_1 = struct.pack("<Ii", 0x616B3432, 1) + header + b"\1"
(here / "llama2c_v1.bin").write_bytes(version_1.ljust(256, b"\0") + weights(shared))

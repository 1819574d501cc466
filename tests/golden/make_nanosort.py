#!/usr/bin/env python3
"""The logits of the reference checkpoint nanosort as it is: numpy, double precision, no engine.

    make_nanosort.py ../../../shared/models/nanosort

Its model.safetensors lacks the biases of queries, keys and values with which upstream computed expected_logits.npy, so
those cannot be had from it (this script prints by how much they differ). What the file does hold gives
nanosort_logits.npy and, of the first layer's attention weights, nanosort_layer0_weights.npy. Needs numpy.
"""
import json
import struct
import sys

import numpy as np


def tensors(path):
    with open(path, "rb") as file:
        (n,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(n)), file.read()
    return {name: np.frombuffer(data[slice(*t["data_offsets"])], "<f4").reshape(t["shape"]).astype(np.float64)
            for name, t in header.items() if name != "__metadata__"}


def norm(x, w, name):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]


def linear(x, w, name):
    return x @ w[name + ".weight"] + w.get(name + ".bias", 0.0)


first_weights = []


def logits(w, tokens, n_layers=3, n_heads=3):
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][: tokens.shape[-1]]
    n, seq_len, d_model = x.shape
    unseen = np.triu(np.ones((seq_len, seq_len), bool), 1)
    heads = lambda a: a.reshape(n, seq_len, n_heads, -1).transpose(0, 2, 1, 3)
    for layer in range(n_layers):
        at = f"transformer.h.{layer}."
        q, k, v = map(heads, np.split(linear(norm(x, w, at + "ln_1"), w, at + "attn.c_attn"), 3, -1))
        scores = np.where(unseen, -np.inf, q @ k.transpose(0, 1, 3, 2) / np.sqrt(d_model // n_heads))
        p = np.exp(scores - scores.max(-1, keepdims=True))
        first_weights.append(p / p.sum(-1, keepdims=True))
        y = (p / p.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(n, seq_len, d_model)
        x = x + linear(y, w, at + "attn.c_proj")
        h = linear(norm(x, w, at + "ln_2"), w, at + "mlp.c_fc")
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        x = x + linear(h, w, at + "mlp.c_proj")
    return norm(x, w, "transformer.ln_f") @ w["lm_head.weight"].T


folder = sys.argv[1]
result = logits(tensors(f"{folder}/model.safetensors"), np.load(f"{folder}/tokens.npy").astype(int)).astype(np.float32)
np.save("nanosort_logits.npy", result)
print("from upstream's:", np.abs(result - np.load(f"{folder}/expected_logits.npy")).max())
np.save("nanosort_layer0_weights.npy", first_weights[0].astype(np.float32))
print("and its weights:", np.abs(first_weights[0] - np.load(f"{folder}/expected_layer0_weights.npy")).max())

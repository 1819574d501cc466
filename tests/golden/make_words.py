#!/usr/bin/env python3
"""Where words are in a recording, as the attention of a small model tells: words.json.

Needs torch, transformers 5 and numpy. For whisper_narrow and its frames.npy, random tokens and several numbers of frames: the frame at
which each row of the text begins, computed in float64. `heads` are those of the model's second layer, or the ones that a
folder's alignment_heads would name.
"""
import json
import pathlib

import numpy
import torch
from transformers import WhisperForConditionalGeneration

FOLDER = pathlib.Path(__file__).resolve().parent / "speech"
MODEL = FOLDER / "whisper_narrow"


def weights_of(model, frames, tokens):
    """Cross-attention [layer][head, token, frame]."""
    with torch.no_grad():
        out = model(torch.from_numpy(frames.T[None]).double(), decoder_input_ids=torch.tensor([tokens]), output_attentions=True)
    return [layer[0].numpy() for layer in out.cross_attentions]


def smoothed(x):
    """The median of seven frames around each, mirrored at the ends."""
    padded = numpy.pad(x, ((0, 0), (0, 0), (3, 3)), mode="reflect")
    return numpy.median(numpy.lib.stride_tricks.sliding_window_view(padded, 7, axis=-1), axis=-1)


def cheapest_way(cost):
    """The first column of each row on the way from one corner to the other."""
    n, m = cost.shape
    total = numpy.full((n + 1, m + 1), numpy.inf)
    total[0, 0] = 0
    came = numpy.zeros((n + 1, m + 1), int)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            ways = (total[i - 1, j - 1], total[i - 1, j], total[i, j - 1])
            came[i, j] = 2
            for way in (0, 1):
                if all(ways[way] < other for k, other in enumerate(ways) if k != way):
                    came[i, j] = way
            total[i, j] = cost[i - 1, j - 1] + ways[came[i, j]]
    begins, i, j = [0] * n, n, m
    while i > 0 and j > 0:
        begins[i - 1] = int(j - 1)
        way = int(came[i, j])
        i, j = i - (way != 2), j - (way != 1)
    return begins


def main():
    model = WhisperForConditionalGeneration.from_pretrained(MODEL, dtype=torch.float64, attn_implementation="eager").eval()
    generation = json.loads((MODEL / "generation_config.json").read_text())
    frames = numpy.load(MODEL / "frames.npy").astype(numpy.float64)
    start, end = generation["decoder_start_token_id"], generation["eos_token_id"]
    prompt = [start, generation["lang_to_id"]["<|de|>"], generation["task_to_id"]["transcribe"], generation["no_timestamps_token_id"]]
    random = numpy.random.default_rng(5)
    cases = []
    for heads in ([[1, 0], [1, 1], [1, 2], [1, 3]], [[0, 1], [1, 2], [0, 3]], [[1, 3]]):
        for n_frames, n_tokens in ((30, 1), (30, 9), (21, 14), (12, 6), (3, 5), (1, 2), (30, 30)):
            tokens = prompt + [int(t) for t in random.integers(0, end, n_tokens)] + [end]
            layers = weights_of(model, frames, tokens)
            picked = numpy.stack([layers[layer][head] for layer, head in heads])[:, :, :n_frames]
            picked = picked / picked.sum(-1, keepdims=True)
            deviation = picked.std(-2, keepdims=True)
            picked = (picked - picked.mean(-2, keepdims=True)) / deviation
            if n_frames > 3:
                picked = smoothed(picked)
            rows = picked.mean(0)[len(prompt) - 1:-1]
            cases.append({"heads": heads, "n_frames": n_frames, "tokens": tokens, "first": len(prompt) - 1,
                          "begins": cheapest_way(-rows)})
    (FOLDER.parent / "words.json").write_text(json.dumps(cases).replace("}, {", "},\n{") + "\n")


if __name__ == "__main__":
    main()

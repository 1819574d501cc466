"""Tokens that samplers choose: the reference of tests/engine/text/samplers_test.cpp, in double precision.

    python3 tests/golden/make_sampling.py

Writes sampling.json. Each sampler is written from its paper or its author's description, with PCG32 from O'Neill's. Cases
whose outcome a rounding of float32 could change are left out. Where transformers is installed, what typical sampling leaves
is compared with its TypicalLogitsWarper.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

MASK = (1 << 64) - 1
MARGIN = 1e-4  # of all weights: sums of float32 differ by less
DEFAULTS: dict[str, float] = {
    "temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0, "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2,
    "top_n_sigma": 0, "typical_p": 1, "xtc_probability": 0, "xtc_threshold": 0.1, "mirostat": 0, "mirostat_tau": 5,
    "mirostat_eta": 0.1,
}  # fmt: skip


class Close(Exception):
    """The case depends on rounding."""


def step(state: int) -> int:
    return (state * 6364136223846793005 + 1442695040888963407) & MASK


def uniform(state: int) -> float:
    """PCG-XSH-RR's 32 bits, the upper 24 as a number from 0 to 1."""
    mixed = (((state >> 18) ^ state) >> 27) & 0xFFFFFFFF
    turn = state >> 59
    return (((mixed >> turn) | (mixed << (-turn & 31))) & 0xFFFFFFFF) // 256 / 2**24


def at_least(value: float, bound: float) -> bool:
    if abs(value - bound) < MARGIN:
        raise Close
    return value >= bound


def nucleus(order: list[int], p: np.ndarray, share: float) -> list[int]:
    total = sum(p[i] for i in order)
    kept: list[int] = []
    for i in order:
        kept.append(i)
        if at_least(sum(p[j] for j in kept) / total, share):
            break
    return kept


def apply_dry(logits: np.ndarray, text: list[int], n_unbroken: int, o: dict[str, float]) -> np.ndarray:
    """By comparing every suffix with every place, as the description has it."""
    longest: dict[int, int] = {}
    for end in range(1, len(text)):
        n = 0
        while n < min(end, n_unbroken, 64) and text[end - n - 1] == text[-1 - n]:
            n += 1
        if n >= o["dry_allowed_length"]:
            longest[text[end]] = max(longest.get(text[end], 0), n)
    taken = np.zeros_like(logits)
    for token, n in longest.items():
        if token < len(logits):
            taken[token] = o["dry_multiplier"] * o["dry_base"] ** (n - o["dry_allowed_length"])
    return logits - taken


def typical(logits: np.ndarray, kept: list[int], p: np.ndarray, share: float) -> list[int]:
    q = np.array([p[i] for i in kept])
    q /= q.sum()
    entropy = -(q * np.log(q)).sum()
    off = {i: abs(-math.log(q[n]) - entropy) for n, i in enumerate(kept)}
    order = sorted(kept, key=lambda i: off[i])
    for a, b in zip(order, order[1:]):
        if abs(off[a] - off[b]) < MARGIN:
            raise Close
    return nucleus(order, p, share)


def choose(case: dict[str, Any]) -> tuple[int, float]:
    """The token, and Mirostat's bound afterwards."""
    o = DEFAULTS | case["options"]
    logits = np.array(case["logits"], dtype=np.float64) / 64
    if o["dry_multiplier"] > 0:
        logits = apply_dry(logits, case["text"], case["n_unbroken"], o)
    if o["temperature"] == 0:
        order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
        if logits[order[0]] - logits[order[1]] < MARGIN:
            raise Close
        return order[0], case["mu"]
    p = np.exp((logits - logits.max()) / o["temperature"])
    p /= p.sum()
    state = step(step(0) + case["seed"] & MASK)
    for _ in range(case["pos"]):
        state = step(state)
    kept = list(range(len(logits)))
    if o["mirostat"] == 2:
        kept = [i for i in kept if i == int(p.argmax()) or not at_least(-math.log2(p[i]), case["mu"])]
    else:
        if o["top_n_sigma"] > 0:
            bound = logits.max() - o["top_n_sigma"] * logits.std()
            kept = [i for i in kept if at_least(logits[i], bound)]
        if 0 < o["top_k"] < len(kept):
            kept = sorted(kept, key=lambda i: -p[i])[: int(o["top_k"])]
        if o["top_p"] < 1:
            kept = nucleus(sorted(kept, key=lambda i: -p[i]), p, o["top_p"])
        if o["min_p"] > 0:
            kept = [i for i in kept if at_least(p[i] / p.max(), o["min_p"])]
        if o["typical_p"] < 1:
            kept = typical(logits, kept, p, o["typical_p"])
        if o["xtc_probability"] > uniform(step(~state & MASK)):
            total = sum(p[i] for i in kept)
            likely = [i for i in kept if at_least(p[i] / total, o["xtc_threshold"])]
            kept = [i for i in kept if i not in likely or i == min(likely, key=lambda j: p[j])]
    total, sum_so_far, token = sum(p[i] for i in kept), 0.0, kept[-1]
    for i in kept:
        sum_so_far += p[i]
        if not at_least(uniform(state), sum_so_far / total):
            token = i
            break
    surprise = -math.log2(p[token] / total)
    mu = case["mu"] - o["mirostat_eta"] * (surprise - o["mirostat_tau"]) if o["mirostat"] else case["mu"]
    return token, mu


def compare_with_transformers() -> None:
    try:
        import torch
        from transformers import TypicalLogitsWarper
    except ImportError:
        return
    random = np.random.default_rng(3)
    for _ in range(50):
        logits = random.normal(0, 2, 40)
        share = float(random.uniform(0.1, 0.95))
        p = np.exp(logits - logits.max())
        theirs = TypicalLogitsWarper(mass=share)(None, torch.tensor(logits)[None])[0]
        try:
            ours = typical(logits, list(range(40)), p / p.sum(), share)
        except Close:
            continue
        assert sorted(ours) == [i for i in range(40) if theirs[i] > -math.inf]


def main() -> None:
    compare_with_transformers()
    random = np.random.default_rng(51)
    draws: list[dict[str, Any]] = [
        {"top_n_sigma": 1.0},
        {"top_n_sigma": 0.5, "top_k": 5},
        {"typical_p": 0.3},
        {"typical_p": 0.8, "top_p": 0.9},
        {"xtc_probability": 1.0, "xtc_threshold": 0.05},
        {"xtc_probability": 0.5, "xtc_threshold": 0.15},
        {"xtc_probability": 1.0, "min_p": 0.02, "typical_p": 0.9},
        {"mirostat": 2, "mirostat_tau": 2.0, "mirostat_eta": 0.2},
        {"mirostat": 2},
        {"dry_multiplier": 0.8},
        {"dry_multiplier": 2.0, "dry_base": 1.2, "dry_allowed_length": 3, "top_n_sigma": 2.0, "xtc_probability": 0.5},
        {},
    ]
    cases: list[dict[str, Any]] = []
    while len(cases) < 144:
        n = int(random.integers(8, 24))
        options = {"temperature": [0.7, 1.0, 1.5][len(cases) % 3], **draws[len(cases) // 3 % len(draws)]}
        if "dry_multiplier" in options and len(cases) % 2:
            options["temperature"] = 0
        vocabulary = int(random.integers(2, 6))
        case = {
            "options": options,
            "logits": [int(x) for x in random.normal(0, 160, n)],  # in 64ths
            "text": [int(x) for x in random.integers(0, vocabulary, int(random.integers(0, 30)))],
            "n_unbroken": int(random.choice([0, 1, 3, 1000])),
            "seed": int(random.integers(0, 1 << 53)),
            "pos": int(random.integers(0, 300)),
            "mu": round(float(random.uniform(0.5, 9)), 3),
        }
        try:
            case["token"], case["mu_after"] = choose(case)
        except Close:
            continue
        cases.append(case)
    text = "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"
    (Path(__file__).parent / "sampling.json").write_text(text)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Ways of rounding the inputs of a quantized model's matrices to int8, tried in PyTorch: divergence from inputs that are not rounded.

    rounding.py CACHE [--tokens N] [smollm|gemma ...]      CACHE is ./dev models' build/models

Weights are the GGUF file's. The texts, windows and mean are those of ./dev models; the columns that a matrix leaves unrounded are the
largest over another text. Prints a row for each way. Needs torch, transformers and gguf.
"""
import argparse
import pathlib
import sys

import numpy
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from divergence import LENGTH, divergences
from packages import Packages

HERE = pathlib.Path(__file__).resolve().parent


def rounded(x, scale, most=127):
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    return (x / scale).round().clamp(-most, most) * scale


def in_groups(x, size):
    """[…, columns] as […, groups, size], with zeros behind."""
    short = -x.shape[-1] % size
    return torch.nn.functional.pad(x, (0, short)).unflatten(-1, (-1, size))


def by_groups(size, fit=lambda group: rounded(group, group.abs().amax(-1, keepdim=True) / 127)):
    return lambda x: fit(in_groups(x, size)).flatten(-2)[..., :x.shape[-1]]


def least_error(group):
    """The scale of sixteen, down to half, with the least squared error."""
    largest = group.abs().amax(-1, keepdim=True) / 127
    tries = torch.stack([rounded(group, largest * (1 - i / 32)) for i in range(16)])
    return tries.gather(0, ((tries - group) ** 2).sum(-1, keepdim=True).argmin(0, keepdim=True).expand(1, *group.shape))[0]


def asymmetric(group):
    least, most = group.amin(-1, keepdim=True), group.amax(-1, keepdim=True)
    middle = (least + most) / 2
    return rounded(group - middle, (most - least) / 254) + middle


def two_levels(group):
    """A group's scale is so many 255ths of the row's, upwards, so that no number is cut."""
    scales = group.abs().amax(-1, keepdim=True) / 127
    row = scales.amax(-2, keepdim=True)
    return rounded(group, torch.where(row > 0, (scales / row * 255).ceil() / 255 * row, scales))


def two_terms(group):
    first = rounded(group, group.abs().amax(-1, keepdim=True) / 127)
    return first + rounded(group - first, (group - first).abs().amax(-1, keepdim=True) / 127)


WAYS = {"groups of 32, as it is": by_groups(32), "groups of 16": by_groups(16), "groups of 128": by_groups(128),
        "scales of two levels": by_groups(32, two_levels), "the scale of least error": by_groups(32, least_error),
        "a zero of each group's own": by_groups(32, asymmetric), "two terms, twice the products": by_groups(32, two_terms)}
OUTLIERS = [1, 2, 4, 8]


class Inputs:
    """Changes what every matrix of a model reads."""

    def __init__(self, model):
        self.change, self.largest = None, {}
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.register_forward_pre_hook(lambda module, given: self.hook(module, given[0]))

    def hook(self, module, x):
        return self.change(module, x) if self.change else x

    def look(self, module, x):
        of_columns = (x ** 2).flatten(0, -2).sum(0)
        self.largest[module] = self.largest.get(module, 0) + of_columns
        return x

    def without(self, n):
        """The columns of most energy stay as they are."""
        def change(module, x):
            columns = self.largest[module].topk(n).indices
            result = x.clone()
            result[..., columns] = 0
            result = WAYS["groups of 32, as it is"](result)
            result[..., columns] = x[..., columns]
            return result
        return change


def tried(source, packages, n_tokens):
    load = dict(gguf_file=source.name)
    model = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **load).eval()
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **load)
    inputs, windows = Inputs(model), []
    for text in packages.texts().values():
        ids = tokenizer(text)["input_ids"]
        for first in range(0, n_tokens // 3, LENGTH):
            windows.append([ids[0], *ids[first + 1:first + min(LENGTH, n_tokens // 3)]])

    def logits(ids):
        with torch.no_grad():
            return model(torch.tensor([ids])).logits[0].numpy()

    inputs.change = inputs.look
    other = "".join((HERE.parent.parent / "docs" / page).read_text() for page in ("numerics.md", "format.md"))
    logits(tokenizer(other)["input_ids"][:2 * LENGTH])
    inputs.change = None
    exact = [logits(window) for window in windows]
    ways = {name: lambda module, x, way=way: way(x) for name, way in WAYS.items()}
    ways |= {f"{n} outlier column{'s' * (n > 1)}": inputs.without(n) for n in OUTLIERS}
    for name, inputs.change in ways.items():
        mean = numpy.concatenate([divergences(truth, logits(window)) for truth, window in zip(exact, windows)]).mean()
        yield name, mean


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("models", nargs="*", default=["smollm", "gemma"])
    parser.add_argument("--tokens", type=int, default=2004)
    given = parser.parse_args()
    packages = Packages(given.cache)
    for name in given.models:
        source = getattr(packages, name)()
        if not source:
            sys.exit(f"{name}: {packages.missing}")
        for way, mean in tried(source, packages, given.tokens):
            print(f"{name:8} {way:32} {mean:.5f}", flush=True)


if __name__ == "__main__":
    main()

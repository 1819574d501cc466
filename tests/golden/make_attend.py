#!/usr/bin/env python3
"""Random modules of PyTorch with inputs, masks and what they compute in float64, as folders that `fovea convert` reads.

    make_attend.py              makes tests/golden/attend anew
    make_attend.py --sweep FOVEA [--n-cases N] [--seed S] [--isa NAME]
                                runs N other cases through that command line; exit status 77 without torch

A case is config.json, model.safetensors, arrays, and case.json: the verb, its arguments, and which file each output
must equal within `atol`. Needs torch (2.13 made the kept ones) and numpy.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

FOLDER = pathlib.Path(__file__).resolve().parent / "attend"
NAMES = {"-o": "expected.npy", "--weights": "expected_weights.npy"}
torch.backends.mha.set_fastpath_enabled(False)  # the layers as their documentation has them


class Case:
    """One folder in the making."""

    def __init__(self, seed, largest):
        self.random = np.random.default_rng(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.largest = largest
        self.arrays, self.args = {}, []

    def one_of(self, *choices):
        return choices[self.random.integers(len(choices))]

    def count(self, most):
        return int(self.random.integers(1, most + 1))

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def shake(self, module):
        """Biases and norms that a module leaves at 0 and 1 matter too; weights keep outputs near 1."""
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                noise = self.normal(*parameter.shape)
                if parameter.dim() == 2:
                    parameter.copy_(noise * 1.5 / parameter.shape[1]**0.5)
                else:
                    parameter.copy_(noise * 0.3 + (1.0 if "norm" in name and name.endswith("weight") else 0.0))
        return module.eval()

    def give(self, option, name, value):
        """An array that both sides get; the command line's ones are float32 or booleans."""
        self.arrays[name] = value.numpy()
        self.args += [option, name + ".npy"]
        return value.double() if value.is_floating_point() else value

    def mask(self, option, name, shape):
        """No mask, or booleans or numbers that leave every query its first key."""
        kind = self.one_of("none", "none", "bool", "float")
        if kind == "none":
            return None
        hidden = torch.rand(*shape, generator=self.generator) < 0.3
        hidden[..., 0] = False
        if kind == "bool":
            return self.give(option, name, hidden)
        return self.give(option, name, self.normal(*shape).masked_fill(hidden, -torch.inf))

    def padding(self, option, name, n, n_keys):
        if self.one_of(True, False):
            return None
        hidden = torch.rand(n, n_keys, generator=self.generator) < 0.3
        hidden[:, 0] = False
        return self.give(option, name, hidden)

    def save(self, folder, config, module, verb, outputs):
        """`outputs`: option of the command line to array in float64."""
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config) + "\n")
        header, data = {}, b""
        for name, tensor in module.state_dict().items():
            piece = tensor.float().contiguous().numpy().tobytes()
            header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                            "data_offsets": [len(data), len(data) + len(piece)]}
            data += piece
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
        for name, array in self.arrays.items():
            np.save(folder / (name + ".npy"), array)
        names = {option: NAMES[option] for option in outputs}
        for option, array in outputs.items():
            np.save(folder / names[option], array.numpy().astype(np.float32))
        # A float32 sum of up to 300 products of numbers near 1, 2^-24 each; a layer passes them on, at most fivefold.
        atol = 2e-5 * (5.0 if verb == "encode" else 1.0) * max(float(a.abs().max()) for a in outputs.values())
        (folder / "case.json").write_text(json.dumps(
            {"verb": verb, "args": self.args, "outputs": names, "atol": max(atol, 2e-5)}) + "\n")


def merged(masks, shape):
    """The sum of masks as numbers, or None: PyTorch takes one."""
    total = None
    for mask in masks:
        if mask is None:
            continue
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(mask, -torch.inf)
        total = mask if total is None else total + mask
    return total if total is None else total.expand(shape).contiguous()


def causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).triu(1)


def attention(case, folder):
    n_heads = case.one_of(1, 2, 3, 4, 8)
    width = n_heads * case.count(max(1, case.largest // n_heads))
    options = {"bias": case.one_of(True, False), "add_bias_kv": case.one_of(False, False, True),
               "add_zero_attn": case.one_of(False, False, True), "batch_first": case.one_of(True, True, False)}
    crosses = case.one_of(True, False)
    kdim, vdim = (case.one_of(None, case.count(case.largest)) if crosses else None for _ in range(2))
    module = case.shake(nn.MultiheadAttention(width, n_heads, kdim=kdim, vdim=vdim, **options))
    n, n_queries = case.count(3), case.count(case.largest)
    n_keys = case.count(2 * case.largest) if crosses else n_queries
    batch_first, per_head = options["batch_first"], case.one_of(True, False)

    def rows(option, name, length, dim):
        return case.give(option, name, case.normal(*((n, length) if batch_first else (length, n)), dim))

    query = key = value = rows("--query", "query", n_queries, width)
    if crosses:
        key = rows("--key", "key", n_keys, kdim or width)
        value = rows("--value", "value", n_keys, vdim or width)
    mask = case.mask("--attn-mask", "mask", case.one_of((n_queries, n_keys), (n * n_heads, n_queries, n_keys)))
    padding = case.padding("--key-padding-mask", "padding", n, n_keys)
    causal = case.one_of(True, False)
    if causal:
        case.args.append("--causal")
    case.args += ["--seq-first"] * (not batch_first) + ["--per-head"] * per_head
    shape = (n_queries, n_keys) if mask is None or mask.dim() == 2 else mask.shape
    attn_mask = merged([mask, causal_mask(n_queries, n_keys) if causal else None], shape)
    module.double()
    with torch.no_grad():
        out, weights = module(query, key, value, attn_mask=attn_mask, key_padding_mask=merged([padding], (n, n_keys)),
                              average_attn_weights=not per_head)
    config = {"model_type": "torch.nn.MultiheadAttention", "embed_dim": width, "num_heads": n_heads, **options}
    config |= {name: dim for name, dim in (("kdim", kdim), ("vdim", vdim)) if dim}
    case.save(folder, config, module, "attend", {"-o": out, "--weights": weights})


def stack(case, folder):
    encodes, decodes = case.one_of((True, False), (False, True), (True, True))
    n_heads = case.one_of(1, 2, 4)
    d_model, n_layers = n_heads * (1 + case.count(case.largest // n_heads)), case.count(2)
    layer = {"d_model": d_model, "nhead": n_heads, "dim_feedforward": case.count(3 * case.largest),
             "activation": case.one_of("relu", "gelu"), "norm_first": case.one_of(True, False), "batch_first": True,
             "bias": case.one_of(True, True, False)}
    config = dict(layer, num_layers=n_layers, final_norm=True)
    if encodes and decodes:
        config["model_type"] = "torch.nn.Transformer"
        module = nn.Transformer(num_encoder_layers=n_layers, num_decoder_layers=n_layers, dropout=0.0, **layer)
    else:
        config["final_norm"] = case.one_of(True, False)
        norm = nn.LayerNorm(d_model, bias=layer["bias"]) if config["final_norm"] else None
        config["model_type"] = "torch.nn.Transformer" + ("Encoder" if encodes else "Decoder")
        module = (nn.TransformerEncoder(nn.TransformerEncoderLayer(dropout=0.0, **layer), n_layers, norm,
                                        enable_nested_tensor=False) if encodes else
                  nn.TransformerDecoder(nn.TransformerDecoderLayer(dropout=0.0, **layer), n_layers, norm))
    case.shake(module).double()
    n, n_source, n_target = case.count(3), case.count(case.largest), case.count(case.largest)

    def side(name, length):
        rows = case.give("--" + name, name, case.normal(n, length, d_model))
        mask = None if name == "memory" else case.mask(f"--{name}-mask", name + "_mask", (length, length))
        return rows, mask, case.padding(f"--{name}-padding-mask", name + "_padding", n, length)

    causal = case.one_of(True, False)
    case.args += ["--causal"] * causal
    if encodes:
        source, source_mask, source_padding = side("source", n_source)
        encoder_causal = causal_mask(n_source, n_source) if causal and not decodes else None
        source_mask = merged([source_mask, encoder_causal], (n_source, n_source))
        source_padding = merged([source_padding], (n, n_source))
    if decodes:
        target, target_mask, target_padding = side("target", n_target)
        target_mask = merged([target_mask, causal_mask(n_target, n_target) if causal else None], (n_target, n_target))
        target_padding = merged([target_padding], (n, n_target))
        memory_mask = merged([case.mask("--memory-mask", "memory_mask", (n_target, n_source))], (n_target, n_source))
    with torch.no_grad():
        if encodes and decodes:
            memory_padding = merged([case.padding("--memory-padding-mask", "memory_padding", n, n_source)],
                                    (n, n_source))
            out = module(source, target, source_mask, target_mask, memory_mask, source_padding, target_padding,
                         memory_padding)
        elif encodes:
            out = module(source, source_mask, source_padding)
        else:
            memory, _, memory_padding = side("memory", n_source)
            out = module(target, memory, target_mask, memory_mask, target_padding,
                         merged([memory_padding], (n, n_source)))
    case.save(folder, config, module, "encode", {"-o": out})


def make(folder, seed, largest):
    """Two attentions for a stack."""
    case = Case(seed, largest)
    (stack if seed % 3 == 2 else attention)(case, folder)


def check(fovea, folder, isa):
    """What is wrong with the command line's results for a case; nothing where all is right."""
    case = json.loads((folder / "case.json").read_text())
    outputs = [part for option, name in case["outputs"].items() for part in (option, "had_" + name)]
    commands = [["convert", ".", "-o", "m.fovea", "--type", "f32"],
                [case["verb"], "m.fovea", *case["args"], *outputs, *(["--isa", isa] if isa else [])]]
    for command in commands:
        ran = subprocess.run([fovea, *command], cwd=folder, capture_output=True, text=True, timeout=600)
        if ran.returncode:
            return ran.stderr.strip()
    for name in case["outputs"].values():
        had, wanted = np.load(folder / ("had_" + name)), np.load(folder / name)
        if had.shape != wanted.shape:
            return f"{name}: shape {had.shape}, wanted {wanted.shape}"
        off = np.abs(had.astype(np.float64) - wanted).max()
        if not off <= case["atol"]:
            return f"{name}: {off:.3g} off, allowed {case['atol']:.3g}"
    return None


def sweep(fovea, n_cases, first_seed, isa):
    n_failed = 0
    for seed in range(first_seed, first_seed + n_cases):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "case"
            make(folder, seed, largest=24 if seed % 4 else 72)
            problem = check(fovea, folder, isa)
            if problem:
                n_failed += 1
                case = json.loads((folder / "case.json").read_text())
                print(f"seed {seed}: {problem}\n  {(folder / 'config.json').read_text().strip()}\n  {case['args']}")
    print(f"{n_cases - n_failed} passed, {n_failed} failed")
    return n_failed != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweep")
    parser.add_argument("--n-cases", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--isa")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.sweep:
        return sweep(pathlib.Path(options.sweep).resolve(), options.n_cases, options.seed, options.isa)
    shutil.rmtree(FOLDER, ignore_errors=True)
    for seed in range(18):
        make(FOLDER / f"{seed:02}", seed, largest=12)
    return 0


if __name__ == "__main__":
    sys.exit(main())

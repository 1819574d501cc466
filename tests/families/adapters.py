#!/usr/bin/env python3
"""Adapters of random models of every family, as PEFT writes them: Fovea's logits beside PEFT's own, unmerged.

    adapters.py FOVEA [--shapes N] [MODEL_TYPE...]   prints a line for each family

Each of METHODS is trained for nothing: its numbers are random. Merged (convert MODEL --lora) and, where it is products of
layers alone, beside the model (convert ADAPTER --base MODEL; logits --lora) if that is not refused by name, the largest difference must be below 1e-4 of the
largest logit. A method of REFUSED must be refused by that word. Needs torch, transformers, peft and numpy.
"""
import argparse
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers.pytorch_utils import Conv1D
    from transformers.utils import logging as of_transformers
except ImportError as missing:
    print(f"{missing}: nothing was compared")
    sys.exit(77)

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
of_transformers.disable_progress_bar()

import renamed  # noqa: E402
import shapes  # noqa: E402

LIMIT = 1e-4
MERGES = "convert MODEL --lora merges it"  # what is said of products that no file beside the model can hold
N_TOKENS = 24

# {name: settings}; TABLE, HEAD and LINEAR stand for the model's modules of these. With "beside" it is products of layers alone.
METHODS = {
    "all-linear": dict(target_modules="all-linear", r=2, lora_alpha=3, beside=True),
    "linear": dict(target_modules=["LINEAR"], r=3, lora_alpha=5, beside=True),
    "rslora": dict(target_modules=["LINEAR"], r=4, lora_alpha=6, use_rslora=True, beside=True),
    "one layer": dict(target_modules=["LINEAR"], layers_to_transform=[0], r=2, lora_alpha=3, beside=True),
    "biases": dict(target_modules=["LINEAR"], bias="all", r=2),
    "table": dict(target_modules=["TABLE"], r=3, lora_alpha=4),
    "head": dict(target_modules=["HEAD"], r=2, lora_alpha=4),
    "both": dict(target_modules=["TABLE", "HEAD"], r=2, lora_alpha=4),
    "one product of both": dict(target_modules=["TABLE"], ensure_weight_tying=True, r=2, lora_alpha=4),
    "table saved": dict(target_modules=["LINEAR"], modules_to_save=["TABLE"], r=2),
    "head saved": dict(target_modules=["LINEAR"], modules_to_save=["HEAD"], r=2),
    "both saved": dict(target_modules=["LINEAR"], modules_to_save=["TABLE", "HEAD"], r=2),
    "one saved of both": dict(target_modules=["LINEAR"], modules_to_save=["TABLE"], ensure_weight_tying=True, r=2),
}
REFUSED = {
    "dora": (dict(target_modules=["LINEAR"], use_dora=True, r=2), "use_dora"),
    "lora_bias": (dict(target_modules=["LINEAR"], lora_bias=True, r=2), "lora_bias"),
    "tokens": (dict(target_modules=["LINEAR"], trainable_token_indices=[1, 2], r=2), "trainable_token_indices"),
}


def name_of(model, wanted):
    """The last part of a module's name."""
    return next(name for name, module in model.named_modules() if module is wanted).rpartition(".")[2]


def with_names(settings, model):
    """The settings, with the modules' names; none where the model has no such module."""
    head = model.get_output_embeddings()
    linear = {name.rpartition(".")[2] for name, module in model.named_modules()
              if isinstance(module, (torch.nn.Linear, Conv1D)) and module is not head}
    names = {"TABLE": {name_of(model, model.get_input_embeddings())}, "HEAD": {name_of(model, head)}, "LINEAR": linear}
    own = {key: value for key, value in settings.items() if key != "beside"}
    for key in ("target_modules", "modules_to_save"):
        if isinstance(own.get(key), list):
            own[key] = sorted(set().union(*(names[name] for name in own[key])))
    return own


def train(model, settings, seed):
    """A PEFT model whose trained numbers are random."""
    adapted = get_peft_model(model, LoraConfig(task_type=None, **settings)).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if parameter.requires_grad:
                of_factor = parameter.dim() == 2 and ".lora_" in name
                scale = 0.5 / parameter.shape[1] ** 0.5 if of_factor else 0.3
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
    return adapted


def run(fovea, *arguments):
    return subprocess.run([fovea, *map(str, arguments)], capture_output=True, text=True)


def logits_of(fovea, model, tokens, out, *more):
    done = run(fovea, "logits", model, "--tokens", ",".join(map(str, tokens)), "-o", out, *more)
    if done.returncode:
        raise ValueError(done.stderr.strip().splitlines()[-1])
    return numpy.load(out)


def converted(fovea, source, out, *more):
    done = run(fovea, "convert", source, "-o", out, "--type", "f32", *more)
    if done.returncode:
        raise ValueError(done.stderr.strip().splitlines()[-1])
    return out


def distance(got, expected):
    if got.shape != expected.shape or not numpy.isfinite(got).all():
        raise ValueError(f"logits: expected finite ones of shape {expected.shape}, got {got.shape}")
    return float(numpy.abs(got - expected).max() / numpy.abs(expected).max())


def prepared(model_type, fields, settings, seed, work):
    """Writes base and adapter; (tokens, expected logits, the plain model's)."""
    _, plain = shapes.write_model(model_type, fields, work / "base", seed, n_tokens=N_TOKENS)
    model, config = shapes.model_of(model_type, fields, seed)
    adapted = train(model, with_names(settings, model), seed + 1)
    adapted.save_pretrained(work / "lora")
    vocab_size = config.get_text_config().vocab_size
    tokens = [(7 * i + 3) % vocab_size for i in range(N_TOKENS)]
    with torch.no_grad():
        expected = adapted(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    return tokens, expected, plain


def compare(fovea, model_type, fields, settings, seed, work):
    """(words, whether all is right)."""
    tokens, expected, plain = prepared(model_type, fields, settings, seed, work)
    if distance(plain, expected) < 10 * LIMIT:
        raise ValueError("the adapter changes nothing")
    base, lora = work / "base", work / "lora"
    if "target_parameters" in (done := run(fovea, "convert", base, "-o", work / "m.fovea", "--lora", lora)).stderr:
        return "experts are refused", done.returncode == 1  # PEFT counts experts' matrices as linear maps
    merged = converted(fovea, base, work / "merged.fovea", "--lora", lora)
    errors = [distance(logits_of(fovea, merged, tokens, work / "l.npy"), expected)]
    if settings.get("beside"):
        alone = converted(fovea, base, work / "base.fovea")
        try:
            adapter = converted(fovea, lora, work / "adapter.fovea", "--base", base)
            errors.append(distance(logits_of(fovea, alone, tokens, work / "l.npy", "--lora", adapter), expected))
        except ValueError as refused:
            if MERGES not in str(refused):
                raise
    return max(errors), max(errors) < LIMIT


def refusal(fovea, model_type, fields, settings, word, seed, work):
    try:
        prepared(model_type, fields, settings, seed, work)
    except ValueError as refused:  # by PEFT itself
        return str(refused), "does not work with" in str(refused)
    done = run(fovea, "convert", work / "base", "-o", work / "m.fovea", "--lora", work / "lora")
    right = done.returncode == 1 and word in done.stderr
    return done.stderr.strip() or "taken", right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fovea")
    parser.add_argument("model_types", nargs="*")
    parser.add_argument("--shapes", type=int, default=1, help="of each family (default: 1)")
    parser.add_argument("--methods", nargs="*")
    options = parser.parse_args()
    asked = options.model_types or [name for name in shapes.SHAPES if name not in renamed.TWINS and "_mxfp4" not in name]
    n_wrong = n_right = 0
    for model_type in asked:
        wrong, worst = [], 0.0
        of_type = shapes.SHAPES[model_type][: options.shapes]
        tasks = [(name, lambda *a, s=s: compare(*a[:3], s, *a[3:])) for name, s in METHODS.items()]
        tasks += [(name, lambda *a, s=s, w=w: refusal(*a[:3], s, w, *a[3:])) for name, (s, w) in REFUSED.items()]
        for number, fields in enumerate(of_type):
            for name, task in tasks:
                if options.methods and name not in options.methods:
                    continue
                with tempfile.TemporaryDirectory() as work:
                    try:
                        word, right = task(options.fovea, model_type, fields, 300 + number, pathlib.Path(work))
                    except Exception as failed:  # refusals of PEFT and transformers have no type of their own
                        word, right = f"{type(failed).__name__}: {failed}".replace(work, ""), False
                if isinstance(word, float):
                    worst = max(worst, word)
                if not right:
                    wrong.append(f"\n    WRONG {name} {number}: {word}")
                n_right += right
        n_wrong += len(wrong)
        print(f"{model_type:20} {worst:.1e}{''.join(wrong)}", flush=True)
    print(f"{len(asked)} families, {n_right} right, {n_wrong} wrong")
    return n_wrong != 0


if __name__ == "__main__":
    sys.exit(main())

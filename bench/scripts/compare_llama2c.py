#!/usr/bin/env python3
"""Decoding speed beside llama2.c's run.c, one thread each, the same checkpoint, prompt, tokens and text.

Runs alternate, so that both meet the same moods of a shared machine. Each program's own figure is used: neither counts
loading, and run.c's clock has milliseconds, so that a single run of a small model is good to some percent.
Build run.c outside this project, for instance with: gcc -O3 -march=native -ffast-math -o run run.c -lm
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

PROMPT = "Once upon a time"


def refuse(line):
    sys.exit("compare_llama2c: " + line)


def call(command, environment):
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        refuse(f"{command[0]}: expected exit status 0, got {done.returncode}: {done.stderr.strip()}")
    return done


def run_fovea(options, model, environment):
    """Tokens per second, text."""
    command = [options.fovea, "run", model, "-p", PROMPT, "-n", str(options.tokens - options.prompt_tokens), "--echo",
               "--temp", "0", "--threads", "1", "--json"]
    result = json.loads(call(command, environment).stdout)
    return result["tokens_per_second"], PROMPT + result["text"]


def run_peer(options, environment):
    command = [options.peer, options.checkpoint, "-z", options.tokenizer, "-t", "0", "-n", str(options.tokens), "-i",
               PROMPT]
    done = call(command, environment)
    rate = re.search(r"tok/s: ([0-9.]+)", done.stderr)
    if not rate:
        refuse(f"{options.peer}: expected a line with tok/s on stderr, got {done.stderr.strip()!r}")
    return float(rate.group(1)), done.stdout


def describe(name, rates):
    low, middle, high = statistics.quantiles(rates, n=4)
    print(f"{name:<10} median {middle:8.0f} tokens/s   quartiles {low:8.0f} {high:8.0f}   best {max(rates):8.0f}")
    return middle


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("fovea", "peer", "checkpoint", "tokenizer"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--tokens", type=int, default=256, help="of the whole text, prompt included")
    parser.add_argument("--prompt-tokens", type=int, default=4, help="the prompt's, start token and all")
    options = parser.parse_args()
    if options.pairs < 2:
        refuse(f"--pairs: expected at least 2, got {options.pairs}")

    environment = dict(os.environ, OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.fovea")
        call([options.fovea, "convert", options.checkpoint, "--tokenizer", options.tokenizer, "-o", model], environment)
        fovea, peer, ratios = [], [], []
        for pair in range(options.pairs):
            if pair % 2:
                theirs, their_text = run_peer(options, environment)
                ours, our_text = run_fovea(options, model, environment)
            else:
                ours, our_text = run_fovea(options, model, environment)
                theirs, their_text = run_peer(options, environment)
            if our_text.strip() != their_text.strip():
                refuse(f"texts: expected the same of both, got {our_text[:60]!r} and {their_text[:60]!r}")
            fovea.append(ours)
            peer.append(theirs)
            ratios.append(ours / theirs)
    ours, theirs = describe("fovea", fovea), describe("llama2.c", peer)
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"ratio      of medians {ours / theirs:.2f}   of pairs, median {middle:.2f}, quartiles {low:.2f} {high:.2f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Speed beside another engine's bench program, on a GGUF file and on the Fovea file converted from it.

The peer is llama-bench, of llama.cpp or of ik_llama.cpp, built elsewhere with -march=native. The two programs run in
alternating pairs, prefill and decode apart, with the same number of threads, so that both meet the same moods of a
shared machine; both keep keys and values as f16 unless told otherwise. Ratios are of the two runs of a pair, above 1
where Fovea is faster.

    bench/scripts/make_gguf_twins.py --shape smollm2-135m --type q8_0 -o twin.gguf
    bench/scripts/compare.py --fovea build/release/fovea --peer path/to/llama-bench --model twin.gguf --threads 2
    bench/scripts/compare.py ... --peer-args="-rtr 1"       # ik_llama.cpp's repacking at run time
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile


def refuse(line):
    sys.exit("compare: " + line)


def call(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        refuse(f"{command[0]}: expected a program to run, got {error.strerror}")
    if done.returncode:
        refuse(f"{command[0]}: expected exit status 0, got {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def parsed(program, text):
    """The JSON in a program's output, which may have other lines before it."""
    for start in (i for i, c in enumerate(text) if c in "[{" and (i == 0 or text[i - 1] == "\n")):
        try:
            return json.JSONDecoder().raw_decode(text[start:])[0]
        except json.JSONDecodeError:
            continue
    refuse(f"{program}: expected JSON on stdout, got {text[:80]!r}")


def run_fovea(options, model, phase):
    """Tokens per second. Each phase's run does as little as it may of the other."""
    prompt, new = (options.prompt, 1) if phase == "prefill" else (max(1, options.depth), options.tokens)
    result = parsed(options.fovea, call([options.fovea, "bench", model, "--threads", str(options.threads), "-p",
                                         str(prompt), "-n", str(new), "--kv", options.kv, "--repeat", "1", "--json"]))
    return result["prefill_tokens_per_second" if phase == "prefill" else "tokens_per_second"]


def run_peer(options, phase):
    prompt, new = (options.prompt, 0) if phase == "prefill" else (0, options.tokens)
    deep = ["-d", str(options.depth)] if phase == "decode" and options.depth else []
    model = options.peer_model or options.model
    result = parsed(options.peer, call([options.peer, "-m", model, "-t", str(options.threads), "-p", str(prompt),
                                        "-n", str(new), "-r", "1", "-o", "json", *deep, *options.peer_args]))
    for row in result:
        if (row["n_prompt"], row["n_gen"]) == (prompt, new):
            return row["avg_ts"]
    refuse(f"{options.peer}: expected a result for {prompt} prompt and {new} new tokens, got none")


def spread(numbers, digits):
    low, middle, high = statistics.quantiles(numbers, n=4)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def compare(options, model, phase, run_theirs):
    fovea, peer = [], []
    runs = [lambda: fovea.append(run_fovea(options, model, phase)), lambda: peer.append(run_theirs(options, phase))]
    for pair in range(options.pairs + 1):
        for run in runs if pair % 2 == 0 else reversed(runs):
            run()
        if pair == 0:  # it read files that were not in memory
            fovea.clear(), peer.clear()
    ratios = [a / b for a, b in zip(fovea, peer)]
    if options.json:
        return {"fovea": fovea, "peer": peer, "ratios": ratios, "median_ratio": statistics.median(ratios)}
    print(f"{phase:<8} fovea {spread(fovea, 1)}  peer {spread(peer, 1)} tokens/s  ratio {spread(ratios, 2)}", flush=True)
    return None


def compare_folders(description, make_peer, add_options=None):
    """The command line of a script whose peer runs within Python: make_peer(options) has tokens_per_second(options, phase)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default="build/release/fovea", help="our command line")
    parser.add_argument("--model", required=True, help="the Hugging Face folder, or a Fovea file of it")
    parser.add_argument("--type", default="q8", help="of the weights, where --model is a folder (default q8)")
    parser.add_argument("--peer", required=True, help="the folder that was exported from it")
    parser.add_argument("--kv", default="f16", choices=("f32", "f16", "q8", "q4"), help="our cache (default f16)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("-p", "--prompt", type=int, default=512, help="tokens of prefill")
    parser.add_argument("-n", "--tokens", type=int, default=32, help="tokens to decode")
    parser.add_argument("--depth", type=int, default=8, help="positions in the cache before decoding (default 8)")
    parser.set_defaults(json=False)
    if add_options:
        add_options(parser)
    options = parser.parse_args()
    if options.pairs < 2:
        refuse(f"--pairs: expected at least 2, got {options.pairs}")
    peer = make_peer(options)
    with tempfile.TemporaryDirectory() as folder:
        model = options.model
        if os.path.isdir(model):
            model = os.path.join(folder, "model.fovea")
            call([options.fovea, "convert", options.model, "-o", model, "--type", options.type])
        print(f"{options.model}: {options.threads} threads, {options.pairs} pairs, medians with quartiles")
        for phase in ("prefill", "decode"):
            compare(options, model, phase, peer.tokens_per_second)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default="build/release/fovea", help="our command line")
    parser.add_argument("--peer", required=True, help="the other engine's llama-bench")
    parser.add_argument("--peer-args", type=shlex.split, default=[], help="more arguments for it")
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--peer-model", help="the peer's own file, where it wants another")
    parser.add_argument("--type", help="of the weights of the Fovea file (default: the GGUF file's)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("-p", "--prompt", type=int, default=512, help="tokens of prefill; 0: no prefill")
    parser.add_argument("-n", "--tokens", type=int, default=64, help="tokens to decode; 0: no decoding")
    parser.add_argument("--depth", type=int, default=0, help="positions in the cache before decoding (peer: -d)")
    parser.add_argument("--kv", default="f16", choices=("f32", "f16", "q8", "q4"), help="our cache; the peer's by --peer-args")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.pairs < 2:
        refuse(f"--pairs: expected at least 2, got {options.pairs}")
    if not os.path.isfile(options.model):
        refuse(f"--model: expected a GGUF file, got {options.model}")
    phases = [phase for phase, n in (("prefill", options.prompt), ("decode", options.tokens)) if n > 0]
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.fovea")
        call([options.fovea, "convert", options.model, "-o", model] + (["--type", options.type] if options.type else []))
        if not options.json:
            print(f"{options.model}: {options.threads} threads, {options.pairs} pairs, medians with quartiles")
        results = {phase: compare(options, model, phase, run_peer) for phase in phases}
    if options.json:
        print(json.dumps({"model": options.model, "threads": options.threads, **results}))


if __name__ == "__main__":
    main()

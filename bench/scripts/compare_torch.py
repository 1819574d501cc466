#!/usr/bin/env python3
"""Speed beside PyTorch: attention modules, plain attention, and a sentence encoder, in alternating pairs.

Needs torch and safetensors, and transformers for --sentences, which ONNX Runtime joins where it and onnx are installed.
PyTorch runs in this process (inference mode, its own
choice of kernels), Fovea's command line as a child that computes --repeat times and tells the median. Both get the same
inputs and number of threads; ratios are of the two medians of a pair, above 1 where Fovea is faster. Results are
compared too: a line ends with the largest difference.

    bench/scripts/compare_torch.py --threads 1                        # nn.MultiheadAttention, scaled_dot_product_attention
    bench/scripts/compare_torch.py --sentences FOLDER --texts FILE    # a sentence-transformers folder, texts a line each
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from safetensors.torch import save_file

MODULES = [(512, 8, 12), (512, 8, 128), (512, 8, 512), (512, 8, 2048), (768, 12, 128), (768, 12, 512)]


def fovea(options, *arguments):
    done = subprocess.run([options.fovea, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compare_torch: {options.fovea}: expected exit status 0, got {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout) if "--json" in arguments else None


def median_seconds(call, budget):
    """Of as many calls as fit the budget, at least three; the first ones warm up."""
    call()
    start = time.perf_counter()
    call()
    n = max(3, int(budget / (time.perf_counter() - start)))
    seconds = []
    for _ in range(n):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), n


def compare(options, name, theirs, want, folder, arguments, peer="torch"):
    """`theirs` computes what `fovea arguments` does; `want` are PyTorch's numbers."""
    out = folder / "out.npy"
    ratios, ours_us, theirs_us = [], [], []
    _, n = median_seconds(theirs, options.budget)
    for pair in range(options.pairs):
        def run_ours():
            report = fovea(options, *arguments, "--threads", options.threads, "--repeat", n, "-o", out, "--json")
            ours_us.append(report["seconds"] * 1e6)
        runs = [run_ours, lambda: theirs_us.append(median_seconds(theirs, options.budget)[0] * 1e6)]
        for run in runs if pair % 2 == 0 else reversed(runs):
            run()
        ratios.append(theirs_us[-1] / ours_us[-1])
    difference = numpy.abs(numpy.load(out) - want).max()
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{name:<34} fovea {statistics.median(ours_us):10.1f} us  {peer} {statistics.median(theirs_us):10.1f} us  "
          f"ratio {middle:5.2f} ({low:.2f} to {high:.2f})  difference {difference:.1e}", flush=True)


def compare_modules(options, folder):
    for embed, heads, n in MODULES:
        module = torch.nn.MultiheadAttention(embed, heads, batch_first=True).eval()
        x = torch.randn(1, n, embed)
        source = folder / "module"
        source.mkdir(exist_ok=True)
        save_file({name: value.contiguous() for name, value in module.state_dict().items()},
                  source / "model.safetensors")
        (source / "config.json").write_text(json.dumps(
            {"model_type": "torch.nn.MultiheadAttention", "embed_dim": embed, "num_heads": heads, "batch_first": True}))
        numpy.save(folder / "x.npy", x.numpy())
        for kind in options.types:
            fovea(options, "convert", source, "-o", folder / "m.fovea", "--type", kind)
            for weights in (False, True) if options.weights else (False,):
                def theirs():
                    return module(x, x, x, need_weights=weights)[0]
                asked = ["--weights", folder / "w.npy"] if weights else []
                compare(options, f"MHA {embed}x{heads}, {n} tokens, {kind}{', weights' if weights else ''}", theirs,
                        theirs().numpy(), folder, ["attend", folder / "m.fovea", "--query", folder / "x.npy", *asked])


def compare_plain(options, folder):
    shape = (1, 8, 2048, 64)
    query, key, value = (torch.randn(shape) for _ in range(3))
    for name, array in (("q", query), ("k", key), ("v", value)):
        numpy.save(folder / f"{name}.npy", array.numpy())
    for causal in (False, True):
        def theirs():
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        compare(options, f"attention {list(shape)}{', causal' if causal else ''}", theirs, theirs().numpy(), folder,
                ["attend", "--query", folder / "q.npy", "--key", folder / "k.npy", "--value", folder / "v.npy",
                 *(["--causal"] if causal else [])])


def onnx_runtime(model, example, file, threads):
    """The model as ONNX Runtime runs it: a callable from a batch to its last hidden states; None where it is missing."""
    try:
        import onnxruntime
    except ImportError:
        return None
    names = list(example)
    axes = {name: {0: "batch", 1: "seq"} for name in [*names, "hidden"]}
    torch.onnx.export(OnnxForm(model, names), tuple(example[n] for n in names), str(file),
                      input_names=names, output_names=["hidden"], dynamic_axes=axes, dynamo=False)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
    return lambda batch: torch.from_numpy(session.run(None, {n: batch[n].numpy() for n in names})[0])


class OnnxForm(torch.nn.Module):
    """Inputs by position and one tensor out, which is what the exporter takes."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs))).last_hidden_state


def compare_sentences(options, folder):
    from transformers import AutoModel, AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(options.sentences)
    model = AutoModel.from_pretrained(options.sentences, attn_implementation="sdpa").eval()
    texts = pathlib.Path(options.texts).read_text().splitlines()

    def vectors(hidden_states):
        """As sentence-transformers does it: batches of 32, longest texts first, padded to the longest of each."""
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        result = [None] * len(texts)
        for begin in range(0, len(texts), 32):
            part = order[begin:begin + 32]
            batch = tokenizer([texts[i] for i in part], padding=True, truncation=True, return_tensors="pt")
            mask = batch["attention_mask"].unsqueeze(-1)
            rows = (hidden_states(batch) * mask).sum(1) / mask.sum(1)
            for i, row in zip(part, torch.nn.functional.normalize(rows)):
                result[i] = row
        return torch.stack(result)
    peers = {"torch": lambda batch: model(**batch).last_hidden_state}
    plain = AutoModel.from_pretrained(options.sentences, attn_implementation="eager").eval()
    runtime = onnx_runtime(plain, dict(tokenizer(["one text", "two"], padding=True, return_tensors="pt")),
                           folder / "m.onnx", options.threads)
    if runtime:
        peers["onnxruntime"] = runtime
    for kind in options.types:
        fovea(options, "convert", options.sentences, "-o", folder / "m.fovea", "--type", kind)
        for peer, hidden_states in peers.items():
            def theirs():
                return vectors(hidden_states)
            compare(options, f"{len(texts)} texts, {kind}", theirs, theirs().numpy(), folder,
                    ["encode", folder / "m.fovea", "--texts", options.texts], peer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default="build/release/fovea", help="our command line")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of each run")
    parser.add_argument("--types", nargs="+", default=["f32", "q8"], help="of our weights")
    parser.add_argument("--weights", action="store_true", help="modules with need_weights=True too")
    parser.add_argument("--sentences", help="a sentence-transformers folder: compare that instead")
    parser.add_argument("--texts", help="its texts, a line each")
    options = parser.parse_args()
    if options.pairs < 2:
        sys.exit(f"compare_torch: --pairs: expected at least 2, got {options.pairs}")
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} threads, {options.pairs} pairs, medians with quartiles")
    with tempfile.TemporaryDirectory() as name, torch.inference_mode():
        folder = pathlib.Path(name)
        if options.sentences:
            compare_sentences(options, folder)
        else:
            compare_modules(options, folder)
            compare_plain(options, folder)


if __name__ == "__main__":
    main()

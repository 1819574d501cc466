"""Logits of quantized decoders beside transformers' on the same weights, and how far our rounding and llama.cpp's moves them."""
import pathlib

import numpy

from llama_library import LlamaCpp

LENGTH = 334


def divergences(exact, other):
    """The Kullback-Leibler divergence of each position, in nats: [n, vocabulary] each."""
    result = []
    for first in range(0, len(exact), 32):
        of, to = ((part := array[first:first + 32].astype(float)) - part.max(1, keepdims=True) for array in (exact, other))
        likely = numpy.exp(of)
        total = likely.sum(1)
        result.append((likely * (of - to)).sum(1) / total - numpy.log(total) + numpy.log(numpy.exp(to).sum(1)))
    return numpy.concatenate(result)


def compare(report, model, source, packages, n_tokens, with_llama_cpp):
    """Divergence from the logits of the same weights in float32, over texts of three kinds."""
    exact = report.work / "exact.fovea"
    report.run("convert", source, "-o", exact, "--type", "f32")
    beside_transformers(report, exact, source)
    library = with_llama_cpp and packages.llama_cpp()
    peer = LlamaCpp(library, source) if library else None
    ours, theirs, other = [], [], 0
    for text in packages.texts().values():
        path = report.work / "text.txt"
        path.write_text(text)
        ids = numpy.array(report.run("tokenize", model, "-f", path).replace(",", " ").split(), numpy.int32)
        length = min(LENGTH, n_tokens // 3)
        for first in range(0, n_tokens // 3, length):
            tokens = ids[first:first + length].copy()
            tokens[0] = ids[0]
            numpy.save(report.work / "tokens.npy", tokens)
            truth = report.array("logits", exact, "--tokens", report.work / "tokens.npy").reshape(len(tokens), -1)
            got = report.array("logits", model, "--tokens", report.work / "tokens.npy").reshape(len(tokens), -1)
            ours.append(divergences(truth, got))
            other += int((truth.argmax(1) != got.argmax(1)).sum())
            if peer:
                theirs.append(divergences(truth, peer.logits(tokens)))
    exact.unlink()
    n, mean = sum(map(len, ours)), numpy.concatenate(ours).mean()
    beside = f"llama.cpp {numpy.concatenate(theirs).mean():.4f}" if theirs else "float32"
    report.row(f"divergence over {n:,} tokens", f"{mean:.4f} nats", beside, f"{other / n:.1%} other likeliest", mean < 0.02)


def beside_transformers(report, exact, source):
    tokens = [(7919 * i + 31) % 40000 + 100 for i in range(24)]

    def refer():
        import torch
        from transformers import AutoModelForCausalLM
        source_path = pathlib.Path(source)
        theirs = AutoModelForCausalLM.from_pretrained(source_path.parent, gguf_file=source_path.name, dtype=torch.float32).eval()
        with torch.no_grad():
            return theirs(torch.tensor([tokens])).logits[0, -1].numpy()

    ours = report.array("logits", exact, "--tokens", ",".join(map(str, tokens)))
    report.near("logits in float32", ours.reshape(len(tokens), -1)[-1], refer, 1e-4)

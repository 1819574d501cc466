#!/usr/bin/env python3
"""What ranks send, and how long it takes: a model of the network fitted here, held against passes, and computed for others.

    ranks_model.py fit FOVEA MODEL [-n RANKS...]           fits, predicts a token and a prompt, and measures them
    ranks_model.py table FOVEA MODEL [--alone TOKENS_PER_SECOND] [--link NAME=A,G...]
                                                           computed figures of 2, 4 and 8 machines, each as fast as this one

LogGP (Alexandrov et al. 1995): a gather of n ranks, each of which sends its part of m bytes to each other, takes
    L + 2·o + (n - 2)·g + (n - 1)·m·G
where L is the network's latency, o what a message costs a CPU, g the gap between messages, G a byte's time. A pass is its
computation, which ranks share as `fovea plan --machines` says, and its gathers, which `fovea bench` counts. $MPIRUN starts ranks;
tests/ranks/namespaces.py sets one that starts them in network namespaces.
"""
import argparse
import json
import os
import shlex
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MPIRUN = shlex.split(os.environ.get("MPIRUN", "mpirun -q --oversubscribe --allow-run-as-root"))
N_PROMPT, N_NEW = 256, 32


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def fitted(sizes, n):
    """(a, G): a gather's microseconds are a + (n - 1)·m·G, by least squares of relative errors."""
    rows = [((1 / t), ((n - 1) * m / t)) for m, t in sizes]
    aa, ab, bb = (sum(x * y for x, y in ((r[i], r[j]) for r in rows)) for i, j in ((0, 0), (0, 1), (1, 1)))
    ya, yb = sum(r[0] for r in rows), sum(r[1] for r in rows)
    determinant = aa * bb - ab * ab
    return (ya * bb - yb * ab) / determinant, (yb * aa - ya * ab) / determinant


def measure_gathers(n, program):
    said = output(*MPIRUN, "-n", str(n), program)
    return [(int(m), float(t)) for m, t in (line.split() for line in said.splitlines())]


def bench(fovea, model, n, prompt=N_PROMPT, new=N_NEW, repeat=5):
    command = [fovea, "bench", model, "-p", str(prompt), "-n", str(new), "--repeat", str(repeat), "--threads", "1", "--json"]
    return json.loads(output(*(MPIRUN + ["-n", str(n)] if n > 1 else []), *command))


def shares(fovea, model, n):
    """The largest rank's share of the matrices' bytes."""
    ranks = json.loads(output(fovea, "plan", model, "--machines", str(n), "--json"))["ranks"]
    return max(r["matrix_bytes"] for r in ranks) / sum(r["matrix_bytes"] for r in ranks)


def gathers_of(counted, n):
    """Gathers and bytes of a token, as the first rank sends them to each other rank."""
    return (counted["sent_messages"] / counted["n_tokens"] / (n - 1), counted["sent_bytes"] / counted["n_tokens"] / (n - 1))


def token_seconds(alone, share, n_gathers, n_bytes, n, a, big_g):
    return share / alone["tokens_per_second"] + (n_gathers * a + n_bytes * (n - 1) * big_g) / 1e6


def fit(options):
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "rank_messages")
        sources = [os.path.join(ROOT, "ranks", name) for name in ("mpi_ranks.cpp", "life_signs.cpp")]
        subprocess.run(["mpicxx", "-std=c++20", "-O2", "-DOMPI_SKIP_MPICXX", f"-I{ROOT}", f"-I{ROOT}/include",
                        os.path.join(ROOT, "bench/scripts/rank_messages.cpp"), *sources, "-o", program], check=True)
        alone = bench(options.fovea, options.model, 1)
        for n in options.n:
            sizes = measure_gathers(n, program)
            a, big_g = fitted(sizes, n)
            print(f"{n} ranks: a gather takes {a:.1f} µs and {big_g * 1000:.2f} ns a byte "
                  f"({8 / big_g / 1000:.2f} Gbit/s); the fit's errors " +
                  ", ".join(f"{m}: {((a + (n - 1) * m * big_g) / t - 1) * 100:+.0f} %" for m, t in sizes))
            got = bench(options.fovea, options.model, n)
            n_gathers, n_bytes = gathers_of(got, n)
            want = token_seconds(alone, shares(options.fovea, options.model, n), n_gathers, n_bytes, n, a, big_g)
            had = 1 / got["tokens_per_second"]
            print(f"    a token: {n_gathers:.0f} gathers, {n_bytes:.0f} bytes to each; computed {want * 1e3:.2f} ms, "
                  f"measured {had * 1e3:.2f} ms, {(want / had - 1) * 100:+.0f} %")


def table(options):
    alone = {"tokens_per_second": options.alone} if options.alone else bench(options.fovea, options.model, 1)
    # Messages do not depend on what else this machine does, so few tokens of two ranks count them. What is gathered is the same for
    # any number of ranks, each of which has a part.
    n_gathers, bytes_of_two = gathers_of(bench(options.fovea, options.model, 2, prompt=2, new=2, repeat=1), 2)
    print("| machines | " + " | ".join(options.link) + " |\n| --- |" + " --- |" * len(options.link))
    for n in (2, 4, 8):
        share, cells = shares(options.fovea, options.model, n), []
        for link in options.link:
            a, big_g = map(float, link.split("=")[1].split(","))
            seconds = token_seconds(alone, share, n_gathers, bytes_of_two * 2 / n, n, a, big_g / 1000)
            cells.append(f"{1 / seconds:.1f} ({1 / seconds / alone['tokens_per_second']:.2f})")
        print(f"| {n} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("act", choices=("fit", "table"))
    parser.add_argument("fovea")
    parser.add_argument("model")
    parser.add_argument("-n", type=int, nargs="+", default=[2])
    parser.add_argument("--alone", type=float, help="of one machine, in place of this one's")
    parser.add_argument("--link", nargs="+", default=["1 Gbit/s, 100 µs=130,8", "10 Gbit/s, 20 µs=35,0.8"],
                        help="NAME=A,G: microseconds of a gather, nanoseconds of a byte")
    options = parser.parse_args()
    (fit if options.act == "fit" else table)(options)

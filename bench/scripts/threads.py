#!/usr/bin/env python3
"""What more threads give one token: a model of its phases and meetings, held against what this machine measures.

    bench/scripts/threads.py MODEL [--fovea build/release/fovea] [--bench build/bench/bench/fovea_bench] [--pairs 5]
                     [--memory GB_S] [--json]

A token is a sequence of phases. In each, every member of the team reads its share of a matrix, in whole pairs of panels (32
rows), then waits for the others:

    t(n) = sum over phases of max(largest share / bandwidth(1), all shares / bandwidth(n)) + unshared + n_meetings * meet(n) + run(n)

Of one thread the model takes the time of a token: what is left of it, once the bytes are read at the bandwidth of one thread, is
taken for work that more threads do not shorten, for every member packs its own operands and waits anew for the first lines of each
matrix. For two threads everything is predicted, from their bandwidth and the benchmarks team/meet and team/run_spinning, and then
measured. For more threads bandwidth(n) is n times that of one, up to what the memory gives (--memory, by default what two threads
read). meet(n) lies between two bounds: as many transfers of a cache line one after the other as there are members, and as many as a
tree is high. Attention is left out, so contexts are short.
"""
import argparse
import json
import math
import re
import statistics
import subprocess
import sys

PANEL_PAIR = 32  # rows of a unit of work
PRODUCTS = (("query", "key", "value"), ("attention_output",), ("up",), ("down",))  # each a phase; gate lies with up
MEETINGS = 6  # of a layer: projections, rotation and cache, attention, its output map, inner, block


def refuse(line):
    sys.exit("threads: " + line)


def output(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        refuse(f"{command[0]}: expected exit status 0, got {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


class Phases:
    """Of one token: the matrices that members share, as (units, bytes) of each phase, and how often they meet."""

    def __init__(self, inspected):
        tensors = [t for t in inspected["tensors"] if t["stack"] == "decoder"]
        self.n_layers = inspected["decoder"]["n_layers"]
        if any(t["role"] == "router" for t in tensors):
            refuse("model: expected one without experts, got one with")
        head = [t for t in tensors if t["role"] == "output"] or [t for t in tensors if t["role"] == "token_embedding"]
        self.products = [self.phase([head[0]])]
        for roles in PRODUCTS:
            for layer in range(self.n_layers):
                found = [t for t in tensors if t["layer"] == layer and t["role"] in roles]
                if not found:
                    refuse(f"model: expected {' or '.join(roles)} in layer {layer}, got neither")
                self.products.append(self.phase(found))
        self.n_meetings = MEETINGS * self.n_layers + 1
        self.bytes = sum(n_bytes for _, n_bytes in self.products)

    @staticmethod
    def phase(tensors):
        return sum(-(-t["shape"][0] // PANEL_PAIR) for t in tensors), sum(t["bytes"] for t in tensors)

    def seconds(self, n, of_one, of_all):
        """Reading, by the bandwidth of one member and of all together."""
        return sum(max(n_bytes / units * -(-units // n) / of_one, n_bytes / of_all) for units, n_bytes in self.products)

    def imbalance(self, n):
        """What the busiest member reads over an equal share."""
        return sum(n_bytes / units * -(-units // n) for units, n_bytes in self.products) * n / self.bytes


class Machine:
    """What is measured here."""

    def __init__(self, options, phases):
        team = json.loads(output([options.bench, "--benchmark_filter=team/", "--benchmark_format=json"]))
        named = {entry["name"]: entry["real_time"] * 1e-6 for entry in team["benchmarks"]}
        # The last are of the command line's executor.
        self.meet, self.run, self.wake = (
            [t for name, t in named.items() if re.match(f"team/{what}/[a-z]+/threads:2", name)][-1]
            for what in ("meet", "run_spinning", "run_sleeping"))
        self.token, self.bandwidth = {}, {}
        runs = [[self.bench(options, n) for n in (1, 2)] for _ in range(options.pairs)]
        for i, n in enumerate((1, 2)):
            self.token[n] = statistics.median(1 / pair[i]["tokens_per_second"] for pair in runs)
            self.bandwidth[n] = statistics.median(pair[i]["read_peak"] for pair in runs)
        self.memory = options.memory * 1e9 if options.memory else self.bandwidth[2]
        self.unshared = max(0.0, self.token[1] - phases.bytes / self.bandwidth[1])

    @staticmethod
    def bench(options, n):
        return json.loads(output([options.fovea, "bench", options.model, "--threads", str(n), "-p", "8", "-n",
                                  str(options.tokens), "--context", str(options.tokens + 16), "--repeat", "1", "--json"]))

    def bandwidth_of(self, n):
        return self.bandwidth[n] if n <= 2 and n in self.bandwidth else min(n * self.bandwidth[1], self.memory)


def predict(phases, machine, n):
    """Seconds of a token: with the cheap and with the dear meeting."""
    seconds = phases.seconds(n, machine.bandwidth[1], machine.bandwidth_of(n)) + machine.unshared
    if n == 1:
        return seconds, seconds
    return tuple(seconds + phases.n_meetings * machine.meet * times + machine.run * times for times in (math.log2(n), n - 1))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a Fovea file with logits")
    parser.add_argument("--fovea", default="build/release/fovea", help="the command line")
    parser.add_argument("--bench", default="build/bench/bench/fovea_bench", help="the benchmarks, built by ./dev bench")
    parser.add_argument("--pairs", type=int, default=5, help="runs of one and of two threads, in turns")
    parser.add_argument("-n", "--tokens", type=int, default=96)
    parser.add_argument("--memory", type=float, default=0, help="GB/s that all threads together can read (default: as two do)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main():
    options = arguments()
    phases = Phases(json.loads(output([options.fovea, "inspect", options.model, "--json"])))
    machine = Machine(options, phases)
    rows = []
    for n in (1, 2, 4, 8, 16, 32, 64):
        cheap, dear = predict(phases, machine, n)
        rows.append({"n_threads": n, "tokens_per_second": [1 / dear, 1 / cheap],
                     "measured": 1 / machine.token[n] if n in machine.token else None,
                     "imbalance": phases.imbalance(n),
                     "meetings_share": [phases.n_meetings * machine.meet * math.log2(n) / cheap,
                                        phases.n_meetings * machine.meet * (n - 1) / dear]})
    facts = {"bytes": phases.bytes, "n_meetings": phases.n_meetings, "meet_us": machine.meet * 1e6,
             "run_us": machine.run * 1e6, "wake_us": machine.wake * 1e6, "bandwidth": machine.bandwidth,
             "memory": machine.memory, "unshared": machine.unshared, "rows": rows}
    if options.json:
        print(json.dumps(facts))
        return
    print(f"{phases.bytes / 1e6:.1f} MB and {phases.n_meetings} meetings a token; a meeting of two {facts['meet_us']:.2f} us, a run of a "
          f"spinning team {facts['run_us']:.1f} us, of a sleeping one {facts['wake_us']:.1f} us; one thread can read "
          f"{machine.bandwidth[1] / 1e9:.1f} GB/s, two {machine.bandwidth[2] / 1e9:.1f}, all {machine.memory / 1e9:.0f}; "
          f"{machine.unshared * 1e3:.2f} ms of {machine.token[1] * 1e3:.2f} are not shared")
    print("| threads | tokens/s, predicted | measured | busiest member over an equal share | of the time in meetings |")
    print("| --- " * 5 + "|")
    for row in rows:
        low, high = row["tokens_per_second"]
        few, many = row["meetings_share"]
        measured = f"{row['measured']:.1f}" if row["measured"] else ""
        spread = f"{low:.1f}" if high - low < 0.05 else f"{low:.0f} to {high:.0f}"
        print(f"| {row['n_threads']} | {spread} | {measured} | {row['imbalance']:.2f} | {100 * few:.0f} to {100 * many:.0f} % |")


if __name__ == "__main__":
    main()

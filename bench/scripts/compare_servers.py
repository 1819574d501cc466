#!/usr/bin/env python3
"""`fovea serve` beside another server of OpenAI's completions, for many clients whose prompts begin alike.

The peer is a command, built elsewhere, in which {model}, {port}, {clients}, {context}, {positions} and {threads} are
filled in; it runs the GGUF file, Fovea the file converted from it. For each number of clients both servers are started
anew in alternating pairs. A client sends a request, reads the stream to its end and sends the next. All prompts are
token ids: a system prompt that all share, then a question of 8 to 40 tokens that nobody else asks. All answers have
the same number of tokens. Before the clock starts each client has had --warm answers, so that a server which keeps
prompts has kept them for each of its clients; --warm 0 counts from an empty server, and then --requests 1 is the
moment at which all come at once. Percentiles are of one run; figures are medians of runs, ratios those of pairs.

    bench/scripts/make_gguf_twins.py --shape smollm2-135m --type q8_0 -o twin.gguf
    bench/scripts/compare_servers.py --model twin.gguf --threads 2 --peer-name llama.cpp --peer "path/to/llama-server
        -m {model} --port {port} -t {threads} -np {clients} -c {positions}"

With `-o FILE` each run is a line of JSON at the end of FILE, and the table is of all runs in it: a busy machine can be
measured a pair at a time. A pair in which this program itself stood still for more than a second says nothing: it is
said and taken again.
"""
import argparse
import asyncio
import json
import math
import os
import random
import re
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

FIRST_TEXT = re.compile(rb'"text": ?"[^"]')
STANDSTILL = 1.0  # seconds; what stops this program has most likely stopped the server
FIELDS = ("tokens_per_second", "first_token_p50", "first_token_p99", "peak_resident_mb")


def refuse(line):
    sys.exit("compare_servers: " + line)


def percentile(numbers, share):
    """The smallest of them that so many are not above."""
    return sorted(numbers)[max(0, math.ceil(share * len(numbers)) - 1)]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    """A process that answers at /health, ended with the block."""

    def __init__(self, command, port):
        self.port, self.log = port, tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        except OSError as error:
            refuse(f"{command[0]}: expected a program to run, got {error.strerror}")
        until = time.monotonic() + 120
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                self.log.seek(0)
                refuse(f"{command[0]}: expected an answer at /health, got {self.log.read()[-300:]!r}")
            time.sleep(0.05)

    def answers(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def peak_resident_mb(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) >> 10

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def events(answer):
    """The JSON of a stream's events. Chunks are cut where the server likes, so their frames go first."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        refuse(f"a request: expected status 200, got {answer[:300]!r}")
    if b"chunked" in head.lower():
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            n = int(size, 16)
            body, rest = body + rest[:n], rest[n + 2 :]
        rest = body
    lines = [line[6:] for line in rest.splitlines() if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


async def ask(port, body):
    """Seconds to the first text of an answer. All its tokens have been counted."""
    data = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started, first, answer = time.perf_counter(), None, bytearray()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                 b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    while piece := await reader.read(1 << 16):
        answer += piece
        if first is None and FIRST_TEXT.search(answer):
            first = time.perf_counter() - started
    writer.close()
    counts = [event["usage"]["completion_tokens"] for event in events(bytes(answer)) if event.get("usage")]
    if first is None or not counts or counts[-1] != body["max_tokens"]:
        refuse(f"an answer: expected {body['max_tokens']} tokens, got {counts[-1:]}: {bytes(answer[-300:])!r}")
    return first


class Load:
    """What the clients ask: the same of both servers."""

    def __init__(self, options, n_clients):
        self.options, self.n_clients = options, n_clients
        self.system = self.ids(random.Random(0), options.prompt)

    def ids(self, draw, n):
        return [draw.randrange(3, self.options.vocabulary) for _ in range(n)]

    def body(self, client, number):
        draw = random.Random(f"{client} {number}")
        return {"model": self.options.name, "prompt": self.system + self.ids(draw, draw.randint(8, 40)),
                "max_tokens": self.options.tokens, "temperature": 0, "seed": 0, "stream": True,
                "stream_options": {"include_usage": True}, "ignore_eos": True,
                "logit_bias": {str(self.options.end_token): -100}}

    async def client(self, port, client, numbers):
        return [await ask(port, self.body(client, number)) for number in numbers]

    async def clients(self, port, numbers):
        firsts = await asyncio.gather(*(self.client(port, client, numbers) for client in range(self.n_clients)))
        return [first for some in firsts for first in some]

    async def watch(self):
        """The longest time for which nothing here ran."""
        longest, last = 0.0, time.perf_counter()
        try:
            while True:
                await asyncio.sleep(0.05)
                now = time.perf_counter()
                longest, last = max(longest, now - last), now
        except asyncio.CancelledError:
            return longest

    async def run(self, port):
        watching = asyncio.create_task(self.watch())
        await asyncio.sleep(0)
        if self.options.warm:
            await self.clients(port, range(self.options.warm))
        each = self.options.requests or max(2, 8 // self.n_clients)
        started = time.perf_counter()
        firsts = await self.clients(port, range(self.options.warm, self.options.warm + each))
        took = time.perf_counter() - started
        watching.cancel()
        return {"stood_still": await watching,
                "tokens_per_second": len(firsts) * self.options.tokens / took, "n_requests": len(firsts),
                "first_token_p50": percentile(firsts, 0.5), "first_token_p99": percentile(firsts, 0.99)}


def measure(command, options, model, n_clients):
    """One run: a server of its own."""
    port = free_port()
    values = {"model": model, "port": port, "clients": n_clients, "context": options.context,
              "positions": options.context * n_clients, "threads": options.threads}
    with Server([part.format(**values) for part in command], port) as server:
        result = asyncio.run(Load(options, n_clients).run(port))
        result["peak_resident_mb"] = server.peak_resident_mb()
        return result


def table(runs, peer_name):
    """Rows of medians. A pair's ratio is above 1 where Fovea is faster."""
    print(f"| clients | pairs | tokens/s: fovea | {peer_name} | ratio | first token p50, s: fovea | {peer_name} "
          f"| p99, s: fovea | {peer_name} | peak resident, MB: fovea | {peer_name} |")
    print("| --- " * 11 + "|")
    for n_clients in sorted({run["clients"] for run in runs}):
        pairs = [run for run in runs if run["clients"] == n_clients]
        middle = lambda who, what: statistics.median(pair[who][what] for pair in pairs)
        ratio = statistics.median(p["fovea"][FIELDS[0]] / p["peer"][FIELDS[0]] for p in pairs)
        cells = [f"{middle(who, FIELDS[0]):.0f}" for who in ("fovea", "peer")] + [f"{ratio:.2f}"]
        cells += [f"{middle(who, what):.3f}" for what in FIELDS[1:3] for who in ("fovea", "peer")]
        cells += [f"{middle(who, FIELDS[3]):.0f}" for who in ("fovea", "peer")]
        print(f"| {n_clients} | {len(pairs)} | " + " | ".join(cells) + " |")


def undisturbed_pair(order, options, n_clients):
    for _ in range(5):
        pair = {who: measure(command, options, file, n_clients) for who, command, file in order}
        still = max(run["stood_still"] for run in pair.values())
        if still <= STANDSTILL:
            return pair
        print(f"{n_clients} clients: stood still for {still:.1f} s, taken again", file=sys.stderr, flush=True)
    refuse(f"{n_clients} clients: expected a pair without a standstill in 5, got none")


def saved_runs(options):
    if not options.output or not os.path.exists(options.output):
        return []
    with open(options.output) as file:
        return [json.loads(line) for line in file]


def compare(options, model):
    """A run of both servers at a time. They take turns at being first, over saved runs too."""
    ours = [options.fovea, "serve", options.name + "={model}", "--port", "{port}", "--threads", "{threads}",
            "--kv", options.kv, "--context", "{context}", "--sequences", "{clients}", "--positions", "{positions}",
            *options.fovea_args]
    sides = [("fovea", ours, model), ("peer", options.peer, options.model)]
    for n_clients in options.clients:
        n_before = sum(run["clients"] == n_clients for run in saved_runs(options))
        for pair in range(n_before, n_before + options.pairs):
            order = sides if pair % 2 == 0 else sides[::-1]
            yield {"clients": n_clients, "tokens": options.tokens, **undisturbed_pair(order, options, n_clients)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fovea", default="build/release/fovea", help="our command line")
    parser.add_argument("--fovea-args", type=shlex.split, default=[], help="more arguments for `fovea serve`")
    parser.add_argument("--peer", type=shlex.split, required=True, help="the other server's command")
    parser.add_argument("--peer-name", default="peer")
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--name", default="twin", help="what requests call the model")
    parser.add_argument("--vocabulary", type=int, default=32000, help="prompts have token ids below this")
    parser.add_argument("--end-token", type=int, default=2, help="the token that would end an answer")
    parser.add_argument("--clients", default="1,4,16,64", help="numbers of clients")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("-p", "--prompt", type=int, default=1000, help="tokens of the system prompt that all share")
    parser.add_argument("-n", "--tokens", type=int, default=64, help="tokens of each answer")
    parser.add_argument("--warm", type=int, default=1, help="answers that each client has had before the clock starts")
    parser.add_argument("--requests", type=int, help="of each client, timed (default: 2, and 8 of all at least)")
    parser.add_argument("--kv", default="f16", choices=("f32", "f16", "q8", "q4"), help="our cache")
    parser.add_argument("-o", "--output", help="runs are appended here; the table is of all in it")
    parser.add_argument("--json", action="store_true", help="print the runs as JSON in place of the table")
    options = parser.parse_args()
    try:
        options.clients = [int(n) for n in options.clients.split(",")]
    except ValueError:
        refuse(f"--clients: expected numbers with commas between them, got {options.clients}")
    if not os.path.isfile(options.model):
        refuse(f"--model: expected a GGUF file, got {options.model}")
    options.context = -(-(options.prompt + 40 + options.tokens + 1) // 256) * 256
    return options


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: refuse("ended by a signal"))  # servers end with their blocks
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.fovea")
        done = subprocess.run([options.fovea, "convert", options.model, "-o", model], capture_output=True, text=True)
        if done.returncode:
            refuse(f"{options.fovea}: expected exit status 0, got {done.returncode}: {done.stderr.strip()[-300:]}")
        runs = []
        for run in compare(options, model):
            runs.append(run)
            if options.output:
                with open(options.output, "a") as file:
                    file.write(json.dumps(run) + "\n")
    runs = saved_runs(options) or runs
    if options.json:
        print(json.dumps({"model": options.model, "threads": options.threads, "peer": options.peer, "runs": runs}))
    else:
        table(runs, options.peer_name)


if __name__ == "__main__":
    main()

"""Many clients at once, some of them bad, against one server on 127.0.0.1: each completed text must be the one that the same
request has alone, memory must stay, no page may be lost, and no answer may be other than 200, 4xx or 503 while it drains.

    soak.py FOVEA [--seconds S] [--clients N] [--idle N] [--sanitized]   default: 8 seconds, 60 clients, 500 idle connections
    soak.py FOVEA --attackers TIMES [--seconds S] [--clients N]          honest clients beside attackers (under_attack.py)
"""
import argparse
import http.client
import json
import multiprocessing
import random
import re
import resource
import signal
import socket
import sys
import threading
import time

import under_attack
from client import Server, http_bytes, read_all, wait_until

PATH = "/v1/completions"
WORDS = "turn on off the light lamp kitchen play jazz rock lock door set timer wake me up at seven blinds office".split()


def bodies(n):
    """Requests of random lengths and settings; many begin alike."""
    draw = random.Random(1)
    prefixes = [" ".join(draw.choices(WORDS, k=k)) for k in (0, 12, 30, 45)]
    made = []
    for i in range(n):
        text = draw.choice(prefixes) + " " + " ".join(draw.choices(WORDS, k=draw.randint(1, 12)))
        made.append({"model": "demo", "prompt": text + "\n", "max_tokens": draw.choice([1, 8, 30, 100]), "seed": i,
                     "temperature": draw.choice([0, 0.7, 3.0]), "stop": draw.choice([None, "}", ["lamp", "zz"]])})
    return made


class Pauses:
    """When this process stood still, which a busy machine makes clients do: the server then closes what it waited for."""

    SECONDS = 5  # half of what the server gives a request's headers

    def __init__(self):
        self.ends = [0.0]
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        last = time.monotonic()
        while True:
            time.sleep(0.5)
            now = time.monotonic()
            if now - last > self.SECONDS:
                self.ends.append(now)
            last = now

    def since(self, start):
        return self.ends[-1] > start


class Soak:
    """Clients of one process."""

    def __init__(self, server, requests, expected):
        self.server, self.requests, self.expected = server, requests, expected
        self.counts, self.wrong, self.lock = {}, [], threading.Lock()
        self.over, self.pauses = threading.Event(), None

    def run(self, numbers, seconds, results):
        self.pauses = Pauses()
        threads = [threading.Thread(target=self.client, args=(i,)) for i in numbers]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.over.set()
        for thread in threads:
            thread.join()
        results.put((self.counts, self.wrong))

    def ask(self, body):
        """Status, head and body of an answer; None where the client itself was too late for one."""
        started = time.monotonic()
        with self.server.raw(http_bytes(PATH, body, "Connection: close\r\n"), 120) as connection:
            late = time.monotonic() - started > Pauses.SECONDS
            answer = read_all(connection)
        if not answer and (late or self.pauses.since(started)):
            return self.count("late clients")
        if not answer:
            return self.fail("expected an answer, got a closed connection")
        head, _, rest = answer.decode().partition("\r\n\r\n")
        status = int(head.split()[1])
        self.count(status)
        if status not in (200, 429):
            return self.fail(f"status {status}: {rest[:200]!r}")
        return status, head, rest

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def fail(self, what):
        with self.lock:
            self.wrong.append(what)

    def client(self, number):
        draw = random.Random(number)
        kinds = [self.whole] * 6 + [self.stream] * 4 + [self.hang_up] * 2 + [self.malformed, self.slow]
        while not self.over.is_set():
            try:
                draw.choice(kinds)(draw)
            except (TimeoutError, http.client.HTTPException, OSError, ValueError, IndexError) as error:
                self.fail(f"{type(error).__name__}: {error}")

    def judge(self, i, text):
        self.count("equal")
        if text != self.expected[i]:
            self.fail(f"request {i}: expected {self.expected[i]!r}, got {text!r}")

    def whole(self, draw):
        i = draw.randrange(len(self.requests))
        status, head, answer = self.ask(self.requests[i]) or (0, "", "")
        if status == 200:
            self.judge(i, json.loads(answer)["choices"][0]["text"])
        elif status == 429:
            time.sleep(min(int(re.search(r"Retry-After: (\d+)", head)[1]), 2) * draw.random())

    def stream(self, draw):
        i = draw.randrange(len(self.requests))
        status, _, answer = self.ask({**self.requests[i], "stream": True}) or (0, "", "")
        if status == 200:
            events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
            self.judge(i, "".join(event["choices"][0]["text"] for event in events))

    def hang_up(self, draw):
        i = draw.randrange(len(self.requests))
        with self.server.raw(http_bytes(PATH, {**self.requests[i], "stream": draw.random() < 0.5})) as connection:
            if draw.random() < 0.5:
                try:
                    connection.recv(draw.randint(1, 300))
                except TimeoutError:
                    pass  # this one has waited long enough
        self.count("hung up")

    def malformed(self, draw):
        data = bytearray(http_bytes(PATH, self.requests[0], "Connection: close\r\n"))
        for _ in range(draw.randint(1, 20)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        with self.server.raw(bytes(data)) as connection:
            connection.shutdown(socket.SHUT_WR)
            answer = read_all(connection)
        self.count("malformed")
        if answer and int(answer.split()[1]) >= 500:
            self.fail(f"malformed: {answer[:100]!r}")

    def slow(self, draw):
        i = draw.randrange(len(self.requests))
        body = {**self.requests[i], "stream": True, "logprobs": 5}
        with self.server.raw(http_bytes(PATH, body, "Connection: close\r\n"), 120) as connection:
            for _ in range(10):
                connection.recv(64)
                time.sleep(0.02)
        self.count("slow")


def idle_connections(server, n):
    """Connections that say nothing, and some that say a little now and then: others are served meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, n + 200), hard))
    n = min(n, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    connections = []
    for i in range(n):
        try:
            connections.append(server.raw(b"" if i % 2 else b"POST /v1/completions HTTP/1.1\r\nX"))
        except OSError:
            break
    started = time.monotonic()
    server.post(PATH, {"model": "demo", "prompt": "play jazz\n"})
    took = time.monotonic() - started
    for connection in connections:
        connection.close()
    print(f"{len(connections)} idle and dripping connections: answered after {took:.2f} s")
    assert took < 5, f"an answer beside idle connections: expected within 5 s, got {took:.1f}"


def huge_bodies(server):
    """A body of 1 GB, announced and in chunks: refused without being read, or before it takes memory; nothing else stops."""
    before = server.rss()
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    for head, piece in (("Content-Length: %d" % (1 << 30), b"x" * 65536), ("Transfer-Encoding: chunked", chunk)):
        sent, answer = 0, b""
        with server.raw(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode(), 120) as connection:
            try:
                while sent < 1 << 30:
                    connection.sendall(piece)
                    sent += 65536
            except OSError:
                pass  # the server has closed its side
            try:
                answer = read_all(connection)
            except OSError:
                pass  # the reset came before what was said
        assert sent < 64 << 20, f"{head}: expected to be cut off, got {sent} bytes taken"
        assert not answer or b" 413 " in answer.split(b"\r\n")[0], f"{head}: expected 413, got {answer[:60]!r}"
        print(f"a body of 1 GB, {head}: cut off after {sent >> 10} KB, {answer[:40]!r}")
    after = server.rss()
    assert after - before < 24 << 20, f"resident bytes after bodies of 1 GB: expected {before}, got {after}"


def slowloris(server, n):
    """Requests whose headers come a byte at a time: each is closed in its time, and others are served meanwhile."""
    dripping = [server.raw(b"POST /v1/completions HTTP/1.1\r\nX-Slow: ") for _ in range(n)]
    started, n_served, gone = time.monotonic(), 0, 0
    while gone < n and time.monotonic() - started < 120:
        server.post(PATH, {"model": "demo", "prompt": "play jazz\n"})
        n_served += 1
        left = []
        for connection in dripping:
            try:
                connection.setblocking(False)
                connection.send(b"a")
                try:
                    over = connection.recv(1000) == b""
                except BlockingIOError:
                    over = False
            except OSError:
                over = True
            left += [] if over else [connection]
            if over:
                connection.close()
        gone += len(dripping) - len(left)
        dripping = left
        time.sleep(0.2)
    took = time.monotonic() - started
    assert gone == n, f"dripping connections: expected all {n} closed, got {gone}"
    print(f"{n} connections whose headers drip: all closed after {took:.0f} s, {n_served} others served meanwhile")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("fovea")
    options.add_argument("--seconds", type=float, default=8)
    options.add_argument("--clients", type=int, default=60)
    options.add_argument("--idle", type=int, default=500)
    options.add_argument("--sanitized", action="store_true", help="a build whose allocator keeps freed memory")
    options.add_argument("--attackers", type=float, metavar="TIMES", help="issue 51's S1 to S9 at once beside honest clients, whose "
                         "first token's p99 may be so many times that without them")
    options = options.parse_args()
    if options.attackers:
        return under_attack.run(options.fovea, options.seconds, options.clients, options.attackers, options.sanitized)
    requests = bodies(120)
    arguments = ["--context", "256", "--sequences", "12", "--positions", "1024", "--queue", "64"]
    with Server(options.fovea, *arguments) as server:
        expected = [server.post(PATH, body)["choices"][0]["text"] for body in requests]
        # Several processes, for threads of one keep each other from sending what they have begun to send.
        n_processes = -(-options.clients // 125)
        results = multiprocessing.get_context("fork").Queue()
        processes = [multiprocessing.get_context("fork").Process(
            target=Soak(server, requests, expected).run, args=(range(i, options.clients, n_processes), options.seconds, results))
            for i in range(n_processes)]
        for process in processes:
            process.start()
        time.sleep(options.seconds / 3)
        before = server.rss()
        counts, wrong = {}, []
        for _ in processes:
            some, more = results.get()
            wrong += more
            for what, n in some.items():
                counts[what] = counts.get(what, 0) + n
        for process in processes:
            process.join()
        after = server.rss()
        print(f"{options.clients} clients, {options.seconds:.0f} s:", dict(sorted(counts.items(), key=str)),
              f"resident {before >> 20} then {after >> 20} MB, {server.metric('shared_prompt_tokens_total'):.0f} of",
              f"{server.metric('prompt_tokens_total'):.0f} prompt tokens shared")
        assert not wrong, f"{len(wrong)} wrong, such as {sorted(set(what[:200] for what in wrong))[:5]}"
        assert counts.get("equal", 0) > 50, "expected more than 50 completed texts"
        assert options.sanitized or after - before < 24 << 20, f"resident bytes: expected {before}, got {after}"
        idle = lambda: server.metric("sequences_running", "requests_waiting") == 0
        assert wait_until(idle), "expected nothing to run any more"
        idle_connections(server, options.idle)
        slowloris(server, min(options.idle, 200))
        if not options.sanitized:
            huge_bodies(server)
        port = server.port
        server.stop(signal.SIGKILL)
    with Server(options.fovea, *arguments, port=port) as server:  # the same port, at once
        for i in range(0, len(requests), 7):
            text = server.post(PATH, requests[i])["choices"][0]["text"]
            assert text == expected[i], f"after a restart: expected {expected[i]!r}, got {text!r}"
        status = server.stop()
        assert status == 0, f"exit status: expected 0, got {status}: {server.errors()}"
    print("killed and started again: the same texts; all pages came back")


if __name__ == "__main__":
    sys.exit(main())

"""What each attack of attacks.py costs others, beside what it may; on a quiet machine, for times are judged.

    attack_figures.py FOVEA [MODEL]    exit status 1 where a figure is above its bound; the built-in model where none is named
"""
import os
import sys
import threading
import time

from client import CHAT, COMPLETE, Server, complete, http_bytes, read_all, wait_until
from hostile import (
    LEFT_EARLY, LONG, MANY_NAMES, PROMISE, READ_NEVER, SIBLINGS, UNREAD, counted_regex, from_address, heavy_schema, in_form, long_schema,
)

GREEDY, OTHER = "127.0.0.2", "127.0.0.3"
SHORT = complete("play jazz", temperature=0, max_tokens=2)
CLOSE = "Connection: close\r\n"


def ask(server, path, body, address=OTHER):
    """Status and bytes of an answer."""
    with from_address(address, server, http_bytes(path, body, CLOSE)) as connection:
        answer = read_all(connection)
    return int(answer.split()[1]), answer


def first_token(server, address):
    """Seconds to the first event of a short answer, and its status."""
    begun = time.monotonic()
    with from_address(address, server, http_bytes(COMPLETE, {**SHORT, "stream": True}, CLOSE)) as connection:
        answer = b""
        while b"data: " not in answer and (part := connection.recv(65536)):
            answer += part
        return time.monotonic() - begun, int(answer.split()[1])


def health(server, seconds):
    """The longest that /health took, asked again and again."""
    slowest, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        server.get("/health")
        slowest = max(slowest, time.monotonic() - begun)
        time.sleep(0.01)
    return slowest


class Beside:
    """Requests of one client, each on a connection of its own; their answers are read where they are to be."""

    def __init__(self, server, asked, reads=True, receive_buffer=0):
        self.held = [from_address(GREEDY, server, data, receive_buffer) for data in asked]
        self.threads = [threading.Thread(target=self.read, args=(one,), daemon=True) for one in self.held] if reads else []
        for thread in self.threads:
            thread.start()

    @staticmethod
    def read(connection):
        try:
            read_all(connection)
        except OSError:
            pass  # closed at the end

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.held:
            connection.close()


def bodies(server):
    """S1: processor time of the worst body for its bytes."""
    worst = 0
    for body in (SIBLINGS, MANY_NAMES, b'{"a":' + b"[" * 90 + b"1," * 400000):
        for path in (CHAT, "/v1/responses", "/tokenize"):
            begun = server.cpu_seconds()
            for _ in range(5):
                server.request("POST", path, body)
            worst = max(worst, (server.cpu_seconds() - begun) / 5 * (1 << 20) / len(body))
    return 1000 * worst


def promised(server):
    with Beside(server, [PROMISE] * 200, reads=False):
        return ask(server, COMPLETE, SHORT)[0]


def masks(server):
    """S3: a token of an answer that is held to places which differ by counters."""
    worst = 0
    for seed in range(4):
        body = {**counted_regex(seed), "max_tokens": 40}
        ask(server, COMPLETE, {**body, "max_tokens": 1})  # compiled
        begun = time.monotonic()
        ask(server, COMPLETE, body)
        worst = max(worst, (time.monotonic() - begun) / 40)
    return 1000 * worst


def forms(server):
    """S4: what is resident beyond what was, after 34 long forms."""
    before = server.rss()
    for i in range(34):
        ask(server, CHAT, in_form(long_schema(i)))
    return (server.rss() - before) / (1 << 20)


def places(server, n, n_each):
    """S5: a newcomer's first token beside long answers of others."""
    asked = [http_bytes(COMPLETE, {**LONG, "max_tokens": 2000, "ignore_eos": True, "n": n_each, "seed": i}) for i in range(n)]
    with Beside(server, asked):
        wait_until(lambda: server.metric("sequences_running") >= min(8, n * n_each))
        worst = max(first_token(server, f"127.0.1.{i}")[0] for i in range(10))
        assert server.metric("sequences_running") > 1, "expected the long answers to go on"
    return 1000 * worst


def queue(server):
    with Beside(server, [http_bytes(COMPLETE, {**LONG, "seed": i}) for i in range(300)]):
        return first_token(server, OTHER)[1]


def unread(server):
    """S7: another's first token beside answers that nobody reads."""
    asked = [http_bytes(*body) for body in [(CHAT, UNREAD), *READ_NEVER] * 16]
    with Beside(server, asked, reads=False, receive_buffer=4096):
        time.sleep(1)
        return 1000 * max(first_token(server, OTHER)[0] for _ in range(10))


def compiled(server):
    """S8: health beside forms that take long to compile."""
    with Beside(server, [http_bytes(CHAT, in_form(heavy_schema(i))) for i in range(12)]):
        return 1000 * health(server, 2)


def left(server):
    """S9: until nothing is computed for a client that has left."""
    with from_address(GREEDY, server, LEFT_EARLY):
        wait_until(lambda: server.metric("sequences_running") > 0)
    begun = time.monotonic()
    wait_until(lambda: server.metric("sequences_running") == 0)
    return 1000 * (time.monotonic() - begun)


def views(server):
    """S10: attention under load."""
    view = {"model": "demo", "prompt": "turn on the light " * 8, "layer": 0}
    with Beside(server, [http_bytes(COMPLETE, {**LONG, "n": 16, "seed": i}) for i in range(4)]):
        return max(ask(server, "/v1/attention", view)[0] for _ in range(5))


ROWS = (("S1  1 MB of JSON, processor time", "ms", bodies, 50), ("S2  beside 200 promised bodies", "", promised, 200),
        ("S3  a token within a counted form", "ms", masks, 5), ("S4  34 forms of 64 KB, resident", "MB", forms, 256),
        ("S5  beside 8 answers of up to 2,000 tokens, first token", "ms", lambda server: places(server, 8, 1), 1000),
        ("S5  beside one of 32 choices, first token", "ms", lambda server: places(server, 1, 32), 1000),
        ("S6  beside 300 requests that wait", "", queue, 200), ("S7  beside 48 answers that nobody reads", "ms", unread, 1000),
        ("S8  /health beside forms", "ms", compiled, 50), ("S9  a client that left", "ms", left, 200),
        ("S10 attention under load", "", views, 200))


def main(fovea, *models):
    wrong = 0
    print(f"{'attack':56}{'figure':>10}{'at most':>10}")
    # The built-in model has 256 positions, so its answers end sooner.
    served = ["demo=" + os.path.abspath(models[0]), "--context", "2304", "--positions", "20480"] if models else ["--context", "256"]
    for words, unit, measure, most in ROWS:
        with Server(fovea, *served) as server:
            ask(server, COMPLETE, SHORT)
            figure = measure(server)
        wrong += figure > most
        print(f"{words:56}{figure:10.4g}{most:10} {unit}{'  TOO MUCH' if figure > most else ''}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

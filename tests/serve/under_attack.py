"""Honest clients without and with attackers beside them, of which each does what one of issue 51's rows S1 to S9 says, from an
address of its own. `soak.py --attackers` runs it."""
import json
import multiprocessing
import os
import random
import threading
import time

from client import CHAT, COMPLETE, Server, complete, http_bytes, read_all, wait_until
from hostile import (
    LEFT_EARLY, LONG, MANY_NAMES, PROMISE, READ_NEVER, SIBLINGS, UNREAD, counted_regex, from_address, heavy_schema, in_form, long_schema,
)

WORDS = "turn on off the light lamp kitchen play jazz rock lock door set timer wake me up at seven blinds office".split()
CLOSE = "Connection: close\r\n"


def ask(address, server, path, body, timeout=60):
    """Sends a request and reads the answer to its end."""
    with from_address(address, server, http_bytes(path, body, CLOSE), timeout=timeout) as connection:
        return read_all(connection)


def hold(connections, seconds, over):
    """Keeps connections open, and reads nothing."""
    over.wait(seconds)
    for connection in connections:
        connection.close()


def long_bodies(address, server, draw, over):  # S1
    ask(address, server, CHAT, draw.choice([SIBLINGS, MANY_NAMES]))


def promises(address, server, draw, over):  # S2
    held = [from_address(address, server, PROMISE) for _ in range(32)]
    for connection in held:
        connection.setblocking(False)
        try:
            connection.send(b" " * draw.choice([0, 1, 900000]))
        except OSError:
            pass  # refused
    hold(held, 3, over)


def slow_masks(address, server, draw, over):  # S3
    ask(address, server, COMPLETE, counted_regex(draw.randrange(1 << 20)))


def long_forms(address, server, draw, over):  # S4
    ask(address, server, CHAT, in_form(long_schema(draw.random())))


def long_answers(address, server, draw, over):  # S5
    ask(address, server, COMPLETE, {**LONG, "n": draw.choice([1, 32]), "seed": draw.randrange(1 << 30)})


def full_queue(address, server, draw, over):  # S6
    data = http_bytes(COMPLETE, {**LONG, "seed": draw.randrange(1 << 30)})
    held = [from_address(address, server, data) for _ in range(64)]
    hold(held, 4, over)


def unread_answers(address, server, draw, over):  # S7
    bodies = [(CHAT, UNREAD)] + READ_NEVER
    held = [from_address(address, server, http_bytes(*draw.choice(bodies)), receive_buffer=4096) for _ in range(16)]
    hold(held, 20, over)


def heavy_forms(address, server, draw, over):  # S8
    ask(address, server, CHAT, {**in_form(heavy_schema(draw.randrange(1 << 20))), "metadata": draw.choice([{}, [[]] * 300000])})


def left_early(address, server, draw, over):  # S9
    with from_address(address, server, LEFT_EARLY):
        over.wait(0.2)


ATTACKS = [long_bodies, promises, slow_masks, long_forms, long_answers, full_queue, unread_answers, heavy_forms, left_early]
PATIENCE = 300  # s that an honest client waits; how long it waited is judged at the end
N_EACH = 4  # connections, or groups of them, of an attacker
MOST_HEALTH = 50  # ms, at the 99th percentile
MOST_IN_FORM = 5000  # of an answer whose form waits for one other at most, compiled behind all tokens


def attack(number, server, over, counts):
    """An attacker, in a process of its own that leaves the processors to the server and its honest clients."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    address, act = f"127.0.0.{2 + number}", ATTACKS[number]

    def repeat(seed):
        draw = random.Random(seed)
        while not over.is_set():
            try:
                act(address, server, draw, over)
            except OSError:
                over.wait(0.1)  # refused, or closed
            with counts.get_lock():
                counts[number] += 1

    threads = [threading.Thread(target=repeat, args=(1000 * number + i,)) for i in range(N_EACH)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Honest:
    """Clients that ask for a short answer, read it and think."""

    def __init__(self, server, n_clients):
        self.server, self.n_clients = server, n_clients
        draw = random.Random(3)
        self.bodies = [complete(" ".join(draw.choices(WORDS, k=draw.randint(2, 12))), max_tokens=draw.choice([4, 8, 16]), seed=i,
                                temperature=draw.choice([0, 1.0])) for i in range(64)]
        self.expected = [server.post(COMPLETE, body)["choices"][0]["text"] for body in self.bodies]
        self.forms = [in_form({"enum": [word, other]}) for word, other in zip(WORDS, WORDS[1:])]
        self.in_forms = [self.said(ask("127.0.2.1", server, CHAT, form)) for form in self.forms]
        self.wrong = []

    def run(self, seconds):
        """Seconds to first tokens, of /health, and of short answers in a form, sorted."""
        self.times, self.health, self.formed = [], [], []
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=self.client, args=(i, end)) for i in range(self.n_clients)]
        threads += [threading.Thread(target=self.repeat, args=(end, one)) for one in (self.watch, self.ask_in_forms)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(self.times), sorted(self.health), sorted(self.formed)

    def repeat(self, end, one):
        i = 0
        while time.monotonic() < end:
            try:
                one(i)
            except (OSError, ValueError, IndexError, KeyError, AssertionError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
            i += 1
            time.sleep(0.05)

    def watch(self, _):
        begun = time.monotonic()
        self.server.get("/health")
        self.health.append(time.monotonic() - begun)

    def ask_in_forms(self, i):
        begun, i = time.monotonic(), i % len(self.forms)
        answer = ask("127.0.2.1", self.server, CHAT, self.forms[i], PATIENCE)
        self.formed.append(time.monotonic() - begun)
        text = self.said(answer) if b" 200 " in answer[:20] else None
        if text != self.in_forms[i]:
            self.wrong.append(f"form {i}: expected {self.in_forms[i]!r}, got {answer[-300:]!r}")

    @staticmethod
    def said(answer):
        """Text of a whole answer."""
        return json.loads(answer.partition(b"\r\n\r\n")[2])["choices"][0]["message"]["content"]

    def client(self, number, end):
        draw = random.Random(number)
        while time.monotonic() < end:
            i = draw.randrange(len(self.bodies))
            try:
                self.stream(f"127.0.1.{1 + number}", i)
            except (OSError, ValueError, IndexError, KeyError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
            time.sleep(draw.uniform(0.05, 0.4))

    def stream(self, address, i):
        begun, first, answer = time.monotonic(), None, b""
        body = {**self.bodies[i], "stream": True}
        with from_address(address, self.server, http_bytes(COMPLETE, body, CLOSE), timeout=PATIENCE) as connection:
            while part := connection.recv(65536):
                answer += part
                if first is None and b"data: " in answer:
                    first = time.monotonic() - begun
        text = "".join(json.loads(line[6:])["choices"][0]["text"] for line in answer.splitlines() if line.startswith(b"data: {"))
        if text != self.expected[i] or b" 200 " not in answer[:20]:
            return self.wrong.append(f"request {i}: expected {self.expected[i]!r}, got {answer[-300:]!r}")
        self.times.append(first)


def share(times, part):
    return 1000 * times[min(int(part * len(times)), len(times) - 1)]


def peak(server):
    """The most bytes that were resident."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def run(fovea, seconds, n_clients, most, sanitized):
    """A third of the time without, the rest with attackers. `most`: times the honest clients' p99 without them."""
    fork = multiprocessing.get_context("fork")
    with Server(fovea, "--context", "256") as server:
        honest = Honest(server, n_clients)
        bound = server.rss() + server.figures["http_bytes_at_most"]
        alone = honest.run(seconds / 3)
        over, counts = fork.Event(), fork.Array("q", len(ATTACKS))
        attackers = [fork.Process(target=attack, args=(i, server, over, counts)) for i in range(len(ATTACKS))]
        for attacker in attackers:
            attacker.start()
        time.sleep(min(5, seconds / 10))  # until all of them have begun
        last = threading.Timer(seconds * 2 / 3 + 60, over.set)  # sanitizers make a form's compilation a minute long
        last.start()
        beside = honest.run(seconds * 2 / 3)
        last.cancel()
        over.set()
        for attacker in attackers:
            attacker.join()
        print(f"{n_clients} honest clients {'answers':>27}   p50 ms   p99 ms   most ms")
        for what, without, among in zip(("first token", "/health", "answer in a form"), alone, beside):
            for words, times in ((f"{what}, alone", without), (f"{what}, under S1 to S9", among)):
                figures = [share(times, part) for part in (0.5, 0.99, 1)] if times else []
                print(f"{words:34}{len(times):8}" + "".join(f"{figure:9.1f}" for figure in figures))
        print(f"resident at most {peak(server) >> 20} of {bound >> 20} MB; " +
              ", ".join(f"{act.__name__} {n}" for act, n in zip(ATTACKS, counts)))
        assert not honest.wrong, f"{len(honest.wrong)} wrong, such as {honest.wrong[:3]}"
        assert all(counts), "expected every attack to have been tried"
        assert sanitized or peak(server) <= bound, f"resident bytes: expected at most {bound}, got {peak(server)}"
        stalls = 2000 if seconds < 60 else 0  # ms: a short run shows these alone
        bounds = (max(most * share(alone[0], 0.99), stalls), max(MOST_HEALTH, stalls), MOST_IN_FORM)
        for what, times, limit in zip(("first token", "health", "form"), beside, bounds):
            assert sanitized or times, f"{what}: expected an answer beside attackers, got none"
            assert sanitized or share(times, 0.99) <= limit, f"{what}: expected p99 within {limit:.0f} ms, got {share(times, 0.99):.0f}"
        idle = lambda: server.metric("sequences_running", "requests_waiting", "body_bytes") == 0
        assert wait_until(idle, 60), "expected nothing to run any more"
        status = server.stop()
        assert status == 0, f"exit status: expected 0, got {status}: {server.errors()}"

"""`fovea worker` and --workers: the same answers with them as without, whatever a worker or a stranger does.

    workers_test.py FOVEA MODEL OTHER_MODEL
"""
import contextlib
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

FOVEA, MODEL, OTHER = sys.argv[1:4]
TEXT = "turn on the reading lamp in the living room and set the heating in the bedroom to twenty one degrees\n" * 4
HELLO = 0x316b727761766f66
REQUEST = 0x71657266


class Worker:
    """`fovea worker` on a free port, ended with the block."""

    def __init__(self, model=MODEL, *arguments):
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen([FOVEA, "worker", model, "--threads", "1", *arguments], stdout=subprocess.PIPE,
                                        stderr=self.stderr, text=True)
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.stderr.close()

    def said(self):
        self.stderr.seek(0)
        return self.stderr.read().decode()

    def greet(self):
        """A connection of a stranger who knows how to greet; what the worker says it runs."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.sendall(struct.pack("<QQII", HELLO, 0, 0, 0))
        welcome = receive(connection, 32)
        connection.close()
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.sendall(welcome[:24])
        assert receive(connection, 32) == welcome
        return connection


def receive(connection, n):
    data = b""
    while len(data) < n:
        piece = connection.recv(n - len(data))
        if not piece:
            break
        data += piece
    return data


class Between:
    """A way to a worker that ends after so many bytes of its answers; None: never."""

    def __init__(self, port, most=None):
        self.port, self.most, self.n_bytes = port, most, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.port))
            threading.Thread(target=self.pass_on, args=(near, far), daemon=True).start()
            while self.most is None or self.n_bytes < self.most:
                data = far.recv(4096 if self.most is None else min(4096, self.most - self.n_bytes))
                if not data:
                    break
                self.n_bytes += len(data)
                near.sendall(data)
            for connection in (near, far):
                connection.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def pass_on(near, far):
        with contextlib.suppress(OSError):
            while data := near.recv(4096):
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)


def fovea(*arguments, want=0):
    done = subprocess.run([FOVEA, *arguments], capture_output=True, timeout=300)
    assert done.returncode == want, f"{arguments}: expected {want}, got {done.returncode}: {done.stderr.decode()}"
    return done.stdout, done.stderr.decode()


def logits(*arguments):
    """The bytes of a text's logits, and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "logits.npy")
        _, said = fovea("logits", MODEL, "-p", TEXT, "-o", path, "--threads", "1", *arguments)
        with open(path, "rb") as file:
            return file.read(), said


class Workers(unittest.TestCase):
    def test_the_same_bits(self):
        want, _ = logits()
        with Worker() as one, Worker() as two:
            between = Between(two.port)
            for list_ in (one.address, one.address + "," + two.address):
                self.assertEqual(logits("--workers", list_)[0], want)
            self.assertEqual(logits("--workers", between.address + "," + one.address, "--threads", "2")[0], want)
            self.assertGreater(between.n_bytes, 10000)  # some of it was computed there
            for worker in (one, two):
                self.assertIn(": closed", worker.said())

    def test_texts(self):
        with Worker() as worker:
            for arguments in (["run", MODEL, "-p", "is the front door locked"],
                              ["run", MODEL, "-p", "play jazz in the kitchen", "--speculate", "4"],
                              ["chat", MODEL, "-p", "wake me up at 7 am", "--quiet"]):
                self.assertEqual(fovea(*arguments, "--workers", worker.address)[0], fovea(*arguments)[0])
            out, _ = fovea("bench", MODEL, "-p", "64", "-n", "8", "--repeat", "1", "--json", "--workers", worker.address)
            self.assertIn(b"tokens_per_second", out)

    def test_a_worker_that_is_lost(self):
        want, _ = logits()
        with Worker() as worker, Worker() as other:
            for most in (31, 5000, 60001):  # within the greeting, and within results
                between = Between(worker.port, most)
                if most == 31:
                    _, said = fovea("logits", MODEL, "-p", TEXT, "--workers", between.address, want=1)
                    self.assertRegex(said, r"^fovea: worker \S+: expected the greeting of a worker that is free, got .*\n$")
                    continue
                got, said = logits("--workers", other.address + "," + between.address)
                self.assertEqual(got, want)
                self.assertEqual(said.count("\n"), 1)
                self.assertRegex(said, r"^note: worker \S+ is gone \(.*\); going on without it\n$")

    def test_answers_that_are_none(self):
        want, _ = logits()
        with Worker() as worker:
            for answer in (bytes(24), struct.pack("<IIQQ", 0x6c707266, 0, 1, 7), struct.pack("<IIQQ", 0x6c707266, 3, 1, 0),
                           b"\xff" * 24):
                said = self.answered_by(worker, answer, want)
                self.assertRegex(said, r"^note: worker \S+ is gone \(.*\); going on without it\n$")

    def answered_by(self, worker, answer, want):
        """The program's words where what calls itself a worker gives this answer to its first product."""
        listener = socket.create_server(("127.0.0.1", 0))

        def work():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                receive(connection, 24)
                real = worker.greet()
                real.close()
                hello = socket.create_connection(("127.0.0.1", worker.port))
                hello.sendall(struct.pack("<QQII", HELLO, 0, 0, 0))
                connection.sendall(receive(hello, 32))
                while request := receive(connection, 40):
                    _, _, n_parts, _, n_operand, n_addends, _ = struct.unpack("<IIIIQQQ", request)
                    receive(connection, 40 * n_parts + n_operand + 4 * n_addends)
                    connection.sendall(struct.pack("<IIQQ", 0x6c707266, 0, 1, 0) if n_parts == 0 else answer)
                connection.close()

        threading.Thread(target=work, daemon=True).start()
        got, said = logits("--workers", "127.0.0.1:%d" % listener.getsockname()[1])
        self.assertEqual(got, want)
        return said

    def test_strangers(self):
        """Whatever bytes a worker is sent, it answers the next program."""
        draws = random.Random(3)
        want, _ = logits()
        with Worker() as worker:
            for n in (0, 1, 23, 24, 4000):
                with socket.create_connection(("127.0.0.1", worker.port)) as connection:
                    connection.sendall(draws.randbytes(n))
            real = struct.pack("<QQQIIIBBBB", 4096, 4096, 0, 1, 32, 16, 3, 0, 0, 0)
            for i in range(200):
                with worker.greet() as connection, contextlib.suppress(OSError):
                    n_parts, n_operand, n_results = draws.choice([(0, 0, 500), (0, 64, 0), (1, 88, 16), (1, 1 << 40, 16), (9, 88, 16), (1, 88, 1 << 40),
                                                                  (1, 88, 0), (8, 0, 0), (0, 0, 0), (1, 1 << 63, 1 << 63)])
                    n_addends = draws.choice([0, 0, 0, 16, 1 << 50])
                    connection.sendall(struct.pack("<IIIIQQQ", REQUEST, draws.choice([0, 1, 1, 1 << 31]), n_parts, 0, n_operand,
                                                   n_addends, n_results))
                    part = bytearray(real)
                    for _ in range(draws.randrange(3)):
                        part[draws.randrange(len(part))] = draws.randrange(256)
                    connection.sendall((bytes(part) + draws.randbytes(88)) * draws.randrange(2))
                    connection.shutdown(socket.SHUT_WR)
                    answers = b""
                    while data := connection.recv(4096):
                        answers += data
                    if n_parts == 0:  # nothing was computed, so nothing comes back but a reply
                        self.assertLessEqual(len(answers), 24)
            self.assertIsNone(worker.process.poll())
            self.assertEqual(logits("--workers", worker.address)[0], want)

    def test_refusals(self):
        with Worker(OTHER) as other:
            _, said = fovea("run", MODEL, "-p", "x", "--workers", other.address, want=1)
            self.assertRegex(said, r"^fovea: worker \S+: expected the same model file, got another\n$")
            self.assertIn("another file", other.said())
        closed = socket.create_server(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % closed.getsockname()[1]
        closed.close()
        _, said = fovea("run", MODEL, "-p", "x", "--workers", address, want=1)
        self.assertRegex(said, r"^fovea: worker \S+: expected one that listens \(fovea worker MODEL\), got .*\n$")
        for list_ in ("here", ":7", "here:", "here:0", "here:65536", "a:1,,b:2", "::1:7", "a:b"):
            _, said = fovea("run", MODEL, "-p", "x", "--workers", list_, want=2)
            self.assertEqual(said.count("\n"), 1)
            self.assertIn("--workers: expected HOST:PORT", said)
        for arguments in (["run", MODEL, "--batch", os.devnull], ["bench", MODEL, "--sequences", "2"]):
            _, said = fovea(*arguments, "--workers", "here:7", want=2)
            self.assertIn("--workers", said)
        with Worker() as worker:
            _, said = fovea("worker", MODEL, "--port", str(worker.port), want=1)
            self.assertRegex(said, r"^fovea: --port: expected an address and port that are free, got .*\n$")
        _, said = fovea("worker", want=2)
        self.assertIn("MODEL: expected", said)

    def test_once(self):
        with Worker(MODEL, "--once") as worker:
            logits("--workers", worker.address)
            self.assertEqual(worker.process.wait(60), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")  # sockets end with the process

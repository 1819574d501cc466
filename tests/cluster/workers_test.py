"""`fovea worker` and --workers: the same answers with them as without, whatever a worker or a stranger does.

    workers_test.py FOVEA MODEL OTHER_MODEL
"""
import array
import collections
import contextlib
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

FOVEA, MODEL, OTHER = sys.argv[1:4]
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
    """A way to a worker. It counts the products by their number of rows, says that they took no time, so that more come, and ends
    after so many bytes of the worker's answers (None: never)."""

    def __init__(self, port, most=None):
        self.port, self.most, self.n_bytes, self.products = port, most, 0, collections.Counter()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.port))
            for connection in (near, far):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.pass_requests, args=(near, far), daemon=True).start()
            self.pass_answers(far, near)
            for connection in (near, far):
                connection.shutdown(socket.SHUT_RDWR)

    def pass_requests(self, near, far):
        with contextlib.suppress(OSError):
            far.sendall(receive(near, 24))
            while len(head := receive(near, 40)) == 40:
                _, n_rows, n_parts, _, n_operand, n_addends, _ = struct.unpack("<IIIIQQQ", head)
                if n_parts:
                    self.products[n_rows] += 1
                far.sendall(head + receive(near, 40 * n_parts + n_operand + 4 * n_addends))
            far.shutdown(socket.SHUT_WR)

    def pass_answers(self, far, near):
        answer = receive(far, 32)
        while self.give(near, answer) and len(head := receive(far, 24)) == 24:
            magic, code, _, n_results = struct.unpack("<IIQQ", head)
            answer = struct.pack("<IIQQ", magic, code, 1, n_results) + receive(far, 4 * n_results)

    def give(self, near, answer):
        if self.most is not None and self.n_bytes + len(answer) > self.most:
            near.sendall(answer[:self.most - self.n_bytes])
            return False
        near.sendall(answer)
        self.n_bytes += len(answer)
        return True


def fovea(*arguments, want=0):
    done = subprocess.run([FOVEA, *arguments], capture_output=True, timeout=300)
    assert done.returncode == want, f"{arguments}: expected {want}, got {done.returncode}: {done.stderr.decode()}"
    return done.stdout, done.stderr.decode()


def wide_model(folder):
    """A model of rows so wide that sharing gains, with weights that are no pattern a whole row long."""
    dim, hidden, n_layers, n_heads, vocab, n_positions = 1024, 2816, 2, 8, 512, 128
    n_floats = vocab * dim + n_layers * (2 * dim + 4 * dim * dim + 3 * dim * hidden) + dim + n_positions * dim // n_heads
    draws = random.Random(1)
    some = array.array("f", (draws.uniform(-0.06, 0.06) for _ in range(9973))).tobytes()
    source, model = os.path.join(folder, "wide.bin"), os.path.join(folder, "wide.fovea")
    with open(source, "wb") as file:
        file.write(struct.pack("<7i", dim, hidden, n_layers, n_heads, n_heads, vocab, n_positions))
        file.write((some * (4 * n_floats // len(some) + 1))[:4 * n_floats])
    fovea("convert", source, "-o", model, "--type", "q8")
    return model


class Workers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.wide = wide_model(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def logits(self, *arguments, n_tokens=60):
        """The bytes of a prompt's logits, after every token, and what was said."""
        path = os.path.join(self.folder.name, "logits.npy")
        ids = ",".join(str(i * 7 % 512) for i in range(n_tokens))
        _, said = fovea("logits", self.wide, "--tokens", ids, "-o", path, "--threads", "1", *arguments)
        with open(path, "rb") as file:
            return file.read(), said

    def shares(self, worker, n_rows, compute, want):
        """Some of the products of so many rows are computed by the worker, and nothing changes. On a busy machine messages may take so
        long that sharing would not gain, so it is tried several times."""
        n_shared = 0
        for _ in range(20):
            between = Between(worker.port)
            self.assertEqual(compute(between.address), want)
            n_shared += between.products[n_rows]
            if n_shared > 3:
                return
        self.fail(f"expected products of {n_rows} rows at the worker, got {n_shared}")

    def test_the_same_bits(self):
        with Worker(self.wide) as one, Worker(self.wide, "--isa", "scalar") as two:
            for n in (60, 9):
                want, _ = self.logits(n_tokens=n)
                self.shares(one, n, lambda at: self.logits("--workers", at, n_tokens=n)[0], want)
                if n < 60:  # scalar kernels with a sanitizer take seconds for a row
                    self.shares(two, n, lambda at: self.logits("--workers", at + "," + one.address, n_tokens=n)[0], want)
                self.assertEqual(self.logits("--workers", one.address, "--threads", "2", n_tokens=n)[0], want)
            self.assertIn(": closed", two.said())

    def test_texts(self):
        arguments = ["run", self.wide, "--tokens", "1,2,3", "-n", "12", "--threads", "1"]
        with Worker(self.wide) as worker:
            self.shares(worker, 1, lambda at: fovea(*arguments, "--workers", at)[0], fovea(*arguments)[0])
        with Worker() as worker:
            for arguments in (["run", MODEL, "-p", "play jazz in the kitchen", "--speculate", "4"],
                              ["chat", MODEL, "-p", "wake me up at 7 am", "--quiet"]):
                self.assertEqual(fovea(*arguments, "--workers", worker.address)[0], fovea(*arguments)[0])
            out, _ = fovea("bench", MODEL, "-p", "64", "-n", "8", "--repeat", "1", "--json", "--workers", worker.address)
            self.assertIn(b'"n_workers":1', out)

    def test_serve(self):
        def answer(*arguments):
            server = subprocess.Popen([FOVEA, "serve", MODEL, "--port", "0", "--json", "--threads", "1", *arguments],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                url = json.loads(server.stdout.readline())["url"]
                body = json.dumps({"prompt": "is the front door locked\n", "max_tokens": 30}).encode()
                request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=120) as response:
                    return json.load(response)["choices"]
            finally:
                server.kill()
                server.wait()
                server.stdout.close()

        with Worker() as worker:
            self.assertEqual(answer("--workers", worker.address), answer())
        _, said = fovea("serve", MODEL, OTHER, "--workers", "here:7", want=2)
        self.assertRegex(said, r"^fovea: --workers: expected one model .*, got several\n$")

    def test_a_worker_that_is_lost(self):
        want, _ = self.logits()
        with Worker(self.wide) as worker, Worker(self.wide) as other:
            _, said = fovea("run", self.wide, "--tokens", "1", "--workers", Between(worker.port, 31).address, want=1)
            self.assertRegex(said, r"^fovea: worker \S+: expected the greeting of a worker that is free, got .*\n$")
            for most in (300, 5000, 100001):  # within the first results, and within later ones
                for _ in range(20):  # on a busy machine sharing may not gain
                    between = Between(worker.port, most)
                    got, said = self.logits("--workers", other.address + "," + between.address)
                    self.assertEqual(got, want)
                    if said:
                        break
                self.assertEqual(said.count("\n"), 1, said)
                self.assertRegex(said, r"^note: worker \S+ is gone \(.*\); going on without it\n$")

    def test_answers_that_are_none(self):
        want, _ = self.logits()
        with Worker(self.wide) as worker:
            for answer in (bytes(24), struct.pack("<IIQQ", 0x6c707266, 0, 1, 7), struct.pack("<IIQQ", 0x6c707266, 3, 1, 0),
                           b"\xff" * 24):
                for _ in range(20):
                    said = self.answered_by(worker, answer, want)
                    if said:
                        break
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
        got, said = self.logits("--workers", "127.0.0.1:%d" % listener.getsockname()[1])
        self.assertEqual(got, want)
        return said

    def test_strangers(self):
        """Whatever bytes a worker is sent, it answers the next program."""
        draws = random.Random(3)
        want, _ = self.logits()
        with Worker(self.wide) as worker:
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
            self.assertEqual(self.logits("--workers", worker.address)[0], want)

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
        with Worker(self.wide, "--once") as worker:
            with socket.create_connection(("127.0.0.1", worker.port)) as stranger:
                stranger.sendall(bytes(24))
            self.logits("--workers", worker.address)
            self.assertEqual(worker.process.wait(60), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")  # sockets end with the process

"""Models that come and go while the server runs: `serve --models FOLDER`; run by server_test.py."""
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from cases import CHAT, COMPLETE, EMBED, FOVEA, GOLDEN, KEEPS_FREED_MEMORY, chat, complete, run_fovea
from client import Server, at_once, http_bytes, read_all, wait_until
from speech import FORM_TYPE, TRANSCRIBE, form, read_bytes, recording

DEMO = os.path.join(GOLDEN, "../../tools/demo/demo.fovea")
SENTENCE = os.path.join(GOLDEN, "encoders/bert_sentence")
LOAD, UNLOAD = "/models/load", "/models/unload"
HASH = {"X-Fovea-Logits-Hash": "1"}
WHOLE = ["--context", "256"]
PADDING = "x" * 40000  # in a field that changes nothing; a request with it is long
# A chat whose stream has more bytes than buffers between the server and a client that does not read.
LONG = chat("sing", temperature=0, ignore_eos=True, max_tokens=200, logprobs=True, top_logprobs=20)


def states(server):
    """What /models says of each: its state's word."""
    return {model["id"]: model["status"]["value"] for model in json.loads(server.get("/models"))["data"]}


def status(server, name):
    return json.loads(server.get("/v1/models/" + name))["status"]


def loaded(server):
    return {name for name, state in states(server).items() if state == "loaded"}


def text_of(server, name, command="play jazz", **fields):
    return server.post(COMPLETE, complete(command, temperature=0, **fields) | {"model": name}, HASH)["choices"][0]["text"]


def statuses(log):
    with open(log, encoding="utf-8") as file:
        return [json.loads(line)["status"] for line in file]


class Unread:
    """A stream that nobody reads, so that its model stays in use."""

    def __init__(self, server, name):
        self.connection = socket.socket()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.connection.settimeout(300)
        self.connection.connect(("127.0.0.1", server.port))
        self.connection.sendall(http_bytes(CHAT, {**LONG, "model": name, "stream": True}, "Connection: close\r\n"))
        self.head = self.connection.recv(12)  # it has begun
        assert self.head == b"HTTP/1.1 200", self.head

    def text(self):
        """All that comes of it."""
        answer = read_all(self.connection)
        self.connection.close()
        pieces = re.findall(rb"^data: (\{.*\})", answer, re.M)
        deltas = [json.loads(piece)["choices"][0]["delta"] for piece in pieces]
        return "".join(delta.get("content") or "" for delta in deltas)


class WithFolder(unittest.TestCase):
    """A folder with the built-in model under three names."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch, self.folder = scratch.name, os.path.join(scratch.name, "models")
        os.mkdir(self.folder)
        for name in "abc":
            shutil.copy(DEMO, self.path(name))

    def path(self, name):
        return os.path.join(self.folder, name + ".fovea")

    def serve(self, *arguments):
        server = Server(FOVEA, *WHOLE, "--models", self.folder, *arguments)
        self.addCleanup(lambda: server.process.poll() is None and server.stop())
        return server

    def serve_n(self, n, *arguments):
        """A server with room for n of the three, and a half."""
        with self.serve() as server:
            n_bytes = status(server, "a")["bytes"]
        return self.serve("--memory", str(n * n_bytes + n_bytes // 2), *arguments)


class Offered(WithFolder):
    def test_a_model_comes_and_goes_and_its_answers_stay(self):
        server = self.serve()
        self.assertEqual(states(server), dict.fromkeys("abc", "unloaded"))
        self.assertEqual(json.loads(server.get("/api/ps")), {"models": []})
        self.assertEqual([model["name"] for model in json.loads(server.get("/api/tags"))["models"]], list("abc"))
        self.assertIn("completion", server.post("/api/show", {"model": "a"})["capabilities"])
        self.assertEqual(loaded(server), set())  # to be told of a model loads none
        expected = run_fovea("run", "-p", "play jazz").rstrip("\n")
        seen = set()
        for _ in range(3):
            self.assertEqual(server.post(LOAD, {"model": "a"}), {"success": True})
            self.assertEqual(server.post(LOAD, {"model": "a"}), {"success": True})  # it is there
            self.assertEqual(loaded(server), {"a"})
            self.assertEqual([model["name"] for model in json.loads(server.get("/api/ps"))["models"]], ["a"])
            for _ in range(2):
                seen.add((text_of(server, "a"), server.headers["X-Fovea-Logits-Hash"]))
            self.assertEqual(server.post(UNLOAD, {"model": "a"}), {"success": True})
            self.assertEqual(server.post(UNLOAD, {"model": "a"}), {"success": True})
            self.assertEqual(loaded(server), set())
            seen.add((text_of(server, "a"), server.headers["X-Fovea-Logits-Hash"]))  # which loads it
            self.assertEqual(loaded(server), {"a"})
            server.post(UNLOAD, {"model": "a"})
        self.assertEqual({text for text, _ in seen}, {expected})
        self.assertEqual(len(seen), 1)
        self.assertEqual(server.metric("pages"), 0)
        self.assertEqual(server.stop(), 0)

    def test_memory_is_planned_and_given_back(self):
        server = self.serve()
        model = json.loads(server.get("/v1/models/a"))
        self.assertGreater(model["status"]["bytes"], model["size"] + model["memory"])  # and what reads prompts
        self.assertGreater(server.figures["models_bytes_at_most"], model["status"]["bytes"])
        self.assertEqual(server.figures["memory_bytes"], 0)
        text_of(server, "a")
        server.post(UNLOAD, {"model": "a"})
        before = server.rss()
        for _ in range(20):
            text_of(server, "a")
            server.post(UNLOAD, {"model": "a"})
        if not KEEPS_FREED_MEMORY:
            self.assertLess(server.rss(), before + model["memory"] // 2 + (8 << 20))

    def test_the_least_recently_used_leaves(self):
        server = self.serve_n(2)
        expected = text_of(server, "a")
        self.assertEqual(text_of(server, "b"), expected)
        for name, left in (("c", "bc"), ("b", "bc"), ("a", "ab"), ("b", "ab"), ("c", "bc")):
            self.assertEqual(text_of(server, name), expected)
            self.assertEqual(loaded(server), set(left), name)
        self.assertEqual(server.post(LOAD, {"model": "a"}), {"success": True})
        self.assertEqual(loaded(server), {"a", "c"})

    def test_what_never_fits_is_refused_and_takes_nothing(self):
        with self.serve() as server:
            n_bytes = status(server, "a")["bytes"]
        server = self.serve("--memory", str(n_bytes - 1))
        before = server.rss()
        for path, body in ((LOAD, {"model": "a"}), (COMPLETE, complete("x") | {"model": "b"})):
            error = server.post(path, body, want=400)["error"]
            for number in (n_bytes - 1, n_bytes):
                self.assertIn(str(number), error["message"])
            self.assertEqual((error["param"], error["message"].count("\n")), ("model", 0))
        self.assertEqual(states(server), dict.fromkeys("abc", "unloaded"))
        self.assertLess(server.rss(), before + n_bytes // 2 + (4 << 20))

    def test_the_models_beside_the_folder_count_and_stay(self):
        with Server(FOVEA, *WHOLE, "demo=") as server:
            n_demo = server.figures["memory_bytes"]
            self.assertNotIn("status", json.loads(server.get("/v1/models"))["data"][0])
        with self.serve("demo=") as server:
            n_bytes = status(server, "demo")["bytes"]
            self.assertEqual(server.figures["memory_bytes"], n_demo)
            self.assertEqual(loaded(server), {"demo"})
            self.assertIn("--models", server.post(UNLOAD, {"model": "demo"}, want=400)["error"]["message"])
        server = self.serve("demo=", "--memory", str(n_bytes * 2))
        expected = text_of(server, "demo")
        for name in "ab":
            self.assertEqual(text_of(server, name), expected)
            self.assertEqual(loaded(server), {"demo", name})
        self.refuses(["demo=", "--models", self.folder, "--memory", str(n_bytes - 1)], str(n_bytes))

    def refuses(self, arguments, words):
        done = subprocess.run([FOVEA, "serve", *WHOLE, *arguments, "--port", "0"], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(words, done.stderr)

    def test_arguments(self):
        empty = os.path.join(self.scratch, "empty")
        os.mkdir(empty)
        for arguments, words in ((["--memory", "1G"], "--models"), (["--models", empty], ".fovea"),
                                 (["--models", os.path.join(self.scratch, "none")], "none"),
                                 (["a=", "--models", self.folder], "two of a"),
                                 (["--models", self.folder, "--lora", "d=" + DEMO], "--lora"),
                                 (["--models", self.folder, "--workers", "127.0.0.1:1"], "--workers")):
            with self.subTest(arguments):
                self.refuses(arguments, words)


class OfferedInUse(WithFolder):
    def test_a_model_in_use_stays(self):
        server = self.serve_n(1)
        expected = server.post(CHAT, {**LONG, "model": "a"})["choices"][0]["message"]["content"]
        stream = Unread(server, "a")
        error = server.post(LOAD, {"model": "b"}, want=503)["error"]["message"]
        for number in re.findall(r"\d+", error):
            self.assertGreater(int(number), 0)
        self.assertIn("in use", error)
        self.assertEqual(loaded(server), {"a"})
        answers = {}

        def ask(name, path, body):
            answers[name] = server.request("POST", path, body)[0]

        waiting = [threading.Thread(target=ask, args=arguments)
                   for arguments in (("request", COMPLETE, complete("x") | {"model": "b"}), ("unload", UNLOAD, {"model": "a"}))]
        for thread in waiting:
            thread.start()
            time.sleep(0.2)
        self.assertEqual(answers, {})  # both wait for the stream's end,
        self.assertEqual(states(server), {"a": "loaded", "b": "unloaded", "c": "unloaded"})
        self.assertEqual(stream.text(), expected)
        for thread in waiting:
            thread.join()
        self.assertEqual(answers, {"request": 200, "unload": 200})
        self.assertEqual(loaded(server), {"b"})

    def test_who_waits_for_room_is_not_passed_for_ever(self):
        """New requests for a model in use do not keep it from leaving for another that was asked for before."""
        server = self.serve_n(1)
        text_of(server, "a")
        ends = threading.Event()

        def keep_asking():
            while not ends.is_set():
                text_of(server, "a", max_tokens=3)

        busy = [threading.Thread(target=keep_asking) for _ in range(4)]
        for thread in busy:
            thread.start()
        try:
            for _ in range(3):
                begun = time.monotonic()
                text_of(server, "b", max_tokens=3)
                self.assertLess(time.monotonic() - begun, 60)
        finally:
            ends.set()
            for thread in busy:
                thread.join()

    def test_a_client_that_leaves_while_it_waits(self):
        server = self.serve_n(1)
        stream = Unread(server, "a")
        gone = server.raw(http_bytes(COMPLETE, complete("x") | {"model": "b"}))
        time.sleep(0.3)
        gone.close()
        time.sleep(0.3)
        self.assertEqual(text_of(server, "a").count("{"), 1)  # the model takes requests again
        stream.connection.close()
        self.assertTrue(wait_until(lambda: server.metric("sequences_running") == 0))
        text_of(server, "b")

    def test_many_at_once_get_what_they_get_alone(self):
        server = self.serve_n(3, "demo=")
        bodies = [complete(command, temperature=2.0, seed=seed, max_tokens=20, logprobs=1)
                  for seed, command in enumerate(["sing", "play jazz", "wake me up", "dance"])]
        alone = [server.post(COMPLETE, body)["choices"] for body in bodies]
        names = ["a", "b", "c", "demo"]

        def ask(i):
            body = {**bodies[i % 4], "model": names[i // 4 % 4]}
            self.assertEqual(server.post(COMPLETE, body)["choices"], alone[i % 4])

        at_once([lambda i=i: ask(i) for i in range(48)])
        self.assertLessEqual(len(loaded(server)), 3)
        self.assertEqual(server.stop(), 0)

    def test_ollama_lets_models_go(self):
        server = self.serve()
        body = {"model": "a", "prompt": "play jazz", "stream": False, "options": {"temperature": 0, "repeat_penalty": 1}}
        expected = server.post("/api/generate", body)["response"]
        self.assertEqual(loaded(server), {"a"})
        for keep_alive in (0, "0", "0s"):
            self.assertEqual(server.post("/api/generate", {**body, "keep_alive": keep_alive})["response"], expected)
            self.assertTrue(wait_until(lambda: loaded(server) == set()), keep_alive)
        for keep_alive in (-1, "5m", 300, "0.5s"):
            self.assertEqual(server.post("/api/generate", {**body, "keep_alive": keep_alive})["response"], expected)
        time.sleep(0.2)
        self.assertEqual(loaded(server), {"a"})
        for path in ("/api/generate", "/api/chat"):
            self.assertEqual(server.post(path, {"model": "b"})["done_reason"], "load")
            self.assertEqual(loaded(server), {"a", "b"})
            self.assertEqual(server.post(path, {"model": "b", "keep_alive": 0})["done_reason"], "unload")
            self.assertEqual(loaded(server), {"a"})


class OfferedLong(WithFolder):
    """Long requests, which another thread reads than the one that loads and unloads."""

    def test_they_wait_for_their_models(self):
        server = self.serve_n(1)
        expected = text_of(server, "a")
        for name in "bcab":
            self.assertEqual(text_of(server, name, user=PADDING), expected)
            self.assertEqual(loaded(server), {name})
        self.assertEqual(server.post(LOAD, {"model": "c", "user": PADDING}), {"success": True})
        self.assertEqual(loaded(server), {"c"})
        self.assertIn("capabilities", server.post("/api/show", {"model": "a", "user": PADDING}))
        self.assertEqual(server.post(UNLOAD, {"model": "c", "user": PADDING}), {"success": True})
        self.assertEqual(loaded(server), set())
        error = server.post(COMPLETE, complete("x", user=PADDING) | {"model": "d"}, want=404)["error"]
        self.assertEqual(error["code"], "model_not_found")

    def test_long_and_short_ones_want_more_models_than_have_room(self):
        server = self.serve_n(1)
        body = complete("play jazz", temperature=0, logprobs=1)
        expected = server.post(COMPLETE, body | {"model": "a"})["choices"]

        def ask(i):
            if i % 8 == 7:
                return self.assertEqual(server.post(UNLOAD, {"model": "abc"[i % 3], "user": PADDING}), {"success": True})
            padded = {"user": PADDING} if i % 4 else {}
            self.assertEqual(server.post(COMPLETE, body | padded | {"model": "abc"[i % 3]})["choices"], expected)

        at_once([lambda i=i: ask(i) for i in range(48)])
        self.assertLessEqual(len(loaded(server)), 1)
        self.assertEqual(server.stop(), 0)

    def test_a_client_that_leaves_while_it_waits(self):
        log = os.path.join(self.scratch, "log")
        server = self.serve_n(1, "--log", log)
        stream = Unread(server, "a")
        gone = server.raw(http_bytes(COMPLETE, complete("x", user=PADDING) | {"model": "b"}))
        time.sleep(0.5)
        gone.close()
        self.assertTrue(wait_until(lambda: 499 in statuses(log)))
        self.assertEqual(text_of(server, "a", user=PADDING).count("{"), 1)  # the model takes requests again
        self.assertEqual(statuses(log).count(499), 1)
        stream.connection.close()

    def test_the_only_one_for_a_task(self):
        run_fovea("convert", SENTENCE, "-o", self.path("bert"))
        run_fovea("convert", os.path.join(GOLDEN, "encoders/bert_sequenceclassification"), "-o", self.path("ranks"))
        server = self.serve()
        for padding in ({}, {"user": PADDING}):  # one of two for vectors, neither of them loaded
            self.assertEqual(len(server.post(EMBED, {"input": "a text", **padding})["data"]), 1)
            self.assertEqual(loaded(server), {"bert"})
            server.post(UNLOAD, {"model": "bert"})
            ranked = server.post("/v1/rerank", {"query": "a", "documents": ["a text", "b"], **padding})
            self.assertEqual((ranked["model"], loaded(server)), ("ranks", {"ranks"}))
            server.post(UNLOAD, {"model": "ranks"})


class OfferedFiles(WithFolder):
    def test_hostile_names(self):
        server = self.serve()
        for name in ("../demo", "../models/a", "/etc/passwd", self.path("a"), "a.fovea", "a/../b", "", ".", "a\0", "%2e%2e/a", "A"):
            for path, body in ((LOAD, {"model": name}), (UNLOAD, {"model": name}), (COMPLETE, complete("x") | {"model": name})):
                error = server.post(path, body, want=404)["error"]
                self.assertEqual(error["code"], "model_not_found")
        for body in ({}, {"model": 3}, {"model": ["a"]}, []):
            self.assertIn(server.request("POST", LOAD, body)[0], (400, 404))
        self.assertEqual(loaded(server), set())

    def test_files_that_are_none(self):
        outside = os.path.join(self.scratch, "outside.fovea")
        shutil.copy(DEMO, outside)
        os.symlink(outside, self.path("link"))
        os.symlink("a.fovea", self.path("same"))  # within the folder
        os.symlink("nothing", self.path("lost"))
        os.mkfifo(self.path("pipe"))
        os.mkdir(self.path("folder"))
        with open(DEMO, "rb") as file:
            good = file.read()
        for name, data in (("broken", b"no model" * 100), ("cut", good[:5000]), ("empty", b"")):
            with open(self.path(name), "wb") as file:
                file.write(data)
        server = self.serve()
        bad = ("link", "lost", "pipe", "folder", "broken", "cut", "empty")
        for name in bad:
            told = status(server, name)
            self.assertEqual((told["value"], told["failed"], told["error"].count("\n")), ("unloaded", True, 0), name)
            error = server.post(LOAD, {"model": name}, want=500)["error"]["message"]
            self.assertEqual(error, status(server, name)["error"])
            self.assertIn(error, server.post(CHAT, {**chat("x"), "model": name}, want=500)["error"]["message"])
        self.assertIn("link", status(server, "link")["error"])
        self.assertEqual([model["name"] for model in json.loads(server.get("/api/tags"))["models"]], ["a", "b", "c", "same"])
        expected = text_of(server, "a")
        self.assertEqual(text_of(server, "same"), expected)
        self.replace("broken", good)
        self.assertEqual(text_of(server, "broken"), expected)
        self.assertNotIn("failed", status(server, "broken"))
        # A file that goes away is missed when it is loaded again, and no sooner.
        os.unlink(self.path("broken"))
        self.assertEqual(text_of(server, "broken"), expected)
        server.post(UNLOAD, {"model": "broken"})
        self.assertIn("broken", server.post(LOAD, {"model": "broken"}, want=500)["error"]["message"])
        self.assertEqual(loaded(server), {"a", "same"})
        self.assertEqual(server.stop(), 0)

    def replace(self, name, data):
        """As programs replace files: by renaming another over it."""
        fresh = os.path.join(self.scratch, "fresh")
        with open(fresh, "wb") as file:
            file.write(data)
        os.rename(fresh, self.path(name))

    def test_another_file_and_another_kind(self):
        run_fovea("convert", SENTENCE, "-o", self.path("bert"))
        server = self.serve()
        with Server(FOVEA, *WHOLE, self.path("bert")) as own:
            body = {"input": ["a text", "another one"]}
            expected = own.post(EMBED, body)["data"]
            n_bert = own.figures["memory_bytes"]
        self.assertEqual(server.post(EMBED, body)["data"], expected)  # the only one for vectors
        self.assertEqual(loaded(server), {"bert"})
        told = json.loads(server.get("/v1/models/bert"))
        self.assertEqual(told["status"]["bytes"], n_bert + told["size"])
        self.assertIn("vectors", server.post(CHAT, {**chat("x"), "model": "bert"}, want=400)["error"]["message"])
        self.assertEqual(server.post("/api/embed", {"model": "bert", "input": [], "keep_alive": 0})["embeddings"], [])
        self.assertEqual(loaded(server), set())
        with open(self.path("bert"), "rb") as file:
            self.replace("a", file.read())
        self.assertIn("vectors", server.post(CHAT, {**chat("x"), "model": "a"}, want=400)["error"]["message"])
        self.assertEqual(server.post(EMBED, {**body, "model": "a"})["data"], expected)

    def test_recordings_wait_too(self):
        run_fovea("convert", os.path.join(GOLDEN, "speech/whisper_talking"), "-o", self.path("talk"))
        body = form(read_bytes(recording("one")), {"model": "talk"})
        with Server(FOVEA, self.path("talk")) as own:
            expected = own.request("POST", TRANSCRIBE, body, FORM_TYPE)
            self.assertEqual(expected[0], 200)
        server = self.serve()
        for _ in range(2):
            answer = server.request("POST", TRANSCRIBE, body, FORM_TYPE)
            self.assertEqual((answer[0], answer[2]), (200, expected[2]))
            server.post(UNLOAD, {"model": "talk"})

    def test_keys(self):
        server = self.serve("--api-key", "k1")
        for path in (LOAD, UNLOAD):
            self.assertEqual(server.request("POST", path, {"model": "a"})[0], 401)
            self.assertEqual(server.request("POST", path, {"model": "a"}, {"Authorization": "Bearer k1"})[0], 200)

    def test_adapters_come_and_go(self):
        """An adapter's file of the folder, with each model that it may be for: the texts are the command line's."""
        base, words = os.path.join(GOLDEN, "models/llama_tied"), os.path.join(self.scratch, "vocab.txt")
        with open(words, "w", encoding="utf-8") as file:
            file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(56)]) + "\n")
        run_fovea("convert", base, "-o", self.path("m"), "--tokenizer", words)
        run_fovea("convert", os.path.join(GOLDEN, "lora/llama"), "--base", base, "-o", self.path("law"))
        run = ["run", self.path("m"), "--tokens", "3,10,17", "-n", "20", "--quiet"]
        wanted = {"m": run_fovea(*run).removesuffix("\n"),
                  "m+law": run_fovea(*run, "--lora", self.path("law")).removesuffix("\n")}
        self.assertNotEqual(*wanted.values())
        server = Server(FOVEA, "--models", self.folder)  # of any context
        self.addCleanup(server.stop)
        self.assertEqual(states(server), dict.fromkeys([*"abc", *wanted], "unloaded"))

        def ask(name):
            body = {"model": name, "prompt": [3, 10, 17], "max_tokens": 20, "temperature": 0}
            return server.post(COMPLETE, body)["choices"][0]["text"]

        for name, text in wanted.items():
            self.assertEqual(ask(name), text)
        self.assertEqual(loaded(server), set(wanted))
        self.assertEqual(server.post(UNLOAD, {"model": "m+law"}), {"success": True})
        self.assertEqual(loaded(server), {"m"})
        names = list(wanted) * 4
        self.assertEqual(at_once([lambda n=n: ask(n) for n in names]), [wanted[n] for n in names])

    def test_adapters_are_every_models(self):
        server = self.serve("--lora", "a=" + DEMO)  # no adapter
        self.assertIn("adapter", status(server, "a")["error"])
        self.assertEqual(text_of(server, "b"), text_of(server, "c"))

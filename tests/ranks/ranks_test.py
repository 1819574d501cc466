"""Ranks of MPI: the bits, the text and the errors of one process.

    ranks_test.py FOVEA DEMO_MODEL GOLDEN_FOLDER
"""
import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import urllib.request

from faults import Faults  # noqa: F401
from jobs import DEMO, FOVEA, GOLDEN, Jobs, lines_of, mpirun, parts, ranks, run
from shards import Shards  # noqa: F401

JOBS = 4  # at once: starting and ending ranks leaves the CPUs idle
COUNTS = (1, 2, 3, 4, 7, 8)
TYPES = ("f32", "f16", "bf16", "q8", "q4", "q4_1", "q5", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs",
         "mxfp4", "tq2_0", "q8_128")
# Golden models, and what of ranks each has: head counts that ranks divide and do not, one key-value head, experts, latent
# attention, norms over all heads, keys of earlier layers, two stacks.
MODELS = ("models/gpt2_tied", "models/llama_wide_heads", "models/qwen3", "families/gpt_bigcode", "families/falcon",
          "families/mixtral", "families/gpt_oss", "families/qwen2_moe", "families/deepseek_v2", "families/deepseek_v3",
          "families/olmo2", "families/gemma4_text", "families/mpt", "pairs/t5", "pairs/marian", "speech/whisper_bare")


class Ranks(Jobs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.isa = json.loads(run([FOVEA, "run", DEMO, "-p", "hi", "-n", "1", "--json"])[0])["isa"]

    def hold(self, models):
        """One hash of a model for every number of ranks, all shares and all stages, that of the process alone."""
        certify = ["--threads", "1", "--isa", self.isa, "--json"]
        want, jobs = {}, []
        for model, counts, shares, stages in models:
            want[model] = json.loads(run([FOVEA, "certify", model, *certify])[0])["hash"]
            jobs += [(model, n, []) for n in counts] + [(model, len(each.split(",")), ["--shares", each]) for each in shares]
            jobs += [(model, n, ["--stages", str(n_stages)]) for n, n_stages in stages]
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            said = pool.map(lambda job: ranks(job[1], "certify", job[0], *certify, *job[2])[0], jobs)
            for (model, n, how), got in zip(jobs, map(json.loads, said)):
                with self.subTest(model=model, n=n, how=how):
                    self.assertTrue(got["equal"])
                    self.assertEqual(got["hash"], want[model])

    def test_types(self):
        models = []
        for kind in TYPES:
            often = kind in ("q8", "q4_k")
            stages = ((2, 2), (3, 3), (4, 2), (7, 7), (8, 2)) if often else ((4, 2),)
            models.append((self.convert(DEMO, "--type", kind), COUNTS if often else (3,), (), stages))
        self.hold(models)

    def test_models(self):
        models = []
        for source in MODELS:
            stages = () if source == "families/gemma4_text" else ((4, 2),)  # it reads keys of earlier layers
            models.append((self.convert(os.path.join(GOLDEN, source)), (3, 8), ("3,1", "1,9,2"), stages))
        self.hold(models)

    def test_instruction_sets(self):
        certify = ["logits", DEMO, "-p", "turn on the lamp", "--json"]
        want = json.loads(run([FOVEA, *certify])[0])["hash"]
        got, _ = parts([*certify, "--isa", "scalar"], [*certify, "--threads", "2"])
        self.assertEqual(json.loads(got)["hash"], want)

    def test_text(self):
        text = ["run", DEMO, "-p", "turn on the reading lamp", "--quiet"]
        want, _ = run([FOVEA, *text])
        for n in (2, 5):
            self.assertEqual(ranks(n, *text), (want, ""))
        self.assertEqual(ranks(3, "run", DEMO, "--quiet", stdin=b"turn on the reading lamp\n"), (want, ""))
        sampled = [*text, "--temp", "1", "--seed", "7"]
        self.assertEqual(ranks(3, *sampled), run([FOVEA, *sampled]))
        schema = os.path.join(self.folder.name, "schema.json")
        with open(schema, "w") as file:
            file.write('{"type":"object","properties":{"do":{"type":"string"}},"required":["do"]}')
        formed = [*text, "--json-schema", schema]
        self.assertEqual(ranks(3, *formed), run([FOVEA, *formed]))
        guessed = [*text[:-1], "--speculate", "4", "--json"]
        self.assertEqual(json.loads(ranks(3, *guessed)[0])["text"], json.loads(run([FOVEA, *guessed])[0])["text"])
        # A random seed is the first rank's.
        _, said = ranks(3, *text[:-1], "--temp", "2", "--seed", "-1", "--quiet")
        self.assertEqual(said.count("note: --seed"), 1)

    def test_chat(self):
        chat = ["chat", DEMO, "--system", "You switch things.", "--json", "-n", "12"]
        said = b"turn on the lamp\nand the radio\n/retry\n/undo\nclose the blinds\n/reset\nturn off the fan\n"

        def answers(out):
            return [{key: value for key, value in json.loads(line).items() if "second" not in key}
                    for line in out.splitlines()]

        want = answers(run([FOVEA, *chat], stdin=said)[0])
        self.assertEqual(len(want), 5)
        for n in (2, 3):
            self.assertEqual(answers(ranks(n, *chat, stdin=said)[0]), want)

    def test_sessions(self):
        """A session has the bytes of one process, and goes on with another number of ranks."""
        text = ["run", DEMO, "-p", "turn on the reading lamp", "--quiet", "--context", "200", "-n", "9", "--session"]
        more = ["run", DEMO, "-p", "turn on the reading lamp in the office", "--quiet", "--context", "200", "--session"]
        wanted, made = (os.path.join(self.folder.name, name) for name in ("wanted.session", "made.session"))
        for n in (2, 3):
            for path in (wanted, made):
                if os.path.exists(path):
                    os.remove(path)
            self.assertEqual(run([FOVEA, *text, wanted]), ranks(n, *text, made))
            with open(wanted, "rb") as a, open(made, "rb") as b:
                self.assertEqual(a.read(), b.read())
            self.assertEqual(run([FOVEA, *more, wanted]), ranks(5 - n, *more, made))
            self.assertEqual(run([FOVEA, *more, wanted]), run([FOVEA, *more, made]))
            # Without --context the file says how many positions there are.
            short = [argument for argument in text if argument not in ("--context", "200")]
            self.assertEqual(run([FOVEA, *short, wanted]), ranks(n, *short, made))
        chat = ["chat", DEMO, "--quiet", "-n", "12", "--session"]
        kept = os.path.join(self.folder.name, "kept")
        for said in (b"turn on the lamp\nand the radio\n/save %s\n/undo\n", b"/load %s\nclose the blinds\n"):
            alone, of_ranks = (said.replace(b"%s", (kept + end).encode()) for end in ("1", "2"))
            self.assertEqual(run([FOVEA, *chat, wanted + "c"], stdin=alone)[0],
                             ranks(3, *chat, made + "c", stdin=of_ranks)[0])

    def test_adapters_and_drafts(self):
        base = os.path.join(GOLDEN, "models/llama_tied")
        adapter = os.path.join(GOLDEN, "lora/llama")
        with open(os.path.join(adapter, "base.txt")) as file:
            base = os.path.join(GOLDEN, file.read().strip())
        model, added = self.convert(base, "--type", "q8"), os.path.join(self.folder.name, "adapter.fovea")
        run([FOVEA, "convert", adapter, "--base", base, "-o", added])
        logits = ["logits", model, "--tokens", "1,2,3,4,5", "--threads", "1", "--json"]
        plain, want = (json.loads(run([FOVEA, *logits, *how])[0])["hash"] for how in ([], ["--lora", added]))
        self.assertNotEqual(plain, want)
        for n in (2, 3):
            self.assertEqual(json.loads(ranks(n, *logits, "--lora", added)[0])["hash"], want)
        _, said = parts([*logits, "--lora", added], logits, want=1)
        self.assertIn("rank 1: checksum of adapters: expected", said)
        draft = self.convert(DEMO, "--type", "q4")
        guess = ["run", DEMO, "-p", "turn on the reading lamp", "--speculate", "4", "--draft", draft, "--json"]
        want, got = (json.loads(said) for said in (run([FOVEA, *guess])[0], ranks(3, *guess)[0]))
        self.assertEqual(got["text"], want["text"])
        self.assertGreater(got["n_accepted_tokens"], 0)
        # A next-token head reads vectors that stages do not hand over: said before the first is computed.
        source = os.path.join(GOLDEN, "next_heads/glm4_moe")
        head = ["run", self.convert(source), "--tokens", "1,2,3", "-n", "5", "--speculate", "4", "--draft",
                self.convert(source, "--mtp"), "--json"]
        want, got = (json.loads(said) for said in (run([FOVEA, *head])[0], ranks(2, *head)[0]))
        self.assertEqual(got["tokens"], want["tokens"])
        _, said = ranks(2, *head, "--stages", "2", want=1)
        self.assertEqual(len(lines_of(said)), 1, said)
        self.assertIn("next-token head: expected ranks in one stage, got 2", said)

    def test_batch(self):
        """Texts that go on, and those that a decoder writes beside the memory of another."""
        asked, wanted, made = (os.path.join(self.folder.name, name) for name in ("asked.jsonl", "want.jsonl", "made.jsonl"))
        pairs = self.convert(os.path.join(GOLDEN, "pairs/marian"))
        for model, prompts in ((DEMO, [f"turn on lamp {i}" for i in range(30)]),
                               (pairs, [[5 + i % 7, 9, 3 + i % 11, 4][:1 + i % 4] for i in range(30)])):
            with open(asked, "w") as file:
                for i, prompt in enumerate(prompts):
                    print(json.dumps({"prompt": prompt, "max_tokens": 3 + i, "temperature": i % 2, "seed": i}), file=file)
            batch = ["run", model, "--batch", asked, "--quiet", "-o"]
            run([FOVEA, *batch, wanted])
            with open(wanted) as file:
                want = file.read()
            for n, *how in ((3,), (2, "--stages", "2")):
                ranks(n, *batch, made, *how)
                with open(made) as file:
                    self.assertEqual(file.read(), want)
                os.remove(made)
            os.remove(wanted)

    def ask(self, url, i):
        """Texts of one request among many, with the hashes of all their logits."""
        request = {"prompt": [1 + i % 5] * (20 + 30 * (i % 3)) + [i, i + 1, i + 2], "max_tokens": 12, "n": 1 + i % 2,
                   "temperature": i % 2, "seed": i, "ignore_eos": True}
        asked = urllib.request.Request(f"{url}/v1/completions", json.dumps(request).encode(),
                                       {"Content-Type": "application/json", "X-Fovea-Logits-Hash": "1"})
        with urllib.request.urlopen(asked, timeout=120) as answer:
            texts = [choice["text"] for choice in json.load(answer)["choices"]]
            return texts, answer.headers["X-Fovea-Logits-Hash"]

    def answers(self, command):
        """Answers of a server to requests that come together, where there are pages for a few; and to one that hangs up."""
        server = subprocess.Popen([*command, "--port", "0", "--threads", "1", "--sequences", "4", "--context", "128",
                                   "--positions", "384"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, server)
        url = server.stdout.readline().strip()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(self.ask, url, i) for i in range(24)]
            host, port = url.removeprefix("http://").split(":")
            body = json.dumps({"prompt": [3], "max_tokens": 100, "stream": True, "ignore_eos": True}).encode()
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n" % len(body) + body)
                connection.recv(100)
            got = [one.result() for one in asked]
        return server, got

    def test_serve(self):
        folder = os.path.join(self.folder.name, "recurrent")
        shutil.copytree(os.path.join(GOLDEN, "hybrid"), folder)
        shutil.copy(os.path.join(GOLDEN, "tokenizer_qwen2.json"), os.path.join(folder, "tokenizer.json"))
        for model in (DEMO, self.convert(folder, "--type", "q8")):
            alone, want = self.answers([FOVEA, "serve", model])
            self.end(alone)
            self.assertTrue(all(logits for _, logits in want))
            for n, *how in ((2,), (3,), (4, "--stages", "2")):
                server, got = self.answers([*mpirun(n), FOVEA, "serve", model, *how])
                self.assertEqual(got, want)
                server.send_signal(signal.SIGTERM)
                _, said = server.communicate(timeout=30)
                self.assertNotIn("rank", said)

    def test_serve_vectors(self):
        model = self.convert(os.path.join(GOLDEN, "encoders/bert_sentence"))
        texts = [["a text", "another one, longer than the first"], "words " * 9, ["one"] * 70]

        def vectors(command):
            server = subprocess.Popen([*command, "--port", "0", "--threads", "1"], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
            self.addCleanup(self.end, server)
            url = server.stdout.readline().strip()
            answers = []
            for text in texts:
                request = urllib.request.Request(f"{url}/v1/embeddings", json.dumps({"input": text}).encode(),
                                                 {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=120) as answer:
                    answers.append(json.load(answer)["data"])
            server.send_signal(signal.SIGTERM)
            _, said = server.communicate(timeout=30)
            self.assertNotIn("rank", said)
            return answers

        want = vectors([FOVEA, "serve", model])
        self.assertEqual([len(data) for data in want], [2, 1, 70])
        for n, *how in ((3,), (4, "--stages", "2")):
            self.assertEqual(vectors([*mpirun(n), FOVEA, "serve", model, *how]), want)

    def test_file(self):
        wanted, made = (os.path.join(self.folder.name, name) for name in ("wanted.npy", "made.npy"))
        logits = ["logits", DEMO, "-p", "close the blinds", "-o"]
        run([FOVEA, *logits, wanted])
        ranks(3, *logits, made)
        with open(wanted, "rb") as a, open(made, "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_vectors_and_speech(self):
        texts, wanted, made = (os.path.join(self.folder.name, name) for name in ("texts.txt", "wanted.npy", "made.npy"))
        with open(texts, "w") as file:
            file.write("a text\nanother one, longer than the first\n" * 9)
        encode = ["encode", self.convert(os.path.join(GOLDEN, "encoders/bert_sentence")), "--texts", texts, "-o"]
        run([FOVEA, *encode, wanted])
        ranks(3, *encode, made)
        with open(wanted, "rb") as a, open(made, "rb") as b:
            self.assertEqual(a.read(), b.read())
        transcribe = ["transcribe", self.convert(os.path.join(GOLDEN, "speech/whisper_talking")), "--srt",
                      os.path.join(GOLDEN, "recordings/three.wav")]
        self.assertEqual(ranks(3, *transcribe), run([FOVEA, *transcribe]))

    def test_plan(self):
        model = self.convert(os.path.join(GOLDEN, "models/llama_tied"))
        alone = json.loads(run([FOVEA, "plan", model, "--json", "--threads", "1"])[0])
        planned = json.loads(run([FOVEA, "plan", model, "--json", "--threads", "1", "--machines", "2"])[0])["ranks"]
        self.assertEqual([of["rank"] for of in planned], [0, 1])
        for of in planned:
            self.assertLess(of["arena_bytes"], alone["arena_bytes"])
        made = json.loads(ranks(2, "run", model, "--tokens", "1,2,3", "-n", "2", "--threads", "1", "--json", "--context",
                                str(alone["max_kv_len"]))[0])
        self.assertEqual(made["arena_bytes"], planned[0]["arena_bytes"])
        model = self.convert(os.path.join(GOLDEN, "models/llama_wide_heads"))
        alone, plan = (json.loads(run([FOVEA, "plan", model, "--json", "--threads", "1", *how])[0])
                       for how in ([], ["--machines", "2", "--shares", "1,3"]))
        first, second = plan["ranks"]
        self.assertLess(2 * first["matrix_bytes"], second["matrix_bytes"])
        made = json.loads(ranks(2, "run", model, "--tokens", "1,2,3", "-n", "2", "--threads", "1", "--json", "--shares", "1,3",
                                "--context", str(alone["max_kv_len"]))[0])
        self.assertEqual(made["arena_bytes"], first["arena_bytes"])

    def test_stages(self):
        text = ["run", DEMO, "-p", "turn on the reading lamp", "--quiet", "--temp", "1", "--seed", "7"]
        want = run([FOVEA, *text])
        for n, n_stages in ((2, 2), (4, 2), (3, 3)):
            self.assertEqual(ranks(n, *text, "--stages", str(n_stages)), want)
        guessed = [*text[:4], "--speculate", "4", "--json"]
        self.assertEqual(json.loads(ranks(2, *guessed, "--stages", "2")[0])["text"],
                         json.loads(run([FOVEA, *guessed])[0])["text"])
        session = ["run", DEMO, "-p", "turn on the reading lamp", "--quiet", "--context", "200", "-n", "9", "--session"]
        wanted, made = (os.path.join(self.folder.name, name) for name in ("stages_wanted.session", "stages.session"))
        for n_stages in ("2", "1"):  # and goes on in one
            self.assertEqual(run([FOVEA, *session, wanted]), ranks(2, *session, made, "--stages", n_stages))
            with open(wanted, "rb") as a, open(made, "rb") as b:
                self.assertEqual(a.read(), b.read())
        # Uneven stages, each of the rank's plan, with fewer bytes than all.
        model = self.convert(os.path.join(GOLDEN, "models/llama_wide_heads"), "--type", "q8")
        how = ["--stages", "2", "--shares", "1,2,2,1"]
        alone, plan = (json.loads(run([FOVEA, "plan", model, "--json", "--threads", "1", *which])[0])
                       for which in ([], ["--machines", "4", *how]))
        for of in plan["ranks"]:
            self.assertLess(of["arena_bytes"], alone["arena_bytes"])
        made = json.loads(ranks(4, "run", model, "--tokens", "1,2,3", "-n", "2", "--threads", "1", "--json", "--context",
                                str(alone["max_kv_len"]), *how)[0])
        self.assertEqual(made["arena_bytes"], plan["ranks"][0]["arena_bytes"])
        for n, arguments, status, word in (
                (3, ["logits", DEMO, "-p", "x", "--stages", "2"], 2, "--stages: expected a divisor of 3 ranks, got 2"),
                (2, ["logits", self.convert(os.path.join(GOLDEN, "families/gemma4_text")), "--tokens", "1", "--stages", "2"], 1,
                 "keys of an earlier one in another stage")):
            _, said = ranks(n, *arguments, want=status)
            lines = lines_of(said)
            self.assertEqual(len(lines), 1, said)
            self.assertIn(word, lines[0])
        _, said = run([FOVEA, "logits", DEMO, "-p", "x", "--stages", "2"], want=2)
        self.assertIn("--stages: expected several ranks, got one process", said)
        _, said = parts(["logits", DEMO, "-p", "x", "--stages", "2"], ["logits", DEMO, "-p", "x"], want=1)
        self.assertIn("rank 1: stages: expected 2, which rank 0 has, got 1", said)

    def test_speed(self):
        """A rank that computes with plain loops gets less to do, and the bits stay."""
        logits = ["logits", DEMO, "-p", "turn on the lamp", "--threads", "1", "--json"]
        want = json.loads(run([FOVEA, *logits])[0])["hash"]
        got, _ = parts([*logits, "--shares", "speed"], [*logits, "--shares", "speed", "--isa", "scalar"])
        self.assertEqual(json.loads(got)["hash"], want)

    def test_errors(self):
        for arguments, status, word in ((["run", "no_such.fovea", "-p", "x"], 1, "no_such.fovea"),
                                        (["serve", DEMO, "b=" + DEMO], 2, "several models"),
                                        (["inspect", DEMO], 2, "inspect"), (["embed", DEMO, "-p", "x"], 2, ""),
                                        (["logits", DEMO, "-p", "x", "--trace"], 2, "--trace"),
                                        (["transcribe", DEMO, "-"], 2, "FILE -"),
                                        (["run", DEMO, "-p", "x", "--session", "/dev"], 1, "/dev"),
                                        (["logits", DEMO, "-p", "x", "--shares", "3,1"], 2, "3 numbers"),
                                        (["logits", DEMO, "-p", "x", "--shares", "3,1,0"], 2, "from 1 to 255")):
            _, said = ranks(3, *arguments, want=status)
            lines = lines_of(said)
            self.assertEqual(len(lines), 1, said)
            self.assertIn(word, lines[0])
        # One rank alone fails.
        _, said = parts(["logits", DEMO, "-p", "x"], ["logits", "no_such.fovea", "-p", "x"], want=1)
        self.assertEqual(lines_of(said),
                         ["fovea: rank 1: no_such.fovea: no such file"], said)

    def test_differences(self):
        other = self.convert(DEMO, "--type", "q4")
        _, said = parts(["logits", DEMO, "-p", "x"], ["logits", DEMO, "-p", "x"], ["logits", other, "-p", "x"], want=1)
        lines = lines_of(said)
        self.assertEqual(len(lines), 1, said)
        self.assertIn("rank 2: bytes of the model: expected", lines[0])
        # The same directory, and a weight of the first layer that is damaged on one disk.
        damaged = os.path.join(self.folder.name, "damaged.fovea")
        shutil.copy(DEMO, damaged)
        query = next(tensor for tensor in json.loads(run([FOVEA, "inspect", DEMO, "--json"])[0])["tensors"]
                     if (tensor["role"], tensor["layer"]) == ("query", 0))
        with open(damaged, "r+b") as file:
            file.seek(query["offset"] + 3)
            byte = file.read(1)[0]
            file.seek(query["offset"] + 3)
            file.write(bytes([byte ^ 1]))
        _, said = parts(["logits", DEMO, "-p", "x"], ["logits", damaged, "-p", "x"], want=1)
        lines = lines_of(said)
        self.assertEqual(len(lines), 1, said)
        self.assertIn("rank 1: hash of the first layer: expected", lines[0])
        _, said = parts(["logits", DEMO, "-p", "x", "--shares", "3,1"], ["logits", DEMO, "-p", "x"], want=1)
        self.assertIn("rank 1: shares: expected 3,1, which rank 0 has, got even ones", said)
        _, said = parts(["logits", DEMO, "-p", "x"], ["logits", DEMO, "-p", "y"], want=1)
        lines = lines_of(said)
        self.assertEqual(len(lines), 1, said)
        self.assertIn("ranks: expected the same pass", lines[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])

"""Models that write a text from a text, behind /v1/completions; run by server_test.py."""
import json
import os
import shutil
import tempfile
import unittest

from cases import CHAT, COMPLETE, FOVEA, GOLDEN, run_fovea
from client import Server, at_once, wait_until

TOKENIZERS = {"marian": ("spm_unigram.model", "source.spm"), "m2m_100": ("spm_bpe.model", "sentencepiece.bpe.model")}


def convert_translator(name, folder, changes=None):
    """The golden model of that name as a file in that folder, with other settings in some of its files."""
    made, model = os.path.join(folder, name), os.path.join(folder, name + ".fovea")
    shutil.copytree(os.path.join(GOLDEN, "numbered_pieces", name), made)
    given, wanted = TOKENIZERS[name]
    shutil.copy(os.path.join(GOLDEN, given), os.path.join(made, wanted))
    for file, settings in (changes or {}).items():
        with open(os.path.join(made, file), encoding="utf-8") as opened:
            all_settings = {**json.load(opened), **settings}
        with open(os.path.join(made, file), "w", encoding="utf-8") as opened:
            json.dump(all_settings, opened)
    run_fovea("convert", made, "-o", model, "--type", "f32")
    return model


class Translations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        models = [convert_translator(name, cls.folder.name) for name in TOKENIZERS]
        cls.server = Server(FOVEA, *models)
        cls.written = []  # requests, and what transformers writes
        for name in TOKENIZERS:
            with open(os.path.join(GOLDEN, "numbered_pieces", name, "expected.json"), encoding="utf-8") as file:
                expected = json.load(file)
            for options, text in expected["written"]:
                fields = {option.lstrip("-"): value for option, value in zip(options[::2], options[1::2])}
                if fields.pop("beams", None) is None:  # the server writes greedily
                    continue
                cls.written.append(({"model": name, "prompt": fields.pop("p"), **fields}, text))

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        cls.folder.cleanup()
        assert status == 0, f"exit status: expected 0, got {status}: {cls.server.errors()}"

    def ask(self, body, **more):
        return self.server.post(COMPLETE, {**body, **more})

    def test_texts_are_those_of_transformers(self):
        self.assertEqual(len(self.written), 6)
        shown = self.server.post("/api/show", {"model": next(iter(TOKENIZERS))})
        self.assertEqual(shown["capabilities"], ["completion", "translation"])
        for body, text in self.written:
            answer = self.ask(body)
            self.assertEqual(answer["choices"][0]["text"].lstrip(" "), text)
            self.assertEqual(answer["choices"][0]["finish_reason"], "length")
            pieces = [event["choices"][0]["text"] for event in self.server.stream(COMPLETE, body)]
            self.assertEqual("".join(pieces), answer["choices"][0]["text"])
            self.assertGreater(len([piece for piece in pieces if piece]), 3)

    def test_usage_counts_the_source(self):
        path = os.path.join(GOLDEN, "numbered_pieces", "marian", "expected.json")
        with open(path, encoding="utf-8") as file:
            ids = json.load(file)["ids"][:2]
        texts = [text for text, _ in ids]
        answer = self.ask({"model": "marian", "prompt": texts}, max_tokens=3)
        self.assertEqual(answer["usage"]["prompt_tokens"], sum(len(tokens) for _, tokens in ids))
        self.assertEqual(answer["usage"]["completion_tokens"], 6)
        of_ids = self.ask({"model": "marian", "prompt": [tokens for _, tokens in ids]}, max_tokens=3)
        self.assertEqual([c["text"] for c in of_ids["choices"]], [c["text"] for c in answer["choices"]])

    def test_many_at_once_are_as_each_alone(self):
        bodies = []
        for seed in range(8):
            for body, _ in self.written:
                bodies.append({**body, "seed": seed, "temperature": seed % 4 / 2, "n": 1 + seed % 3})
        alone = [self.ask(body)["choices"] for body in bodies]
        self.assertGreater(len({json.dumps(choices) for choices in alone}), 20)
        together = {}

        def ask(i):
            together[i] = self.ask(bodies[i])["choices"]
        at_once([lambda i=i: ask(i) for i in range(len(bodies))])
        self.assertEqual([together[i] for i in range(len(bodies))], alone)
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running") == 0))

    def test_texts_that_rest_are_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            # Positions are computed: there may be more of them than there were. Texts of three pages.
            model = convert_translator("m2m_100", folder, {"config.json": {"max_position_embeddings": 200},
                                                           "generation_config.json": {"max_length": 180}})
            texts = [body["prompt"] for body, _ in self.written]
            bodies = [{"prompt": text, "n": 4, "temperature": 1, "seed": seed} for text in texts for seed in (0, 9)]
            with Server(FOVEA, model) as server:
                expected = [server.post(COMPLETE, body)["choices"] for body in bodies]
            self.assertGreater(len({json.dumps(choices) for choices in expected}), 4)
            answers = {}
            with Server(FOVEA, model, "--positions", "320", "--sequences", "6") as server:
                def ask(i):
                    answers[i] = server.post(COMPLETE, bodies[i])["choices"]
                at_once([lambda i=i: ask(i) for i in range(len(bodies))])
                self.assertEqual([answers[i] for i in range(len(bodies))], expected)
                self.assertGreater(server.metric("rests_total"), 0)
                self.assertEqual(server.stop(), 0)  # with all pages back

    def test_refusals(self):
        chat = {"messages": [{"role": "user", "content": "a"}]}
        for path, body, param in ((COMPLETE, {"prompt": "a", "to": "xx"}, "to"),
                                  (COMPLETE, {"prompt": "a", "from": "xx"}, "from"),
                                  (COMPLETE, {"prompt": "a", "to": 3}, "to"),
                                  (COMPLETE, {"prompt": "a" * 400}, "prompt"),
                                  (COMPLETE, {"prompt": "a" * 400_000}, "prompt"),
                                  (COMPLETE, {"prompt": [999999]}, "prompt"),
                                  (COMPLETE, {"prompt": "a", "echo": True}, "echo"),
                                  (COMPLETE, {"prompt": "a", "guided_regex": "b"}, "guided_regex"),
                                  (CHAT, chat, "messages"), ("/apply-template", chat, "messages"),
                                  ("/v1/responses", {"input": "a"}, "messages"),
                                  ("/v1/attention", {"prompt": "a"}, "model")):
            error = self.server.post(path, {"model": "m2m_100", **body}, want=400)["error"]
            self.assertEqual(error["param"], param, error)
            self.assertNotIn("\n", error["message"])
            self.assertIn("expected", error["message"])
        self.assertEqual(self.ask({"model": "m2m_100", "prompt": "a"}, max_tokens=1)["usage"]["completion_tokens"], 1)
        with Server(FOVEA, "demo=") as server:
            error = server.post(COMPLETE, {"prompt": "a", "to": "de"}, want=400)["error"]
            self.assertEqual(error["param"], "to")

"""How tokens are chosen where a request does not say it: as the model's file does; run by server_test.py."""
import json
import os
import shutil
import tempfile
import unittest

from cases import COMPLETE, FOVEA, MODEL_FOLDER, WithServer, run_fovea
from client import Server

OWN = {"do_sample": True, "temperature": 1.7, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.3}
SAID = {"temperature": 1.7, "top_k": 20, "top_p": 0.9}


@unittest.skipUnless(os.path.isdir(MODEL_FOLDER), "the built-in model's source is not there")
class OwnSampling(WithServer):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(scratch, "own")
            shutil.copytree(MODEL_FOLDER, folder)
            with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as file:
                json.dump(OWN, file)
            paths = [os.path.join(scratch, name + ".fovea") for name in ("own", "plain")]
            run_fovea("convert", folder, "-o", paths[0])
            run_fovea("convert", MODEL_FOLDER, "-o", paths[1])
            cls.server = Server(FOVEA, *paths)

    def tokens(self, model, **fields):
        body = {"model": model, "prompt": "play jazz\n", "max_tokens": 24, "logprobs": 0, "seed": 5, "ignore_eos": True, **fields}
        return self.server.post(COMPLETE, body)["choices"][0]["logprobs"]["tokens"]

    def test_what_is_not_said_is_the_models(self):
        own = self.tokens("own")
        self.assertNotEqual(own, self.tokens("plain"))
        self.assertEqual(own, self.tokens("own", **SAID))
        self.assertEqual(self.tokens("own", repetition_penalty=1), self.tokens("plain", **SAID))
        greedy = self.tokens("own", temperature=0, repetition_penalty=1)
        self.assertEqual(greedy, self.tokens("plain", temperature=0))

    def test_samplers(self):
        plain = self.tokens("plain", temperature=1.7)
        for fields in ({"top_n_sigma": 0.3}, {"typical_p": 0.1}, {"xtc_probability": 1, "xtc_threshold": 0.01},
                       {"mirostat": 2, "mirostat_tau": 1}, {"dry_multiplier": 50, "dry_allowed_length": 1}):
            self.assertNotEqual(self.tokens("plain", temperature=1.7, **fields), plain, fields)
        neutral = {"top_n_sigma": -1, "typical_p": 1, "xtc_probability": 0, "mirostat": 0, "mirostat_tau": 3, "dry_multiplier": 0,
                   "dry_sequence_breakers": ["\n", ":", "\"", "*"], "min_tokens": 0}
        self.assertEqual(self.tokens("plain", temperature=1.7, **neutral), plain)
        for fields, words in (({"mirostat": 1}, "mirostat: expected 0 or 2, got 1"), ({"dry_base": 0.5}, "dry_base: expected 1 to 100"),
                              ({"dry_sequence_breakers": ["x"]}, "dry_sequence_breakers: expected none")):
            body = {"model": "plain", "prompt": "x", **fields}
            self.assertIn(words, self.server.post(COMPLETE, body, want=400)["error"]["message"])

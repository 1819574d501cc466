"""Conversations with a model that has recurrent layers; run by server_test.py."""
import os
import shutil
import tempfile
import unittest

from cases import CHAT, FOVEA, GOLDEN, run_fovea
from client import Server

OPENING = 8  # tokens before an answer that a later turn may compute again, see host/text/turn_state.h


class Hybrids(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        folder = os.path.join(cls.scratch.name, "hybrid")
        shutil.copytree(os.path.join(GOLDEN, "hybrid"), folder)
        shutil.copy(os.path.join(GOLDEN, "tokenizer_qwen2.json"), os.path.join(folder, "tokenizer.json"))
        cls.model = os.path.join(cls.scratch.name, "hybrid.fovea")
        run_fovea("convert", folder, "-o", cls.model, "--type", "q8")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def talk(self, server, n_turns):
        """Answers, and of each request its prompt's tokens and those that were there already."""
        messages, answers, counts = [], [], []
        for turn in range(n_turns):
            messages.append({"role": "user", "content": f"question {turn} about the sea and what lies beyond it"})
            got = server.post(CHAT, {"messages": messages, "max_tokens": 9, "temperature": 0})
            answers.append(got["choices"][0]["message"]["content"])
            usage = got["usage"]
            counts.append((usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]))
            messages.append({"role": "assistant", "content": answers[-1]})
        return answers, counts

    def test_a_turn_computes_what_is_new(self):
        with Server(FOVEA, self.model, "--context", "1024") as server:
            answers, counts = self.talk(server, 10)
            for (before, _), (n_prompt, n_cached) in zip(counts, counts[1:]):
                self.assertGreaterEqual(n_cached, before - OPENING)
                self.assertLess(n_cached, n_prompt)
        alone = []
        for turn in range(len(answers)):  # a server that has computed nothing yet
            if turn not in (4, 9):
                continue
            with Server(FOVEA, self.model, "--context", "1024") as server:
                messages = []
                for i in range(turn + 1):
                    messages.append({"role": "user", "content": f"question {i} about the sea and what lies beyond it"})
                    if i < turn:
                        messages.append({"role": "assistant", "content": answers[i]})
                got = server.post(CHAT, {"messages": messages, "max_tokens": 9, "temperature": 0})
                alone.append(got["choices"][0]["message"]["content"])
        self.assertEqual(alone, [answers[4], answers[9]])

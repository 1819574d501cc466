"""Conversations with a model that has recurrent layers, and answers with a draft; run by server_test.py."""
import os
import shutil
import tempfile
import unittest

from cases import CHAT, COMMANDS, FOVEA, GOLDEN, chat, run_fovea
from client import Server, at_once

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


class Drafts(unittest.TestCase):
    """What the draft does for whom is in text_draft_test.cpp."""

    DEMO = os.path.join(GOLDEN, "../../tools/demo/demo.fovea")

    def test_answers_are_those_without(self):
        answers = {}
        for draft in ([], ["--draft", self.DEMO], ["--draft", "demo=" + self.DEMO]):
            with Server(FOVEA, "demo=", "--context", "256", *draft) as server:
                def ask(i, server=server):
                    body = chat(COMMANDS[i], temperature=1.5, seed=i, logprobs=True)
                    choice = server.post(CHAT, body)["choices"][0]
                    answers.setdefault(i, []).append((choice["message"]["content"], choice["logprobs"]))
                for i in range(4):
                    ask(i)
                at_once([lambda i=i: ask(i) for i in range(4, 8)])
                proposed, accepted = server.metric("proposed_tokens_total"), server.metric("accepted_tokens_total")
                self.assertLessEqual(accepted, proposed)
                self.assertTrue(draft or not proposed)
        for texts in answers.values():
            self.assertEqual(len(texts), 3)
            self.assertEqual(texts, texts[:1] * 3)

    def test_what_is_no_draft_of_the_model_is_refused(self):
        with tempfile.TemporaryDirectory() as scratch:
            other = os.path.join(scratch, "other.fovea")
            run_fovea("convert", os.path.join(GOLDEN, "models/llama_tied"), "-o", other)
            for arguments, words in ((["--draft", "other=" + self.DEMO], "--draft: expected NAME=FILE"),
                                     (["--draft", self.DEMO, "--draft", self.DEMO], "--draft: expected one for demo, got two"),
                                     (["b=" + self.DEMO, "--draft", self.DEMO], "--draft: expected NAME=FILE"),
                                     (["--draft", other], "vocabulary: expected demo's")):
                with self.assertRaises(RuntimeError) as refused:
                    Server(FOVEA, "demo=", *arguments)
                self.assertIn(words, str(refused.exception))

"""`fovea serve` as its clients have it, over 127.0.0.1 alone; Python's standard library and nothing else.

    server_test.py FOVEA GOLDEN_DIR DOCUMENT [NAME...]    the built program, tests/golden, docs/server.md; tests by name,
                                                          or all but those of -NAME, or of those every third class: 1/3
"""
import json
import math
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
import time
import unittest

from cases import (
    CHAT, COMMANDS, COMPLETE, DOCUMENT, EMBED, FOVEA,
    GOLDEN, WithServer, WithTemplates, chat, complete, read_npy, run_fovea,
)
from adapters import Adapters  # noqa: F401, unittest finds it here
from attacks import Bodies, FormsOfMany, Http, Places  # noqa: F401, as above
from client import Server, at_once, http_bytes, wait_until
from fields import Choices, Fields, OtherFields  # noqa: F401, as above
from hybrids import Drafts, Hybrids  # noqa: F401, as above
from infill import Infill, NoInfill  # noqa: F401, as above
from members import Members  # noqa: F401, as above
from messages import COUNT, MESSAGES, MessageKeys, Messages, MessageTemplates  # noqa: F401, unittest finds them here
from offered import DEMO, LOAD, UNLOAD, Offered, OfferedFiles, OfferedInUse, OfferedLong  # noqa: F401, as above
from prompts import Continuations, PromptChances, Seeds, Tools  # noqa: F401, as above
from reasoning import Dialects, Reasoning, ReasoningTemplates, ToldTools  # noqa: F401, as above
from refusals import Limits, Refusals  # noqa: F401, unittest finds them here
from responses import RESPONSES, Responses, ResponseTemplates, StoredResponses  # noqa: F401, as above
from routes import RequestLogs, Routes, SilentStreams, SpecialTokens, VectorRoutes  # noqa: F401, as above
from sampling import OwnSampling  # noqa: F401, as above
from speech import FORM_TYPE, TRANSCRIBE, Speech, Uploads, form, read_bytes, recording  # noqa: F401, as above
from strangers import Strangers  # noqa: F401, as above
from tokens import DETOKENIZE, TEMPLATE, TOKENIZE, Tokens, TokenTemplates  # noqa: F401, as above
from translations import Translations, convert_translator  # noqa: F401, as above
from vectors import Classifiers, Vectors  # noqa: F401, as above


class Text(WithServer):
    def test_chat_is_what_run_writes(self):
        for command in COMMANDS:
            answer = self.server.post(CHAT, chat(command, temperature=0))
            expected = run_fovea("run", "-p", command).rstrip("\n")
            self.assertEqual(answer["choices"][0]["message"]["content"], expected)
            self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
            usage = answer["usage"]
            self.assertEqual(usage["prompt_tokens"] + usage["completion_tokens"], usage["total_tokens"])

    def test_sampled_is_what_run_samples(self):
        for seed in (1, 2, 3):
            answer = self.server.post(COMPLETE, complete("make some sense", temperature=3.0, seed=seed, top_k=50, top_p=0.9))
            expected = run_fovea("run", "-p", "make some sense", "-n", "60", "--temp", "3", "--seed", str(seed),
                                 "--top-k", "50", "--top-p", "0.9")
            self.assertEqual(answer["choices"][0]["text"] + "\n", expected)

    def test_penalties_and_biases(self):
        plain = self.server.post(COMPLETE, complete("play jazz", temperature=0))["choices"][0]["text"]
        # An answer that may not come again: what OpenAI's penalties see is the answer alone, not the prompt.
        for penalty in ("frequency_penalty", "presence_penalty"):
            self.assertEqual(self.server.post(COMPLETE, complete("play jazz", temperature=0, **{penalty: 0}))
                             ["choices"][0]["text"], plain)
            pushed = complete("play jazz", temperature=0, logprobs=0, **{penalty: 100.0})
            tokens = self.server.post(COMPLETE, pushed)["choices"][0]["logprobs"]["tokens"]
            self.assertEqual(len(tokens), len(set(tokens)))
            self.assertEqual(tokens[0], plain[:len(tokens[0])])
            options = {"temperature": 0, "repeat_penalty": 1.0, penalty: 100.0}
            body = {"model": "demo", "prompt": "play jazz", "options": options, "stream": False}
            expected = run_fovea("run", "-p", "play jazz", "-n", "60", "--" + penalty.replace("_", "-"), "100").rstrip("\n")
            body["options"]["num_predict"] = 60
            self.assertEqual(self.server.post("/api/generate", body)["response"], expected)
            self.assertNotEqual(expected, plain)
        ids = run_fovea("tokenize", os.path.join(GOLDEN, "../../tools/demo/demo.fovea"), "-p", plain).split()
        first = ids[1]  # behind the start token
        body = complete("play jazz", temperature=0, logit_bias={first: -100})
        other = self.server.post(COMPLETE, body)["choices"][0]["text"]
        self.assertEqual(other, run_fovea("run", "-p", "play jazz", "-n", "60", "--logit-bias", first + "-100")[:-1])
        self.assertNotEqual(other, plain)
        self.assertEqual(self.server.post(COMPLETE, body)["choices"][0]["text"], other)

    def test_attention_is_what_logits_writes(self):
        prompt = "play jazz in the kitchen\n"
        with tempfile.TemporaryDirectory() as folder:
            for layer, answer in ((0, ""), (1, "{\"do\"")):
                path = os.path.join(folder, "w.npy")
                run_fovea("logits", os.path.join(GOLDEN, "../../tools/demo/demo.fovea"), "-p", prompt + answer, "--layer",
                          str(layer), "--weights", path, "-o", os.path.join(folder, "l.npy"))
                expected = read_npy(path)
                body = {"model": "demo", "messages": [{"role": "user", "content": prompt.strip()}], "answer": answer,
                        "layer": layer}
                seen = self.server.post("/v1/attention", body)
                self.assertEqual(len(seen["tokens"]), len(expected))
                self.assertEqual("".join(seen["tokens"][1:]), prompt + answer)  # behind the start token
                self.assertEqual("".join(seen["tokens"][seen["n_prompt_tokens"]:]), answer)
                for i, row in enumerate(seen["weights"]):
                    self.assertEqual(len(row), i + 1)
                    for weight, exact in zip(row, expected[i]):
                        self.assertAlmostEqual(weight, exact, delta=0.00051)
                heads = [self.server.post("/v1/attention", {**body, "head": head})["weights"]
                         for head in range(seen["n_heads"])]
                mean = sum(rows[-1][0] for rows in heads) / len(heads)
                self.assertAlmostEqual(mean, expected[-1][0], delta=0.00051)
        texts = self.server.post("/v1/attention", {"prompt": prompt})
        self.assertEqual(texts["head"], None)
        for body, words in (({}, "prompt"), ({"prompt": 3}, "prompt"), ({"prompt": "x", "layer": 99}, "layer: expected 0 to"),
                            ({"prompt": "x", "head": 99}, "head"), ({"prompt": "x", "answer": "word " * 250}, "tokens to look at"),
                            ({"prompt": "x", "model": "none"}, "model")):
            error = self.server.post("/v1/attention", body, want=404 if "model" in body else 400)["error"]
            self.assertIn(words, error["message"])

    def test_attention_comes_between_others_tokens(self):
        answers = {}
        def ask(i):
            if i % 3 == 0:
                answers[i] = self.server.post("/v1/attention", {"prompt": COMMANDS[i % 8], "layer": i % 2})["weights"]
            else:
                answers[i] = self.server.post(COMPLETE, complete(COMMANDS[i % 8], temperature=2, seed=i))["choices"][0]["text"]
        at_once([lambda i=i: ask(i) for i in range(24)])
        together = dict(answers)
        for i in range(24):
            ask(i)
        self.assertEqual(answers, together)
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running") == 0))

    def test_stream_is_the_whole(self):
        for path, body, text in ((CHAT, chat("play jazz"), lambda c: c["delta"].get("content") or ""),
                                 (COMPLETE, complete("play jazz"), lambda c: c["text"])):
            whole = self.server.post(path, body)
            events = list(self.server.stream(path, {**body, "stream_options": {"include_usage": True}}))
            pieces = [text(event["choices"][0]) for event in events if event["choices"]]
            choice = whole["choices"][0]
            self.assertEqual("".join(pieces), choice["message"]["content"] if path == CHAT else choice["text"])
            self.assertGreater(len([piece for piece in pieces if piece]), 3)
            self.assertEqual(events[-2]["choices"][0]["finish_reason"], "stop")
            for name in ("prompt_tokens", "completion_tokens"):
                self.assertEqual(events[-1]["usage"][name], whole["usage"][name])

    def test_stop_and_length(self):
        whole = self.server.post(COMPLETE, complete("play jazz"))["choices"][0]["text"]
        for stop in ("what", ["zz", "absent"], "y\",\"wh"):
            first = min(whole.index(text) for text in ([stop] if isinstance(stop, str) else stop) if text in whole)
            choice = self.server.post(COMPLETE, complete("play jazz", stop=stop))["choices"][0]
            self.assertEqual((choice["text"], choice["finish_reason"]), (whole[:first], "stop"))
        choice = self.server.post(COMPLETE, complete("play jazz", max_tokens=3))
        self.assertEqual(choice["choices"][0]["finish_reason"], "length")
        self.assertEqual(choice["usage"]["completion_tokens"], 3)
        self.assertTrue(whole.startswith(choice["choices"][0]["text"]))
        none = self.server.post(COMPLETE, complete("play jazz", max_tokens=0, echo=True))["choices"][0]
        self.assertEqual(none["text"], "play jazz\n")

    def test_choices_have_seeds_of_their_own(self):
        body = complete("sing", temperature=5.0, seed=7, max_tokens=12)
        many = self.server.post(COMPLETE, {**body, "n": 4, "prompt": ["sing\n", "dance\n"]})["choices"]
        self.assertEqual([choice["index"] for choice in many], list(range(8)))
        for i, prompt in enumerate(["sing\n", "dance\n"]):
            for j in range(4):
                alone = self.server.post(COMPLETE, {**body, "prompt": prompt, "seed": 7 + j})["choices"][0]
                self.assertEqual(many[4 * i + j]["text"], alone["text"])
        self.assertGreater(len({choice["text"] for choice in many[:4]}), 1)

    def test_no_seed_is_seed_0_and_minus_1_is_told(self):
        body = complete("sing", temperature=5.0, max_tokens=12)
        texts = {self.server.post(COMPLETE, other)["choices"][0]["text"] for other in (body, {**body, "seed": 0}, body)}
        self.assertEqual(len(texts), 1)
        drawn = self.server.post(COMPLETE, {**body, "seed": -1})["choices"][0]["text"]
        seed = int(self.server.headers["X-Fovea-Seed"])
        self.assertEqual(self.server.post(COMPLETE, {**body, "seed": seed})["choices"][0]["text"], drawn)

    def test_chances(self):
        choice = self.server.post(CHAT, chat("play jazz", temperature=0, logprobs=True, top_logprobs=3))["choices"][0]
        tokens = choice["logprobs"]["content"]
        self.assertEqual("".join(token["token"] for token in tokens), choice["message"]["content"])
        for token in tokens:
            self.assertEqual(len(token["top_logprobs"]), 3)
            self.assertEqual(token["top_logprobs"][0]["token"], token["token"])  # greedy
            chances = [other["logprob"] for other in token["top_logprobs"]]
            self.assertEqual(chances, sorted(chances, reverse=True))
            self.assertLessEqual(sum(math.exp(chance) for chance in chances), 1 + 1e-6)
        old = self.server.post(COMPLETE, complete("play jazz", temperature=0, logprobs=3))["choices"][0]["logprobs"]
        self.assertEqual(old["tokens"], [token["token"] for token in tokens])
        self.assertEqual(old["token_logprobs"], [token["logprob"] for token in tokens])
        events = list(self.server.stream(CHAT, chat("play jazz", temperature=0, logprobs=True, top_logprobs=3)))
        streamed = [token for event in events if event["choices"][0]["logprobs"]
                    for token in event["choices"][0]["logprobs"]["content"]]
        self.assertEqual(streamed, tokens)

    def test_the_hash_is_of_what_the_text_was_chosen_from(self):
        headers = {"X-Fovea-Logits-Hash": "1"}
        hashes = set()
        for body in (chat("play jazz"), chat("play jazz", max_tokens=200), chat("play jazz", temperature=0.5)):
            self.server.post(CHAT, body, headers)
            hashes.add(self.server.headers["X-Fovea-Logits-Hash"])
        self.assertEqual(len(hashes), 1)  # the same logits, whatever is drawn from them here
        last = list(self.server.stream(CHAT, chat("play jazz"), headers))[-1]
        hashes.add(last["fovea_logits_hash"])
        self.assertEqual(len(hashes), 1)
        self.server.post(CHAT, chat("play rock"), headers)
        self.assertNotIn(self.server.headers["X-Fovea-Logits-Hash"], hashes)
        self.server.post(CHAT, chat("play jazz"))
        self.assertNotIn("X-Fovea-Logits-Hash", self.server.headers)

    def test_tokens_as_a_prompt(self):
        ids = [int(word) for word in run_fovea("tokenize", os.path.join(GOLDEN, "../../tools/demo/demo.fovea"), "-p",
                                               "play jazz\n").replace(",", " ").split()]
        texts = self.server.post(COMPLETE, complete("", prompt=[ids, ids]))["choices"]
        expected = self.server.post(COMPLETE, complete("play jazz"))["choices"][0]["text"]
        self.assertEqual([choice["text"] for choice in texts], [expected, expected])

    def test_ollama(self):
        expected = self.server.post(COMPLETE, complete("play jazz", temperature=0))["choices"][0]["text"]
        options = {"temperature": 0, "repeat_penalty": 1.0}
        for stream in (True, False):
            body = {"model": "demo", "prompt": "play jazz", "options": options, "stream": stream}
            if stream:
                events = list(self.server.stream("/api/generate", body))
                self.assertEqual([event["done"] for event in events], [False] * (len(events) - 1) + [True])
            else:
                events = [self.server.post("/api/generate", body)]
            self.assertEqual("".join(event["response"] for event in events), expected)
            self.assertEqual(events[-1]["done_reason"], "stop")
        body = {**chat("play jazz"), "options": options, "stream": False}
        self.assertEqual(self.server.post("/api/chat", body)["message"], {"role": "assistant", "content": expected})
        raw = {"model": "demo", "prompt": "play jazz\n", "raw": True, "options": options, "stream": False}
        self.assertEqual(self.server.post("/api/generate", raw)["response"], expected)
        self.assertEqual(json.loads(self.server.get("/api/tags"))["models"][0]["name"], "demo")
        self.assertIn("error", self.server.post("/api/chat", {"model": "none"}, want=404))


class Forms(WithServer):
    def test_schemas_and_grammars(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}, "kind": {"enum": ["warm", "cold"]},
                                                   "list": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}},
                  "required": ["n", "kind", "list"], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        n_ended = 0
        for seed in range(12):  # at any temperature: the form is what holds
            for path, body in ((CHAT, chat("x", response_format=form, temperature=1.5, seed=seed)),
                               (COMPLETE, complete("x", response_format=form, temperature=1.5, seed=seed, max_tokens=200)),
                               ("/api/generate", {"model": "demo", "prompt": "x", "format": schema, "stream": False,
                                                  "options": {"temperature": 1.5, "seed": seed}})):
                answer = self.server.post(path, body)
                choice = answer["choices"][0] if "choices" in answer else answer
                text = choice["message"]["content"] if path == CHAT else choice.get("text", choice.get("response"))
                if choice.get("finish_reason", choice.get("done_reason")) == "length":
                    continue
                n_ended += 1
                value = json.loads(text)
                self.assertEqual(list(value), ["n", "kind", "list"])
                self.assertIsInstance(value["n"], int)
                self.assertIn(value["kind"], ["warm", "cold"])
                self.assertLessEqual(len(value["list"]), 3)
        self.assertGreater(n_ended, 6)
        answer = self.server.post(COMPLETE, complete("x", grammar='root ::= ("ha" | "ho") "!"', temperature=9.0, n=8))
        self.assertLessEqual({choice["text"] for choice in answer["choices"]}, {"ha!", "ho!"})
        json.loads(self.server.post(CHAT, chat("play jazz", response_format={"type": "json_object"}))["choices"][0]
                   ["message"]["content"])
        for body, words in ((chat("x", response_format={"type": "json_schema", "json_schema": {"schema": {"type": 3}}}),
                             "response_format"), (chat("x", grammar="root ::= ("), "grammar")):
            self.assertIn(words, self.server.post(CHAT, body, want=400)["error"]["message"])

    def test_tools(self):
        tool = lambda name, **fields: {"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}}}
        tools = [tool("light", on={"type": "boolean"}), tool("play", what={"enum": ["jazz", "rock"]})]
        named = {"type": "function", "function": {"name": "play"}}
        for choice, names in ((named, {"play"}), ("required", {"light", "play"})):
            for seed in range(4):
                body = chat("x", tools=tools, tool_choice=choice, temperature=2.0, seed=seed, max_tokens=200)
                answer = self.server.post(CHAT, body)["choices"][0]
                self.assertEqual(answer["finish_reason"], "tool_calls")
                call = answer["message"]["tool_calls"][0]
                self.assertIn(call["function"]["name"], names)
                arguments = json.loads(call["function"]["arguments"])
                self.assertEqual(list(arguments), ["on"] if call["function"]["name"] == "light" else ["what"])
                deltas = [event["choices"][0] for event in self.server.stream(CHAT, body)]
                streamed = [one for delta in deltas for one in delta["delta"].get("tool_calls", [])]
                self.assertEqual(streamed[0]["function"]["name"], call["function"]["name"])
                pieces = "".join(one["function"]["arguments"] for one in streamed)
                self.assertEqual(json.loads(pieces), arguments)
                self.assertEqual(deltas[-1]["finish_reason"], "tool_calls")
        answer = self.server.post(CHAT, chat("play jazz", tools=tools, temperature=0))["choices"][0]
        self.assertEqual(answer["message"]["content"], run_fovea("run", "-p", "play jazz").rstrip("\n"))
        marked = 'root ::= "so <tool_call>" "{\\"name\\": \\"light\\", \\"arguments\\": {\\"on\\": true}}" "</tool_call>"'
        answer = self.server.post(CHAT, chat("x", tools=tools, grammar=marked))["choices"][0]
        self.assertEqual(answer["message"]["content"], "so ")
        self.assertEqual(answer["message"]["tool_calls"][0]["function"], {"name": "light", "arguments": '{"on":true}'})
        plain = self.server.post(CHAT, chat("x", tools=tools, tool_choice="none", grammar=marked))["choices"][0]
        self.assertIn("<tool_call>", plain["message"]["content"])


class Templates(WithTemplates):
    def test_conversations_tools_and_variables_reach_the_template(self):
        server = self.serve("{{ bos_token }}{% for m in messages %}{{ m.role }} {{ m.content }}\n{% endfor %}"
                            "{% if tools %}{{ tools[0].function.name }} {% endif %}{{ word }}"
                            "{% if messages[0].role == 'tool' %}{{ raise_exception('no tool first') }}{% endif %}")
        # A role that the template does not name.
        newer = {"model": "demo", "messages": [{"role": "developer", "content": "be kind"}], "temperature": 0, "max_tokens": 9}
        older = {**newer, "messages": [{"role": "system", "content": "be kind"}]}
        self.assertEqual(server.post(CHAT, newer)["choices"], server.post(CHAT, older)["choices"])
        talk = [{"role": "system", "content": "be kind"}, {"role": "user", "content": [{"type": "text", "text": "play "},
                {"type": "text", "text": "jazz"}]}, {"role": "assistant", "content": None}]
        tools = [{"type": "function", "function": {"name": "light", "parameters": {"type": "object"}}}]
        for fields, end in (({}, ""), ({"tools": tools}, "light "), ({"chat_template_kwargs": {"word": "now"}}, "now")):
            body = {"model": "demo", "messages": talk, "temperature": 0, "max_tokens": 20, **fields}
            text = "system be kind\nuser play jazz\nassistant \n" + end
            expected = server.post(COMPLETE, {"model": "demo", "prompt": text, "temperature": 0, "max_tokens": 20})
            got = server.post(CHAT, body)
            self.assertEqual(got["choices"][0]["message"]["content"], expected["choices"][0]["text"])
            self.assertEqual(got["usage"]["prompt_tokens"], expected["usage"]["prompt_tokens"])
        refused = {"model": "demo", "messages": [{"role": "tool", "content": "x"}]}
        self.assertIn("no tool first", server.post(CHAT, refused, want=400)["error"]["message"])

    def test_a_template_that_never_ends_is_stopped(self):
        server = self.serve("{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}")
        started = time.monotonic()
        self.assertIn("template", server.post(CHAT, chat("x"), want=400)["error"]["message"])
        self.assertLess(time.monotonic() - started, 20)
        server.post(COMPLETE, complete("play jazz"))


class ManyAtOnce(WithServer):
    arguments = ["--context", "256", "--sequences", "5", "--positions", "320"]  # pages of less than two contexts

    def test_each_text_is_the_one_alone(self):
        bodies = [complete(COMMANDS[i % 8] + (" and then " + COMMANDS[(i * 5 + 1) % 8]) * (i % 4), temperature=0.2 * (i % 6),
                           seed=i, max_tokens=10 + 17 * (i % 5)) for i in range(40)]
        alone = [self.server.post(COMPLETE, body)["choices"][0]["text"] for body in bodies]
        for _ in range(2):
            many = at_once([lambda body=body: self.server.post(COMPLETE, body) for body in bodies])
            self.assertEqual([answer["choices"][0]["text"] for answer in many], alone)
        # Five texts that run together, whatever the machine's speed, want more pages than there are.
        five = complete("sing", temperature=50.0, max_tokens=240, seed=3, n=5)
        together = [choice["text"] for choice in self.server.post(COMPLETE, five)["choices"]]
        self.assertGreater(self.server.metric("rests_total"), 0)
        with Server(FOVEA, "--context", "256", "--sequences", "32", "--threads", "1") as other:
            many = at_once([lambda body=body: other.post(COMPLETE, body) for body in reversed(bodies)])
            self.assertEqual([answer["choices"][0]["text"] for answer in reversed(many)], alone)
            self.assertEqual([choice["text"] for choice in other.post(COMPLETE, five)["choices"]], together)

    def test_prefixes_are_computed_once(self):
        prefix = "turn on the light in the kitchen and play jazz then lock the door " * 3
        bodies = [complete(prefix + command, temperature=0, max_tokens=8) for command in COMMANDS]
        shared = self.server.metric("shared_prompt_tokens_total")
        first = self.server.post(COMPLETE, bodies[0])
        answers = at_once([lambda body=body: self.server.post(COMPLETE, body) for body in bodies[1:]])
        n_shared = [answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in answers]
        n_prefix = first["usage"]["prompt_tokens"] - 12
        self.assertGreater(min(n_shared), n_prefix // 2)
        self.assertEqual(self.server.metric("shared_prompt_tokens_total") - shared,
                         sum(n_shared) + first["usage"]["prompt_tokens_details"]["cached_tokens"])

    def test_a_client_that_hangs_up_frees_its_place(self):
        cancelled = self.server.metric("cancelled_total")
        endless = complete("sing", temperature=50.0, max_tokens=240, ignore="")
        idle = lambda: self.server.metric("sequences_running", "requests_waiting") == 0
        for _ in range(20):  # until one hangs up before its text is done
            connections = []
            for i in range(12):
                connections.append(self.server.raw(http_bytes(COMPLETE, {**endless, "stream": True, "seed": i})))
            for connection in connections[:6]:
                connection.recv(20)
            for connection in connections:
                connection.close()
            self.assertTrue(wait_until(idle))
            if self.server.metric("cancelled_total") > cancelled:
                break
        self.assertGreater(self.server.metric("cancelled_total"), cancelled)
        # A request whose client has gone may still be read, and takes a place until that is seen.
        n_pages = self.server.metric("pages")
        self.assertTrue(wait_until(lambda: self.server.metric("pages_free", "pages_kept") >= n_pages))

    def test_probabilities_of_a_whole_answer_are_bounded(self):
        body = complete("sing", n=32, logprobs=20, max_tokens=200)
        self.assertIn("at most 100000", self.server.post(COMPLETE, body, want=400)["error"]["message"])
        self.assertEqual(len(self.server.post(COMPLETE, {**body, "logprobs": 1, "max_tokens": 4})["choices"]), 32)

    def test_slow_readers_delay_nobody(self):
        body = complete("sing", temperature=50.0, max_tokens=200, logprobs=20, stream=True)
        for n_slow, n, most in ((4, 1, 20), (2, 32, 60)):  # a place is left, or is taken from those that do not read
            slow = [self.server.raw(http_bytes(COMPLETE, {**body, "seed": i, "n": n})) for i in range(n_slow)]
            for connection in slow:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            started = time.monotonic()
            self.server.post(CHAT, chat("play jazz", temperature=0))
            self.assertLess(time.monotonic() - started, most)
            for connection in slow:
                connection.close()


class Document(unittest.TestCase):
    def test_every_example_works(self):
        """Each `curl` of the document, sent as it is written, and what the document says comes of it."""
        with open(DOCUMENT, encoding="utf-8") as file:
            text = file.read()
        examples = re.findall(r"```sh\n(curl .*?)```\n+(?:```json\n(.*?)```)?", text, re.S)
        self.assertGreater(len(examples), 10)
        paths = set()
        with tempfile.TemporaryDirectory() as scratch:
            model = os.path.join(scratch, "minilm.fovea")
            run_fovea("convert", os.path.join(GOLDEN, "encoders/bert_sentence"), "-o", model)
            reranker = os.path.join(scratch, "reranker.fovea")
            run_fovea("convert", os.path.join(GOLDEN, "encoders/bert_sequenceclassification"), "-o", reranker)
            late = os.path.join(scratch, "colbert.fovea")
            run_fovea("convert", os.path.join(GOLDEN, "late/pylate"), "-o", late)
            speech = os.path.join(scratch, "whisper.fovea")
            run_fovea("convert", os.path.join(GOLDEN, "speech/whisper_talking"), "-o", speech)
            translator = convert_translator("m2m_100", scratch)
            folder = os.path.join(scratch, "folder")
            os.mkdir(folder)
            shutil.copy(DEMO, os.path.join(folder, "lamp.fovea"))
            with Server(FOVEA, "demo=", model, late, reranker, speech, translator, "--models", folder) as server:
                for command, expected in examples:
                    words = [word for word in shlex.split(command.replace("\\\n", " ")) if word != "-N"]
                    url = next(word for word in words if word.startswith("localhost:8080"))
                    body = words[words.index("-d") + 1].encode() if "-d" in words else None
                    headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
                    fields = dict(words[i + 1].split("=", 1) for i, word in enumerate(words) if word == "-F")
                    if fields.pop("file", None):  # curl's form, with a recording
                        body, headers = form(read_bytes(recording("one")), fields), FORM_TYPE
                    path = url.removeprefix("localhost:8080")
                    paths.add(path)
                    status, _, answer = server.request("POST" if body else "GET", path, body, headers)
                    self.assertEqual(status, 200, (command, answer))
                    for fragment in (expected or "").strip().split("..."):
                        self.assertIn(re.sub(r"\s+", "", fragment), re.sub(r"\s+", "", answer.decode()), command)
        self.assertLessEqual({CHAT, COMPLETE, EMBED, "/v1/rerank", RESPONSES, MESSAGES, COUNT, TRANSCRIBE, TOKENIZE, DETOKENIZE,
                              TEMPLATE, "/v1/models", "/api/chat", "/api/generate", "/api/embed", "/embed_all", LOAD, UNLOAD}, paths)


if __name__ == "__main__":
    for left_out in [name for name in sys.argv[4:] if name.startswith("-")]:
        del globals()[left_out[1:]]
        sys.argv.remove(left_out)
    for part in [name for name in sys.argv[4:] if re.fullmatch(r"\d+/\d+", name)]:
        number, n_parts = map(int, part.split("/"))
        classes = sorted(name for name, of in globals().items() if isinstance(of, type) and "test_" in "".join(dir(of)))
        for name in set(classes) - set(classes[number - 1::n_parts]):
            del globals()[name]
        sys.argv.remove(part)
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2, warnings="ignore")

"""What answers have of their prompts: probabilities, beginnings that go on, tools of any size; run by server_test.py."""
import json
import math
import os
import tempfile
import unittest

from cases import CHAT, COMMANDS, COMPLETE, FOVEA, GOLDEN, WithServer, WithTemplates, chat, complete, read_npy, run_fovea
from client import Server, at_once

DEMO = os.path.join(GOLDEN, "../../tools/demo/demo.fovea")


class PromptChances(WithServer):
    """`echo` with `logprobs`, as lm-eval asks for the probabilities of given texts."""

    def ids(self, text):
        return self.server.post("/tokenize", {"content": text, "add_special": True})["tokens"]

    def echoed(self, prompt, **fields):
        body = {"model": "demo", "prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": 0, "temperature": 0, **fields}
        return self.server.post(COMPLETE, body)

    def test_they_are_of_the_models_logits(self):
        text = "play jazz in the kitchen\n"
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "l.npy")
            run_fovea("logits", DEMO, "-p", text, "-o", path)
            rows = read_npy(path)
        ids = self.ids(text)
        chances = self.echoed(text)["choices"][0]["logprobs"]
        self.assertEqual(len(chances["tokens"]), len(ids))
        self.assertEqual((chances["token_logprobs"][0], chances["top_logprobs"][0]), (None, None))
        for row, token, chance, top in zip(rows, ids[1:], chances["token_logprobs"][1:], chances["top_logprobs"][1:]):
            highest = max(row)
            sum_of = highest + math.log(sum(math.exp(x - highest) for x in row))
            self.assertAlmostEqual(chance, row[token] - sum_of, places=4)
            self.assertAlmostEqual(max(top.values()), highest - sum_of, places=4)
            self.assertEqual(row[token] == highest, chance == max(top.values()))  # as lm-eval finds greedy texts

    def test_they_are_those_that_the_answer_had(self):
        answer = self.server.post(COMPLETE, complete("play jazz", temperature=0, logprobs=2))["choices"][0]
        ids = self.ids("play jazz\n" + answer["text"])
        n = len(answer["logprobs"]["tokens"])
        for prompt in (ids, "play jazz\n" + answer["text"]):
            got = self.echoed(prompt, logprobs=2)
            choice = got["choices"][0]
            self.assertEqual(choice["text"], "play jazz\n" + answer["text"])
            self.assertEqual(choice["logprobs"]["tokens"][-n:], answer["logprobs"]["tokens"])
            self.assertEqual(choice["logprobs"]["token_logprobs"][-n:], answer["logprobs"]["token_logprobs"])
            self.assertEqual(choice["logprobs"]["top_logprobs"][-n:], answer["logprobs"]["top_logprobs"])
            self.assertEqual(got["usage"]["completion_tokens"], 0)
        # As lm-eval has it, with a token more that it drops.
        more = self.echoed(ids, logprobs=2, max_tokens=1)["choices"][0]["logprobs"]
        self.assertEqual(more["token_logprobs"][:-1], choice["logprobs"]["token_logprobs"])
        offsets = more["text_offset"]
        self.assertEqual(offsets, [len("".join(more["tokens"][:i])) for i in range(len(offsets))])

    def test_long_prompts_streams_and_many_at_once(self):
        texts = [" ".join(COMMANDS[i:] + COMMANDS[:i]) for i in range(6)]
        alone = [self.echoed(text)["choices"][0]["logprobs"] for text in texts]
        self.assertGreater(min(len(chances["tokens"]) for chances in alone), 80)
        many = [choice["logprobs"] for choice in self.echoed(texts)["choices"]]
        self.assertEqual(many, alone)
        others = [lambda i=i: self.server.post(COMPLETE, complete(COMMANDS[i], temperature=3, seed=i)) for i in range(6)]
        both = at_once([*(lambda text=text: self.echoed(text)["choices"][0]["logprobs"] for text in texts), *others])
        self.assertEqual(both[:6], alone)
        tokens, text = [], ""
        for event in self.server.stream(COMPLETE, {"model": "demo", "prompt": texts[0], "echo": True, "logprobs": 1, "max_tokens": 2}):
            choice = event["choices"][0]
            text += choice["text"]
            tokens += (choice["logprobs"] or {}).get("token_logprobs", [])
        self.assertEqual((tokens[:-2], text.startswith(texts[0])), (alone[0]["token_logprobs"], True))
        self.assertEqual(self.echoed([self.ids("")[0]])["choices"][0]["logprobs"]["token_logprobs"], [None])
        error = self.server.post(COMPLETE, {"prompt": texts, "echo": True, "logprobs": 20, "max_tokens": 200, "n": 5}, want=400)["error"]
        self.assertIn("logprobs: expected at most 100000", error["message"])

    def test_texts_that_rest_are_told_once(self):
        alone = [self.echoed(command + " " + " ".join(COMMANDS[:3]))["choices"][0]["logprobs"] for command in COMMANDS]
        with Server(FOVEA, "--context", "256", "--sequences", "5", "--positions", "320") as server:
            bodies = [{"prompt": command + " " + " ".join(COMMANDS[:3]), "echo": True, "logprobs": 1, "max_tokens": 40,
                       "ignore_eos": True, "temperature": 9, "seed": i} for i, command in enumerate(COMMANDS)]
            many = at_once([lambda body=body: server.post(COMPLETE, body) for body in bodies])
        for answer, known in zip(many, alone):
            chances = answer["choices"][0]["logprobs"]["token_logprobs"]
            self.assertEqual(chances[:-40], known["token_logprobs"])


class Continuations(WithTemplates):
    TEMPLATE = ("{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content TRIM}}</{{ m.role }}>\n{% endfor %}"
                "{% if add_generation_prompt %}<assistant>{% endif %}")
    ASKED = [{"role": "user", "content": "play jazz"}]

    def test_a_last_message_goes_on(self):
        for trim, begun, left in (("", "it is ", "it is "), ("| trim ", "it is ", "it is"), ("", "so <think", "so <think")):
            server = self.serve(self.TEMPLATE.replace("TRIM", trim))
            turns = [*self.ASKED, {"role": "assistant", "content": begun}]
            short = {"model": "demo", "max_tokens": 8, "temperature": 0, "ignore_eos": True}
            prompt = "<user>play jazz</user>\n<assistant>" + left
            known = server.post(COMPLETE, {**short, "prompt": prompt})
            marked = [*self.ASKED, {"role": "assistant", "content": begun, "prefix": True}]
            for path, body in ((CHAT, {"messages": turns, "continue_final_message": True, "add_generation_prompt": False}),
                               (CHAT, {"messages": turns, "continue_final_message": True}), (CHAT, {"messages": marked}),
                               ("/v1/messages", {"messages": turns})):
                answer = server.post(path, {**short, **body})
                text = answer["choices"][0]["message"]["content"] if path == CHAT else answer["content"][0]["text"]
                self.assertEqual(text, known["choices"][0]["text"], (path, body))
            self.assertEqual(server.post("/apply-template", {"messages": turns, "continue_final_message": True})["prompt"][-len(prompt):],
                             prompt)
            whole = server.post(CHAT, {**short, "messages": turns, "add_generation_prompt": False})
            closed = server.post(COMPLETE, {**short, "prompt": f"<user>play jazz</user>\n<assistant>{left}</assistant>\n"})
            self.assertEqual((whole["choices"][0]["message"]["content"], whole["usage"]["prompt_tokens"]),
                             (closed["choices"][0]["text"], closed["usage"]["prompt_tokens"]))
            for body, words in (({"messages": self.ASKED, "continue_final_message": True}, "a text of the assistant as the last message"),
                                ({"messages": turns, "continue_final_message": True, "add_generation_prompt": True},
                                 "no add_generation_prompt beside it"),
                                ({"messages": turns, "continue_final_message": True, "tool_choice": "required",
                                  "tools": [{"type": "function", "function": {"name": "f"}}]}, "tool_choice: expected no call")):
                self.assertIn(words, server.post(CHAT, {**short, **body}, want=400)["error"]["message"])

    def test_reasoning_that_was_begun_goes_on(self):
        server = self.serve(self.TEMPLATE.replace("TRIM", ""))
        turns = [*self.ASKED, {"role": "assistant", "content": "<think>it is"}]
        body = {"model": "demo", "messages": turns, "continue_final_message": True, "regex": "x</think>y"}
        message = server.post(CHAT, body)["choices"][0]["message"]
        self.assertEqual((message["reasoning_content"], message["content"]), ("x", "y"))

    def test_documents(self):
        server = self.serve("{{ bos_token }}{{ messages[-1].content }}{% for d in documents or [] %}[{{ d.text }}]{% endfor %}")
        self.assertEqual(server.post("/apply-template", chat("x", documents=[{"text": "a"}, {"text": "b"}]))["prompt"][-7:], "x[a][b]")
        self.assertIn("documents[0]", server.post(CHAT, chat("x", documents=["a"]), want=400)["error"]["message"])
        server = self.serve("{{ bos_token }}{{ messages[-1].content }}")
        error = server.post(CHAT, chat("x", documents=[{"text": "a"}]), want=400)["error"]
        self.assertIn("documents: expected a model whose chat template has them", error["message"])

    def test_calls_have_ids_that_mistrals_templates_take(self):
        server = self.serve("{{ bos_token }}{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}"
                            "{{ raise_exception('ids have nine characters') }}{% endif %}{{ c.id }}{% endfor %}"
                            "{% if m.role == 'tool' and m.tool_call_id|length != 9 %}{{ raise_exception('results, too') }}{% endif %}"
                            "{{ m.content }}{% endfor %}{{ tools[0].function.name if tools }}{# [TOOL_CALLS]f[ARGS] #}")
        tool = {"type": "function", "function": {"name": "play", "parameters": {"type": "object", "properties": {}}}}
        seen = set()
        for stream in (False, True):
            body = chat("x", tools=[tool], tool_choice="required", n=3)
            if stream:
                deltas = [choice["delta"] for event in server.stream(CHAT, body) for choice in event["choices"]]
                calls = [call for delta in deltas for call in delta.get("tool_calls", []) if "id" in call]
            else:
                calls = [choice["message"]["tool_calls"][0] for choice in server.post(CHAT, body)["choices"]]
            self.assertEqual(len(calls), 3)
            for call in calls:
                self.assertRegex(call["id"], "^[0-9A-Za-z]{9}$")
                seen.add(call["id"])
        self.assertEqual(len(seen), 6)
        back = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [{**calls[0], "type": "function", "function": {
            "name": "play", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": calls[0]["id"], "content": "on"}]
        server.post(CHAT, {"model": "demo", "messages": back, "max_tokens": 2})
        short = server.post("/apply-template", {"model": "demo", "messages": back})["prompt"]
        self.assertIn(calls[0]["id"], short)
        back[1]["tool_calls"][0]["id"] = back[2]["tool_call_id"] = "call_of-another_server"
        self.assertRegex(server.post("/apply-template", {"model": "demo", "messages": back})["prompt"], "x[0-9A-Za-z]{9}on$")
        own = {"name": "play", "input_schema": {"type": "object"}}
        [block] = server.post("/v1/messages", {"max_tokens": 60, "tools": [own], "tool_choice": {"type": "any"}, "messages": [
            {"role": "user", "content": "x"}]})["content"]
        item = server.post("/v1/responses", {"input": "x", "tools": [{"type": "function", "name": "play"}], "tool_choice": "required"})["output"][0]
        for given in (block["id"], item["call_id"]):
            self.assertRegex(given, "^[0-9A-Za-z]{9}$")


class Tools(WithServer):
    arguments = ["--context", "256", "--body", "4M"]

    def tool(self, name, parameters):
        return {"type": "function", "function": {"name": name, "description": "word " * 8, "parameters": parameters}}

    def called(self, **fields):
        choice = self.server.post(CHAT, chat("x", max_tokens=100, **fields))["choices"][0]
        call = choice["message"]["tool_calls"][0]["function"]
        return call["name"], json.loads(call["arguments"])

    def test_a_name_of_two_tools_definitions(self):
        of = lambda words: {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "required": ["x"], "additionalProperties": False,
                            "$defs": {"X": {"enum": words}}}
        tools = [self.tool("a", of(["one"])), self.tool("b", of(["two"]))]
        seen = {self.called(tools=tools, tool_choice="required", temperature=9.0, seed=seed)[0:1] +
                tuple(self.called(tools=tools, tool_choice="required", temperature=9.0, seed=seed)[1].values()) for seed in range(12)}
        self.assertEqual(seen, {("a", "one"), ("b", "two")})

    def test_tools_of_a_megabyte(self):
        schema = lambda i: {"type": "object", "description": "word " * 1300, "properties": {
            "title": {"enum": [f"t{i}"], "description": "word " * 50}}, "required": ["title"], "additionalProperties": False}
        tools = [self.tool(f"f{i}", schema(i)) for i in range(160)]
        self.assertGreater(len(json.dumps(tools)), 1 << 20)
        for choice in ("auto", "none"):
            self.server.post(CHAT, chat("x", tools=tools, tool_choice=choice, max_tokens=2))
        name, arguments = self.called(tools=tools, tool_choice="required", temperature=5.0, seed=3)
        self.assertEqual(arguments, {"title": "t" + name[1:]})
        named = {"type": "function", "function": {"name": "f77"}}
        self.assertEqual(self.called(tools=tools, tool_choice=named), ("f77", {"title": "t77"}))

    def test_one_call_of_several(self):
        call = '"<tool_call>" "{\\"name\\": \\"a\\", \\"arguments\\": {}}" "</tool_call>"'
        body = chat("x", tools=[self.tool("a", {})], grammar=f"root ::= {call} {call}")
        for fields, n in (({}, 2), ({"parallel_tool_calls": True}, 2), ({"parallel_tool_calls": False}, 1)):
            self.assertEqual(len(self.server.post(CHAT, {**body, **fields})["choices"][0]["message"]["tool_calls"]), n)
            deltas = [event["choices"][0]["delta"] for event in self.server.stream(CHAT, {**body, **fields})]
            self.assertEqual({call["index"] for delta in deltas for call in delta.get("tool_calls", [])}, set(range(n)))

    def test_chunks_without_usage_have_none(self):
        for path, body in ((CHAT, chat("play jazz")), (COMPLETE, complete("play jazz"))):
            events = list(self.server.stream(path, {**body, "stream_options": {"include_usage": True}}))
            self.assertEqual(["usage" in event for event in events], [False] * (len(events) - 1) + [True])


class Seeds(unittest.TestCase):
    def test_a_servers_own(self):
        body = complete("sing", temperature=5.0, max_tokens=12)
        with Server(FOVEA, "--context", "256", "--seed", "random") as server:
            first = server.post(COMPLETE, body)["choices"][0]["text"]
            seed = int(server.headers["X-Fovea-Seed"])
            self.assertEqual(server.post(COMPLETE, {**body, "seed": seed})["choices"][0]["text"], first)
            texts = {server.post(COMPLETE, body)["choices"][0]["text"] for _ in range(8)}
            self.assertGreater(len(texts), 1)
            options = {"temperature": 5.0, "num_predict": 12}
            texts = {server.post("/api/generate", {"prompt": "sing", "stream": False, "options": options})["response"] for _ in range(8)}
            self.assertGreater(len(texts), 1)
        with Server(FOVEA, "--context", "256", "--seed", "7") as server:
            self.assertEqual(server.post(COMPLETE, body)["choices"], server.post(COMPLETE, {**body, "seed": 7})["choices"])

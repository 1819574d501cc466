"""Every field of docs/server.md's table: what is obeyed changes the answer, what is refused is refused by its name, what is ignored
changes nothing; run by server_test.py."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from cases import CHAT, COMPLETE, DOCUMENT, FOVEA, GOLDEN, WithServer, WithTemplates, chat, complete, run_fovea
from client import Server

ROUTES = {"C": CHAT, "T": COMPLETE, "R": "/v1/responses", "M": "/v1/messages", "a": "/api/chat", "g": "/api/generate"}
TALKING = "CRMag"
TEMPLATE = ("{{ bos_token }}{{ enable_thinking }}{{ reasoning_effort }}{{ word }}{% if documents %}{{ documents[0].text }}{% endif %}"
            "{% if tools %}{{ tools[0].function.name }}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
            "{% if add_generation_prompt %}<bot>{% endif %}")
SPECIAL = 500  # a token that is made special
WORDS = [{"role": "user", "content": "play jazz"}]
SCHEMA = {"type": "object", "properties": {"room": {"enum": ["hall", "attic"]}}, "required": ["room"],
          "additionalProperties": False}
JSON_FORM = {"type": "json_schema", "json_schema": {"schema": SCHEMA}, "schema": SCHEMA}
CALL = '"<tool_call>" "{\\"name\\": \\"play\\", \\"arguments\\": {}}" "</tool_call>"'
TOOL = {"type": "function", "name": "play", "input_schema": {}, "function": {"name": "play"}}
TOOLS = {"R": [{"type": "function", "name": "play"}], "M": [{"name": "play", "input_schema": {"type": "object"}}]}


def listed(text):
    """Of "`a`, `b` CT, `c` R": a name and a letter each."""
    pairs, names = [], []
    for name, where in re.findall(r"`([^`]+)`|\b([CTRMagPSB]+)\b", text):
        if name:
            names.append(name)
        else:
            pairs += [(one, letter) for one in names for letter in where]
            names = []
    return pairs


def table():
    """The document's lists: names with the letters of the requests that have them, of what is obeyed, refused and ignored."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = re.search(r"<!-- fields: .*?-->\n(.*)<!-- fields end -->", file.read(), re.S)[1]
    obeyed, refused, ignored = (part.split("; of members")[0].replace("\n  ", " ") for part in re.split(r"\n(?=Refused|Ignored)", text))
    rows = [pair for names in re.findall(r"^- (.*?): ", obeyed, re.M) for pair in listed(names)]
    return rows, listed(refused.split(": ", 1)[1]), listed(ignored.split(": ", 1)[1])


OBEYED, REFUSED, IGNORED = table()
GREEDY = {"temperature": 0}
LONG = {"max_tokens": None, "max_output_tokens": None, "max_completion_tokens": None, "num_predict": None}
WITHOUT = {"max_tokens": 40, "max_output_tokens": 40, "num_predict": 40}
# A field's value that changes the answer, and what else the request says, with the field and without it.
EXAMPLES = {
    "system": ("be kind", {}), "instructions": ("be kind", {}), "raw": (True, {}), "messages": ([*WORDS, *WORDS], {}),
    "prompt": ("sing and dance\n", {}), "input": ("sing and dance", {}), "temperature": (0, {}), "top_k": (1, {}),
    "top_p": (0.01, {}), "min_p": (0.99, {}), "seed": (77, {}), "repetition_penalty": (50, GREEDY),
    "repeat_penalty": (50, {"temperature": 0, "ignore_eos": True}), "frequency_penalty": (100, {"temperature": 0, "ignore_eos": True}),
    "presence_penalty": (100, {"temperature": 0, "ignore_eos": True}), "dry_multiplier": (50, {"temperature": 0, "repeat_penalty": 1, "dry_allowed_length": 1, "ignore_eos": True}),
    "dry_base": (100, {"temperature": 0, "repeat_penalty": 1, "dry_multiplier": 1, "dry_allowed_length": 1, "ignore_eos": True}),
    "dry_allowed_length": (64, {"temperature": 0, "repeat_penalty": 1, "dry_multiplier": 50, "ignore_eos": True}), "top_n_sigma": (0.3, {}), "typical_p": (0.1, {}),
    "xtc_probability": (1, {"xtc_threshold": 0.01}), "xtc_threshold": (0.001, {"xtc_probability": 1}), "mirostat": (2, {}),
    "mirostat_tau": (0.5, {"mirostat": 2}), "mirostat_eta": (1, {"mirostat": 2}), "min_tokens": (0, GREEDY),
    "ignore_eos": (True, GREEDY), "repeat_last_n": (1, {"temperature": 0, "repeat_penalty": 50, "ignore_eos": True}),
    "logit_bias": (None, GREEDY), "allowed_token_ids": (None, GREEDY), "bad_words": (None, GREEDY), "n_predict": (3, LONG),
    "max_tokens": (3, LONG), "max_completion_tokens": (3, {}), "max_output_tokens": (3, {}), "num_predict": (3, {}),
    "stop": ("do", GREEDY), "stop_sequences": (["do"], GREEDY), "stop_token_ids": (None, GREEDY),
    "include_stop_str_in_output": (True, {"temperature": 0, "stop": "do", "stop_sequences": None}), "n": (2, {}), "echo": (True, {}),
    "logprobs": (1, {}), "top_logprobs": (3, {"logprobs": True}), "skip_special_tokens": (False, {"temperature": 0, "max_tokens": 4}),
    "response_format": (JSON_FORM, {}), "text": ({"format": JSON_FORM}, {}), "format": (SCHEMA, {}), "output_format": (JSON_FORM, {}),
    "output_config": ({"format": JSON_FORM}, {}), "json_schema": (SCHEMA, {}), "grammar": ('root ::= "x"', {}), "regex": ("x", {}),
    "guided_json": (SCHEMA, {}), "guided_grammar": ('root ::= "x"', {}), "ebnf": ('root ::= "x"', {}), "guided_regex": ("x", {}), "guided_choice": (["x"], {}),
    "structured_outputs": ({"choice": ["x"]}, {}), "json": (SCHEMA, {}), "choice": (["x"], {}), "disable_any_whitespace": (True, {}), "tools": ([TOOL], {}),
    "tool_choice": ("required", {"tools": [TOOL]}), "parallel_tool_calls": (False, {"tools": [TOOL], "grammar": f"root ::= {CALL} {CALL}", "max_tokens": 200, "max_output_tokens": 200}),
    "add_generation_prompt": (False, {}), "continue_final_message": (True, {"messages": [*WORDS, {"role": "assistant", "content": "so"}]}),
    "chat_template_kwargs": ({"word": "now"}, {}), "enable_thinking": (False, {}), "documents": ([{"text": "it rains"}], {}),
    "reasoning_format": ("none", {"regex": "<think>ab</think>c"}), "reasoning_effort": ("low", {}), "reasoning": ({"effort": "low"}, {}),
    "thinking": ({"type": "enabled"}, {}), "think": ("low", {}), "add_special_tokens": (None, {}), "truncate_prompt_tokens": (2, {}),
}
# Fields that tests of their own are about.
ELSEWHERE = {"model", "include", "store", "previous_response_id", "suffix", "context_management", "id", "tokens", "best_of",
             "stream", "stream_options", "from", "to", "options"}


class Fields(WithTemplates):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.model = cls.convert(TEMPLATE, cls.scratch.name, SPECIAL)
        cls.server = Server(FOVEA, "demo=" + cls.model, "--context", "256")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.scratch.cleanup()

    def body(self, letter, fields):
        base = {"model": "demo", "seed": 5, "temperature": 5.0, "min_tokens": 12}
        base |= {"C": {"messages": WORDS, "max_tokens": 40}, "T": {"prompt": "play jazz\n", "max_tokens": 40},
                 "R": {"input": "play jazz", "max_output_tokens": 40}, "M": {"messages": WORDS, "max_tokens": 40},
                 "a": {"messages": WORDS}, "g": {"prompt": "play jazz"}}[letter]
        if letter in "ag":
            options = {name: base.pop(name) for name in ("seed", "temperature", "min_tokens")}
            base |= {"stream": False, "options": {**options, "num_predict": 40}}
        return base | fields

    def answer(self, path, body, want=200):
        """What of an answer should not change: all but ids, times and what was computed before."""
        status, _, answer = self.server.request("POST", path, body)
        self.assertEqual(status, want, (path, body, answer))
        text = json.dumps({key: of for key, of in json.loads(answer).items() if key not in ("user", "metadata")})
        text = re.sub(r'"(id|call_id|created|created_at|\w+_duration|cached_tokens|cache_\w+_tokens|input_tokens)": ("[^"]*"|\d+)', "", text)
        return text if want == 200 else json.loads(answer)

    def pair(self, name, letter):
        """A route, and bodies without a field and with it."""
        value, beside = EXAMPLES[name]
        route = {"P": "g", "S": "C"}.get(letter, letter)
        first = self.first(route)
        value = {"logit_bias": {str(first): -100}, "allowed_token_ids": [first], "stop_token_ids": [first],
                 "bad_words": [self.server.post("/detokenize", {"tokens": [first]})["content"]],
                 "add_special_tokens": route != "T"}.get(name, value)
        if name == "min_tokens" and letter == "T":
            value = 30
        if name == "max_tokens" and letter == "M":
            beside = {}
        if name == "logprobs" and letter == "C":
            value = True
        if name == "tool_choice" and letter == "M":
            value = {"type": "any"}
        beside = {**beside, **({"tools": TOOLS[letter]} if "tools" in beside and letter in TOOLS else {})}
        if name == "tools":
            value = TOOLS.get(letter, value)
        if name == "continue_final_message" and letter == "R":
            beside = {"input": beside["messages"]}
        if name == "skip_special_tokens":
            beside = {**beside, "allowed_token_ids": [SPECIAL]}
        lengths = {"R": "max_output_tokens", "M": "max_tokens"}
        beside = {key: of for key, of in beside.items() if key == lengths.get(letter, "max_tokens") or key not in WITHOUT}
        if letter == "M" and name == "n_predict":
            beside = {}
        if letter == "P":
            known = {key for key, at in OBEYED if at == "P"}
            options = self.body("g", {})["options"] | {key: of for key, of in beside.items() if key in known}
            if "ignore_eos" in beside:
                options["min_tokens"] = 1 << 20
            without = self.body("g", {"options": options})
            return ROUTES["g"], without, {**without, "options": {**options, name: value}}
        if letter == "S":
            without = self.body("C", {})
            form = {"json": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 9}} if name == "disable_any_whitespace" else {}
            without["temperature"] = 50
            return ROUTES["C"], {**without, "structured_outputs": form}, {**without, "structured_outputs": {**form, name: value}}
        without = self.body(letter, beside)
        return ROUTES[letter], without, {**without, name: value}

    def first(self, letter):
        """The first token of a greedy answer."""
        body = self.body("C", {"temperature": 0, "logprobs": True, "max_tokens": 1}) if letter != "T" else self.body(
            "T", {"temperature": 0, "logprobs": 0, "max_tokens": 1})
        choice = self.server.post(ROUTES["T" if letter == "T" else "C"], body)["choices"][0]["logprobs"]
        text = choice["tokens"][0] if letter == "T" else choice["content"][0]["token"]
        return self.server.post("/tokenize", {"content": text})["tokens"][-1]

    def test_every_field_that_is_obeyed_has_an_example(self):
        self.assertEqual({name for name, _ in OBEYED}, set(EXAMPLES) | ELSEWHERE)

    def test_what_is_obeyed_changes_the_answer(self):
        for name, letter in OBEYED:
            if name in ELSEWHERE or letter == "B":
                continue
            with self.subTest(field=name, where=letter):
                path, without, given = self.pair(name, letter)
                before = self.answer(path, without)
                self.assertNotEqual(self.answer(path, given), before, given)
                self.assertEqual(self.answer(path, without), before)

    def test_what_is_refused_is_refused_by_its_name(self):
        for name, letter in REFUSED:
            if letter in "B":
                continue
            with self.subTest(field=name, where=letter):
                value = {"strange": [1]}
                route = {"P": "g", "S": "C"}.get(letter, letter)
                inner = {"P": "options", "S": "structured_outputs"}.get(letter)
                body = self.body(route, {inner: {name: value}} if inner else {name: value})
                error = self.answer(ROUTES[route], body, 400)["error"]
                message = error if isinstance(error, str) else error["message"]
                self.assertTrue(message.startswith((inner + "." if inner else "") + name + ": expected none"), message)

    def test_what_is_ignored_changes_nothing(self):
        known = {}
        for name, letter in IGNORED:
            if letter in "B":
                continue
            with self.subTest(field=name, where=letter):
                route = {"P": "g", "S": "C"}.get(letter, letter)
                body = self.body(route, {})
                if route not in known:
                    known[route] = self.answer(ROUTES[route], body)
                value = {"include_usage": False}
                inner = {"P": "options", "S": "structured_outputs"}.get(letter)
                given = {**body, inner: {**body.get(inner, {}), name: value}} if inner else {**body, name: value}
                self.assertEqual(self.answer(ROUTES[route], given), known[route])
                self.assertNotIn("X-Fovea-Ignored", self.server.request("POST", ROUTES[route], given)[1])

    def test_what_is_not_known(self):
        for letter in ROUTES:
            body = self.body(letter, {})
            status, headers, _ = self.server.request("POST", ROUTES[letter], {**body, "zzzzzz": 1, "qqqq\r\nX: y": [], "null": None})
            self.assertEqual((status, headers.get("X-Fovea-Ignored")), (200, "zzzzzz, qqqq??X??y"))
            self.answer(ROUTES[letter], {**body, **{f"zz{i}zzzz": 1 for i in range(17)}}, 400)
        for letter, name, words in (("C", "temprature", "got one that looks like temperature"), ("C", "num_predict", "only other requests"),
                                    ("a", "temperature", "only other requests"), ("R", "max_tokens", "only other requests"),
                                    ("T", "messages", "only other requests"), ("M", "max_output_tokens", "only other requests")):
            error = self.answer(ROUTES[letter], self.body(letter, {name: 1}), 400)["error"]
            message = error if isinstance(error, str) else error["message"]
            self.assertTrue(message.startswith(name + ": expected"), message)
            self.assertIn(words, message)
        error = self.answer(ROUTES["g"], self.body("g", {"options": {"max_tokens": 3}}), 400)["error"]
        self.assertIn("options.max_tokens: expected none", error)

    def test_lines_of_a_batch(self):
        lines, same, names = [], [], []
        for name, letter in OBEYED:
            if letter != "B" or name in ELSEWHERE or name in ("prompt", "messages"):
                continue
            route = "C" if (name, "C") in OBEYED else "T"
            _, without, given = self.pair(name, route)
            drop = ("model", "stream")
            for body in (without, given):
                lines.append({key: of for key, of in body.items() if key not in drop and of is not None})
            names.append(name)
        ignored = {name: "x" for name, letter in IGNORED if letter == "B"}
        same.append({**lines[0], **ignored})
        with tempfile.TemporaryDirectory() as scratch:
            def run(some, want=0):
                path = os.path.join(scratch, "in.jsonl")
                with open(path, "w", encoding="utf-8") as file:
                    file.write("".join(json.dumps(line) + "\n" for line in some))
                ran = subprocess.run([FOVEA, "run", self.model, "--batch", path], capture_output=True, text=True)
                self.assertEqual(ran.returncode, want, ran.stderr)
                return [json.loads(line) for line in ran.stdout.splitlines()] if want == 0 else ran.stderr
            answers = [[answer[key] for key in ("text", "n_prompt_tokens", "n_tokens", "finish")] for answer in run(lines + same)]
            self.assertEqual(answers[-1], answers[0])
            for i, name in enumerate(names):
                with self.subTest(field=name):
                    self.assertNotEqual(answers[2 * i], answers[2 * i + 1], lines[2 * i + 1])
            for name, letter in REFUSED:
                if letter == "B" and ((name, "C") in REFUSED or (name, "T") in REFUSED):
                    line = {"messages": WORDS} if (name, "C") in REFUSED else {"prompt": "x"}
                    self.assertIn(name + ": expected none", run([{**line, name: {"strange": [1]}}], 1))
            self.assertIn("continue_final_message: expected none", run([{"prompt": "x", "continue_final_message": True}], 1))


class Choices(WithServer):
    """What the fields of fields.py's table do, where more than a change can be said."""

    def text(self, **fields):
        return self.server.post(COMPLETE, complete("play jazz", temperature=0, **fields))["choices"][0]

    def ids(self, text):
        return self.server.post("/tokenize", {"content": text})["tokens"]

    def test_tokens_that_end_an_answer(self):
        whole = self.text(logprobs=0)
        tokens = whole["logprobs"]["tokens"]
        at = next(i for i in range(2, len(tokens)) if tokens[i] not in tokens[:i])
        choice = self.text(stop_token_ids=self.ids(tokens[at])[-1:])
        self.assertEqual((choice["text"], choice["finish_reason"]), ("".join(tokens[:at]), "stop"))
        for stop in ("what", ["zz", "what"]):
            self.assertEqual(self.text(stop=stop, include_stop_str_in_output=True)["text"],
                             whole["text"][:whole["text"].index("what") + 4])
        self.assertIn("stop_token_ids: expected ids below", self.server.post(
            COMPLETE, complete("x", stop_token_ids=[1 << 30]), want=400)["error"]["message"])

    def test_tokens_that_an_answer_may_have(self):
        some = self.ids("abc")
        choice = self.text(allowed_token_ids=some, max_tokens=12, logprobs=0)
        self.assertEqual(len(choice["logprobs"]["tokens"]), 12)
        self.assertLessEqual({self.ids(text)[-1] for text in choice["logprobs"]["tokens"]}, set(some))
        for fields, words in (({"allowed_token_ids": []}, "1 token id or more"), ({"allowed_token_ids": [3], "regex": "a"}, "no form beside it"),
                              ({"allowed_token_ids": 3}, "an array of token ids"), ({"bad_words": [3]}, "bad_words")):
            self.assertIn(words, self.server.post(COMPLETE, complete("x", **fields), want=400)["error"]["message"])

    def test_words_that_an_answer_has_not(self):
        whole = self.text(logprobs=0)
        tokens = whole["logprobs"]["tokens"]
        for n in (1, 2, 3):
            for i in range(len(tokens) - n):
                word = "".join(tokens[i:i + n])
                if self.ids(word) != [self.ids(token)[-1] for token in tokens[i:i + n]]:
                    continue
                other = self.text(bad_words=["zz", word], logprobs=0)["logprobs"]["tokens"]
                at = next(j for j in range(len(tokens) - n + 1) if tokens[j:j + n] == tokens[i:i + n])
                self.assertEqual(other[:at + n - 1], tokens[:at + n - 1])  # up to the word's last token
                self.assertNotIn(tokens[i:i + n], [other[j:j + n] for j in range(len(other))])
        # A form holds where it leaves nothing else.
        self.assertEqual(self.text(bad_words=["x"], regex="x")["text"], "x")

    def test_what_stands_beside_other_fields(self):
        self.assertEqual(len(self.server.post(COMPLETE, complete("sing", n=2, best_of=2))["choices"]), 2)
        clear = {"type": "clear_thinking_20251015", "keep": "all"}
        self.server.post("/v1/messages", {**chat("x"), "max_tokens": 2, "context_management": {"edits": [clear]}})
        for path, body, words in ((COMPLETE, complete("x", best_of=3), "best_of: expected none"),
                                  (CHAT, chat("x", top_logprobs=2), "top_logprobs: expected logprobs: true beside it"),
                                  (CHAT, chat("x", truncate_prompt_tokens=0), "truncate_prompt_tokens: expected -1 or a number from 1"),
                                  (CHAT, chat("x", prompt_logprobs=1), "prompt_logprobs: expected none"),
                                  ("/v1/responses", {"input": "x", "text": {"verbosity": "low"}}, "text.verbosity: expected none"),
                                  ("/v1/messages", {**chat("x"), "max_tokens": 2, "context_management": {"edits": [{**clear, "keep": 1}]}},
                                   "context_management.edits[0].keep")):
            self.assertIn(words, self.server.post(path, body, want=400)["error"]["message"])

    def test_functions_are_named_by_their_successors(self):
        for fields in ({"functions": [{"name": "f"}]}, {"function_call": "auto"}):
            name = next(iter(fields))
            self.assertIn(name + ": expected none", self.server.post(CHAT, chat("x", **fields), want=400)["error"]["message"])
        old = [{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, {"role": "user", "content": "x"}]
        self.assertIn("messages[0].function_call", self.server.post(CHAT, {"model": "demo", "messages": old}, want=400)["error"]["message"])

    def test_a_lark_grammar_is_told_so(self):
        for grammar in ('start: "a" | "b"\n', '%llguidance {}\nstart: "a"', '// words\nstart : WORD\nWORD: /a+/\n',
                        '%import common.WORD\n?start.2: WORD', 'TEXT: /a+/'):
            for fields in ({"grammar": grammar}, {"guided_grammar": grammar}, {"structured_outputs": {"grammar": grammar}}):
                error = self.server.post(CHAT, chat("x", **fields), want=400)["error"]
                self.assertIn("expected a GBNF grammar (root ::= ...), a regex or a JSON schema, got a Lark grammar", error["message"])


class OtherFields(unittest.TestCase):
    """What requests that are for no text have for fields: each name is obeyed, refused or told."""
    VECTORS, RANKS, SPEECH = "vectors", "ranks", "speech"

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        models = []
        for name, source in ((cls.VECTORS, "encoders/bert_sentence"), (cls.RANKS, "encoders/bert_sequenceclassification"),
                             (cls.SPEECH, "speech/whisper_talking")):
            models.append(os.path.join(cls.scratch.name, name + ".fovea"))
            run_fovea("convert", os.path.join(GOLDEN, source), "-o", models[-1])
        cls.server = Server(FOVEA, "demo=", *models)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.scratch.cleanup()

    def requests(self):
        texts = {"model": self.VECTORS, "input": "the lamp"}
        ranks = {"model": self.RANKS, "query": "who?", "documents": ["she", "it rains"]}
        return {"/v1/embeddings": texts, "/embedding": texts, "/api/embed": texts, "/api/embeddings": {"model": self.VECTORS, "prompt": "x"},
                "/embed": {"model": self.VECTORS, "inputs": "the lamp"}, "/v1/rerank": ranks, "/v2/rerank": ranks,
                "/rerank": {"model": self.RANKS, "query": "who?", "texts": ["she"]}, "/predict": {"model": self.RANKS, "inputs": "she"},
                "/tokenize": {"model": "demo", "content": "x"}, "/detokenize": {"model": "demo", "tokens": [300]},
                "/v1/attention": {"model": "demo", "prompt": "x"}, "/api/show": {"model": "demo"}}

    def test_no_name_is_ignored_in_silence(self):
        for path, body in self.requests().items():
            with self.subTest(path):
                self.server.post(path, body)
                self.assertNotIn("X-Fovea-Ignored", self.server.headers)
                self.server.post(path, {**body, "quite_another": 1, "user": "me", "normalise_it": None})
                self.assertEqual(self.server.headers["X-Fovea-Ignored"], "quite_another")
                error = str(self.server.post(path, {**body, "modle": "x"}, want=400)["error"])
                self.assertIn("looks like model", error)
                error = str(self.server.post(path, {**body, "truncate_prompt_tokens": 3}, want=400)["error"])
                self.assertIn("truncate_prompt_tokens: expected none, for it is not supported", error)
                error = str(self.server.post(path, {**body, "temperature": 3}, want=400)["error"])
                self.assertIn("temperature: expected none", error)

    def test_what_another_server_obeys_is_refused(self):
        asked = self.requests()
        for path, fields in (("/v1/embeddings", {"input_type": "query"}), ("/v1/embeddings", {"normalize": "yes"}),
                             ("/embedding", {"embd_normalize": 1}), ("/embedding", {"encoding_format": "base64"}),
                             ("/v1/rerank", {"max_tokens_per_doc": 3}), ("/v1/rerank", {"raw_scores": True}),
                             ("/rerank", {"top_n": 1}), ("/rerank", {"truncate": False}), ("/predict", {"truncate": False})):
            with self.subTest((path, fields)):
                self.assertIn(next(iter(fields)), str(self.server.post(path, {**asked[path], **fields}, want=400)["error"]))

    def test_a_document_s_members(self):
        self.server.post("/v1/rerank", {"model": self.RANKS, "query": "who?", "documents": [{"text": "she", "title": "x"}, "it rains"]})
        self.assertEqual(self.server.headers["X-Fovea-Ignored"], "documents[0].title")

    def test_vectors_are_divided_by_their_length_where_that_is_asked_for(self):
        body = self.requests()["/v1/embeddings"]
        plain, divided = (self.server.post("/v1/embeddings", {**body, **more})["data"][0]["embedding"] for more in ({}, {"normalize": True}))
        length = sum(x * x for x in plain) ** 0.5
        for x, y in zip(plain, divided):
            self.assertAlmostEqual(x / length, y, places=5)

    def test_a_recordings_fields(self):
        path, kind = "/v1/audio/transcriptions", {"Content-Type": "multipart/form-data; boundary=b"}
        with open(os.path.join(GOLDEN, "recordings/three.wav"), "rb") as file:
            sound = file.read()

        def form(**fields):
            parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
                     for name, value in {"model": self.SPEECH, **fields}.items()]
            return b"".join(parts) + b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + sound + b"\r\n--b--\r\n"

        status, headers, _ = self.server.request("POST", path, form(quite_another="1"), kind)
        self.assertEqual((status, headers.get("X-Fovea-Ignored")), (200, "quite_another"))
        for name in ("langage", "hotwords", "top_p"):
            status, _, answer = self.server.request("POST", path, form(**{name: "x"}), kind)
            self.assertEqual(status, 400, answer)
            self.assertIn(name.encode(), answer)

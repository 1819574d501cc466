"""Reasoning in answers: a field of its own for OpenAI's clients and Ollama's, whole and in pieces; run by server_test.py."""
import json

from cases import CHAT, COMPLETE, MARK_TOKEN, WithServer, WithTemplates, chat, complete

THOUGHT = r"<think>[a-f]{4}</think>\n\n[0-9]{2}"  # whatever the model would have said


def deltas(server, body):
    """What a stream's pieces add up to."""
    parts = {"content": "", "reasoning_content": ""}
    for event in server.stream(CHAT, {**body, "stream": True}):
        for name, text in (event["choices"][0]["delta"].items() if event["choices"] else ()):
            if name in parts:
                parts[name] += text
    return parts


class Reasoning(WithServer):
    def test_it_is_a_field_of_its_own(self):
        message = self.server.post(CHAT, chat("play jazz", regex=THOUGHT))["choices"][0]["message"]
        self.assertRegex(message["reasoning_content"], "^[a-f]{4}$")
        self.assertRegex(message["content"], "^[0-9]{2}$")
        self.assertEqual(deltas(self.server, chat("play jazz", regex=THOUGHT)),
                         {name: message[name] for name in ("content", "reasoning_content")})
        whole = self.server.post(CHAT, chat("play jazz", regex=THOUGHT, reasoning_format="none"))["choices"][0]["message"]
        self.assertEqual(whole["content"], f"<think>{message['reasoning_content']}</think>\n\n{message['content']}")
        self.assertNotIn("reasoning_content", whole)

    def test_its_tokens_are_counted(self):
        for tail, n in (("", 4), ("</think>\n\n[0-9]{2}", 4)):
            whole = self.server.post(CHAT, chat("play jazz", regex="<think>[a-f]{4}" + tail, logprobs=True))
            tokens = [token["token"] for token in whole["choices"][0]["logprobs"]["content"]]
            usage = whole["usage"]
            counted = usage["completion_tokens_details"]["reasoning_tokens"]
            thought = "".join(tokens[:counted])  # a token may end behind it
            self.assertTrue(thought.startswith("<think>") and len(thought) >= len("<think>") + n, tokens)
            self.assertLess(len("".join(tokens[:counted - 1])), len("<think>") + n + len("</think>"))
            body = {"model": "demo", "input": "play jazz", "regex": "<think>[a-f]{4}" + tail}
            answer = self.server.post("/v1/responses", body)["usage"]
            self.assertEqual((answer["output_tokens"], answer["output_tokens_details"]["reasoning_tokens"]),
                             (usage["completion_tokens"], counted))
        plain = self.server.post(CHAT, chat("play jazz", temperature=0))["usage"]
        self.assertEqual(plain["completion_tokens_details"], {"reasoning_tokens": 0})
        self.assertNotIn("completion_tokens_details", self.server.post(COMPLETE, complete("play jazz"))["usage"])

    def test_marks_are_text_where_no_reasoning_begins(self):
        for text in ("a<think>b</think>", "</think>", "<thin", "  <b>", "<think"):
            form = text.replace("<", "[<]")
            body = chat("play jazz", regex=form)
            message = self.server.post(CHAT, body)["choices"][0]["message"]
            self.assertEqual((message["content"], message.get("reasoning_content")), (text, None))
            self.assertEqual(deltas(self.server, body)["content"], text)
        # Reasoning that never ends, and a completion, which has no parts.
        message = self.server.post(CHAT, chat("play jazz", regex="<think>ab</thi"))["choices"][0]["message"]
        self.assertEqual((message["content"], message["reasoning_content"]), ("", "ab</thi"))
        text = self.server.post(COMPLETE, complete("play jazz", regex=THOUGHT))["choices"][0]["text"]
        self.assertRegex(text, "^" + THOUGHT + "$")

    def test_what_cannot_be_asked_for(self):
        for fields, words in (({"reasoning_format": "xml"}, "reasoning_format: expected none, auto or deepseek, got xml"),
                              ({"reasoning_effort": "huge"}, "reasoning_effort: expected none, minimal")):
            self.assertIn(words, self.server.post(CHAT, chat("x", **fields), want=400)["error"]["message"])
        refused = {"model": "demo", "prompt": "x", "think": "much"}
        self.assertIn("think: expected true, false", self.server.post("/api/generate", refused, want=400)["error"])


class ReasoningTemplates(WithTemplates):
    TEMPLATE = ("{{ bos_token }}{{ messages[-1].content }}\n{% if enable_thinking is not defined or enable_thinking %}<think>\n"
                "{% endif %}{{ reasoning_effort }}")

    def test_a_prompt_may_open_it(self):
        server = self.serve(self.TEMPLATE)
        short = {"max_tokens": 6, "temperature": 0}
        plain = server.post(COMPLETE, complete("play jazz\n<think>", **short))["choices"][0]["text"]
        body = chat("play jazz", **short)
        message = server.post(CHAT, body)["choices"][0]["message"]
        self.assertEqual((message["content"], message["reasoning_content"]), ("", plain))
        self.assertEqual(deltas(server, body), {"content": "", "reasoning_content": plain})
        ollama = {"model": "demo", "messages": body["messages"], "options": {"temperature": 0, "num_predict": 6,
                  "repeat_penalty": 1}}
        answer = server.post("/api/chat", {**ollama, "stream": False})["message"]
        self.assertEqual((answer["content"], answer["thinking"]), ("", plain))
        status, _, raw = server.request("POST", "/api/chat", ollama)
        pieces = [json.loads(line)["message"] for line in raw.splitlines()]
        self.assertEqual((status, "".join(piece.get("thinking", "") for piece in pieces)), (200, plain))
        asked = {"model": "demo", "prompt": "play jazz", "stream": False, "options": ollama["options"]}
        answer = server.post("/api/generate", asked)
        self.assertEqual((answer["response"], answer["thinking"]), ("", plain))

    def test_a_form_stands_behind_it(self):
        """Noise that ends its reasoning with a token of its own, mostly within 200 tokens."""
        form = {"regex": "[0-9]{3}", "temperature": 50.0}
        noise = {**form, "logit_bias": {str(MARK_TOKEN): 100}, "n": 16, "max_tokens": 200}
        opens, knows = self.TEMPLATE, "{{ bos_token }}{{ messages[-1].content }}\n{# <think> #}"
        for template, fields in ((opens, {}), (knows, {"enable_thinking": True})):
            server = self.serve(template, mark="</think>")
            whole = server.post(CHAT, chat("play jazz", **noise, **fields))["choices"]
            ended = [choice["message"] for choice in whole if choice["finish_reason"] == "stop"]
            self.assertGreater(len(ended), 4)
            self.assertTrue(any(message.get("reasoning_content") for message in ended))
            for message in ended:
                self.assertRegex(message["content"], "^[0-9]{3}$")
                self.assertNotIn("</think>", message.get("reasoning_content", ""))
            one = {**noise, "n": 1, "seed": next(i for i, choice in enumerate(whole) if choice["message"] is ended[-1])}
            self.assertEqual(deltas(server, chat("play jazz", **one, **fields)),
                             {"content": ended[-1]["content"], "reasoning_content": ended[-1].get("reasoning_content", "")})
            for none in ({"reasoning_format": "none"}, {"enable_thinking": False}):
                message = server.post(CHAT, chat("play jazz", **form, **none))["choices"][0]["message"]
                self.assertRegex(message["content"], "^[0-9]{3}$")
                self.assertNotIn("reasoning_content", message)

    def test_whether_and_how_much(self):
        server = self.serve(self.TEMPLATE)
        short = {"max_tokens": 6, "temperature": 0}

        def after(prompt):
            return server.post(COMPLETE, {"model": "demo", "prompt": prompt, **short})["choices"][0]["text"]

        for fields, prompt in (({"chat_template_kwargs": {"enable_thinking": False}}, "play jazz\n"),
                               ({"reasoning_effort": "low"}, "play jazz\n<think>\nlow"),
                               ({"reasoning_effort": "none"}, "play jazz\nnone")):
            message = server.post(CHAT, chat("play jazz", **short, **fields))["choices"][0]["message"]
            self.assertEqual((message["content"], message.get("reasoning_content")), (after(prompt), None))
        asked = {"model": "demo", "prompt": "play jazz", "stream": False,
                 "options": {"temperature": 0, "num_predict": 6, "repeat_penalty": 1}}
        for think, prompt in ((False, "play jazz\n"), ("low", "play jazz\n<think>\nlow")):
            answer = server.post("/api/generate", {**asked, "think": think})
            self.assertEqual((answer["response"], answer.get("thinking")), (after(prompt), None))


class Dialects(WithTemplates):
    """Calls and reasoning as a family's template shows them."""

    SHOWN = "{{ bos_token }}{{ messages[-1].content }}{{ tools[0].function.name }}"  # else a text would list the tools
    PARAMETERS = {"type": "object", "properties": {"what": {"enum": ["jazz", "rock"]}}, "required": ["what"],
                  "additionalProperties": False}
    TOOLS = [{"type": "function", "function": {"name": "play", "parameters": PARAMETERS}},
             {"type": "function", "function": {"name": "stop", "parameters": PARAMETERS}}]

    def asked(self, server, **fields):
        """The message, and what a stream's pieces add up to, which is the same."""
        body = chat("play jazz", tools=self.TOOLS, **fields)
        choice = server.post(CHAT, body)["choices"][0]
        message, pieces = choice["message"], [event["choices"][0]["delta"] for event in server.stream(CHAT, body)]
        calls = []
        for call in (call for piece in pieces for call in piece.get("tool_calls", [])):
            if "id" in call:
                self.assertEqual(call["index"], len(calls))
                calls.append([call["function"]["name"], ""])
            calls[call["index"]][1] += call["function"]["arguments"]
        self.assertEqual("".join(piece.get("content") or "" for piece in pieces), message["content"] or "")
        calls = [(name, json.loads(arguments)) for name, arguments in calls]
        whole = [call["function"] for call in message.get("tool_calls", [])]
        self.assertEqual(calls, [(call["name"], json.loads(call["arguments"])) for call in whole])
        self.assertEqual(choice["finish_reason"], "tool_calls" if calls else "stop")
        return message, calls

    def test_channels_are_parted(self):
        server = self.serve("{{ bos_token }}{{ messages[-1].content }}<|start|>assistant{# <|channel|> <|message|> #}")
        begun = '"<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>'
        message, calls = self.asked(server, grammar=f'root ::= {begun}final<|message|>B"')
        self.assertEqual((message["content"], message["reasoning_content"], calls), ("B", "A", []))
        call = begun + 'commentary to=functions.play <|constrain|>json<|message|>{\\"what\\": \\"jazz\\"}"'
        message, calls = self.asked(server, grammar=f"root ::= {call}")
        self.assertEqual((message["content"], message["reasoning_content"], calls), (None, "A", [("play", {"what": "jazz"})]))

    def test_calls_side_by_side(self):
        server = self.serve(self.SHOWN + "{# [TOOL_CALLS]f[ARGS] #}")
        text = "".join(f'[TOOL_CALLS]{name}[ARGS]{{\\"what\\": \\"{what}\\"}}'
                       for name, what in (("play", "jazz"), ("stop", "rock")))
        message, calls = self.asked(server, grammar=f'root ::= "so{text}"')
        self.assertEqual((message["content"], calls), ("so", [("play", {"what": "jazz"}), ("stop", {"what": "rock"})]))

    def test_a_call_that_must_be_is_begun_in_the_prompt(self):
        for shown in ("<tool_call>", "<tool_call><function=", "[TOOL_CALLS]", "[TOOL_CALLS][ARGS]", "<|channel|><|message|>",
                      "<|tool_call_start|>", "<|tool_call>", "ipython parameters", "<|tool_call|>"):
            server = self.serve(self.SHOWN + "<think>{# " + shown + " #}")
            for choice in ("required", {"type": "function", "function": {"name": "stop"}}):
                message, calls = self.asked(server, tool_choice=choice, temperature=2.0, max_tokens=200)
                self.assertEqual((message["content"], len(calls)), (None, 1))
                self.assertIn(calls[0][0], ("play", "stop") if choice == "required" else ("stop",))
                self.assertIn(calls[0][1]["what"], ("jazz", "rock"))


class ToldTools(WithTemplates):
    """Tools of a model whose template knows none, through every API."""

    POSITIONS = 1024  # for the text that lists them
    TEMPLATE = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    TOOL = {"type": "function", "function": {"name": "play", "parameters": {"type": "object", "properties": {
        "what": {"enum": ["jazz", "rock"]}}, "required": ["what"], "additionalProperties": False}}}
    CALL = 'root ::= "<tool_call>\\n{\\"name\\": \\"play\\", \\"arguments\\": {\\"what\\": \\"jazz\\"}}\\n</tool_call>"'

    def test_a_text_lists_them_and_answers_call_them(self):
        server = self.serve(self.TEMPLATE)
        tools, asked = [self.TOOL], {"messages": [{"role": "user", "content": "play jazz"}]}
        prompt = server.post("/apply-template", {"model": "demo", **asked, "tools": tools})["prompt"]
        self.assertIn('<system>You may call functions.', prompt)
        self.assertIn('<tools>\n{"type": "function", "function": {"name": "play", ', prompt)
        self.assertTrue(prompt.endswith("<user>play jazz\n"))
        n_prompt = len(server.post("/tokenize", {"model": "demo", "content": prompt})["tokens"])
        own = {"name": "play", "input_schema": self.TOOL["function"]["parameters"]}
        flat = {"type": "function", **self.TOOL["function"]}
        forms = ({"grammar": self.CALL}, {"tool_choice": "required", "temperature": 3.0, "seed": 5})
        for form in forms:
            answer = server.post(CHAT, {"model": "demo", **asked, "tools": tools, "max_tokens": 99, **form})
            [call] = answer["choices"][0]["message"]["tool_calls"]
            self.assertEqual(call["function"]["name"], "play")
            arguments = json.loads(call["function"]["arguments"])
            self.assertIn(arguments, ({"what": "jazz"}, {"what": "rock"}))
            if "grammar" in form:
                self.assertEqual(answer["usage"]["prompt_tokens"], n_prompt)
            item = server.post("/v1/responses", {"input": "play jazz", "tools": [flat], "max_output_tokens": 99, **form})
            self.assertEqual([(one["type"], json.loads(one["arguments"])) for one in item["output"]], [("function_call", arguments)])
            if "tool_choice" in form:
                form = {**form, "tool_choice": {"type": "any"}}
            block = server.post("/v1/messages", {**asked, "tools": [own], "max_tokens": 99, **form})["content"]
            self.assertEqual([(one["type"], one["input"]) for one in block], [("tool_use", arguments)])
        counted = server.post("/v1/messages/count_tokens", {**asked, "tools": [own]})
        self.assertGreater(counted["input_tokens"], n_prompt - 20)
        ollama = server.post("/api/chat", {**asked, "model": "demo", "tools": tools, "stream": False, "options": {"num_predict": 1}})
        self.assertEqual(ollama["prompt_eval_count"], n_prompt)
        self.assertIn("tools", server.post("/api/show", {"model": "demo"})["capabilities"])

    def test_results_are_texts(self):
        server = self.serve(self.TEMPLATE)
        call = {"id": "abcdefghi", "type": "function", "function": {"name": "play", "arguments": '{"what": "jazz"}'}}
        back = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "abcdefghi", "content": "on"}]
        self.assertEqual(server.post("/apply-template", {"model": "demo", "messages": back})["prompt"],
                         '<|endoftext|><user>x\n<assistant><tool_call>\n{"name": "play", "arguments": {"what": "jazz"}}\n</tool_call>\n'
                         "<user><tool_response>\non\n</tool_response>\n")

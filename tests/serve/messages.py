"""Anthropic's messages: the texts of chats, as blocks and typed events; run by server_test.py."""
import json

from cases import CHAT, COMMANDS, COMPLETE, FOVEA, WithServer, WithTemplates, chat
from client import Server

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
SCHEMA = {"type": "object", "properties": {"what": {"enum": ["jazz", "rock"]}}, "required": ["what"],
          "additionalProperties": False}
TOOL = {"name": "play", "description": "Plays music.", "input_schema": SCHEMA}


class Messages(WithServer):
    def ask(self, text, want=200, **fields):
        body = {"model": "demo", "max_tokens": 60, "messages": [{"role": "user", "content": text}], **fields}
        return self.server.post(MESSAGES, body, want=want)

    def events(self, text, **fields):
        """Of a stream, which is checked: each event has its own name, and blocks begin and end one after the other."""
        body = {"model": "demo", "max_tokens": 60, "messages": [{"role": "user", "content": text}], "stream": True, **fields}
        status, headers, answer = self.server.request("POST", MESSAGES, body)
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events, is_open, n_blocks = [], False, 0
        for block in answer.decode().strip().split("\n\n"):
            if block.startswith(":"):  # a comment, of a busy machine
                continue
            name, data = block.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            kind = events[-1]["type"]
            self.assertEqual(name, "event: " + kind)
            if kind.startswith("content_block"):
                self.assertEqual((is_open, events[-1]["index"]), (kind != "content_block_start", n_blocks))
                is_open, n_blocks = kind != "content_block_stop", n_blocks + (kind == "content_block_stop")
        self.assertFalse(is_open)
        return events

    def joined(self, events):
        """The content that a stream's events add up to."""
        content = []
        for event in events:
            if event["type"] == "content_block_start":
                content.append({**event["content_block"], "json": ""})
            elif event["type"] == "content_block_delta":
                delta = event["delta"]
                kind = delta["type"].removesuffix("_delta")
                if kind == "input_json":
                    content[-1]["json"] += delta["partial_json"]
                else:
                    content[-1][kind] += delta[kind]
        for block in content:
            text = block.pop("json")
            if block["type"] == "tool_use":
                block["input"] = json.loads(text)
        return content

    def test_texts_are_those_of_chats(self):
        for command in COMMANDS:
            known = self.server.post(CHAT, chat(command, temperature=0))
            for given in (command, [{"type": "text", "text": command, "cache_control": {"type": "ephemeral"}}]):
                message = self.ask(given, temperature=0)
                self.assertEqual(message["content"], [{"type": "text", "text": known["choices"][0]["message"]["content"]}])
                self.assertEqual([message[name] for name in ("type", "role", "model", "stop_reason", "stop_sequence")],
                                 ["message", "assistant", "demo", "end_turn", None])
                usage = message["usage"]
                self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], known["usage"]["prompt_tokens"])
                self.assertEqual(usage["output_tokens"], known["usage"]["completion_tokens"])
                count = {"model": "demo", "messages": [{"role": "user", "content": given}]}
                self.assertEqual(self.server.post(COUNT, count), {"input_tokens": known["usage"]["prompt_tokens"]})
            events = self.events(command, temperature=0)
            self.assertEqual(self.joined(events), message["content"])
            self.assertEqual((events[0]["type"], events[-2]["type"], events[-1]["type"]),
                             ("message_start", "message_delta", "message_stop"))
            self.assertEqual(events[0]["message"]["content"], [])
            self.assertEqual(events[-2]["delta"], {"stop_reason": "end_turn", "stop_sequence": None})
            self.assertEqual(events[-2]["usage"]["output_tokens"], usage["output_tokens"])

    def test_why_an_answer_ends(self):
        message = self.ask(COMMANDS[0], temperature=0, max_tokens=3)
        self.assertEqual((message["stop_reason"], message["usage"]["output_tokens"]), ("max_tokens", 3))
        message = self.ask(COMMANDS[0], temperature=0, stop_sequences=["nowhere", "device"])
        self.assertEqual((message["stop_reason"], message["stop_sequence"], message["content"][0]["text"]),
                         ("stop_sequence", "device", '{"do":"on","'))
        ends = self.events(COMMANDS[0], temperature=0, stop_sequences=["device"])[-2]["delta"]
        self.assertEqual(ends, {"stop_reason": "stop_sequence", "stop_sequence": "device"})

    def test_uses_of_tools(self):
        for choice in ({"type": "any"}, {"type": "tool", "name": "play"}):
            fields = {"tools": [TOOL], "tool_choice": choice, "temperature": 2.0, "seed": 3, "max_tokens": 200}
            message = self.ask("x", **fields)
            [block] = message["content"]
            self.assertEqual((message["stop_reason"], block["type"], block["name"]), ("tool_use", "tool_use", "play"))
            self.assertIn(block["input"]["what"], ["jazz", "rock"])
            events = self.events("x", **fields)
            [streamed] = self.joined(events)
            self.assertEqual((streamed["name"], streamed["input"]), ("play", block["input"]))
            self.assertGreater(sum(event["type"] == "content_block_delta" for event in events), 1)
        tools = self.ask(COMMANDS[0], tools=[TOOL], tool_choice={"type": "none"}, temperature=0)
        self.assertEqual(tools["content"], self.ask(COMMANDS[0], temperature=0)["content"])

    def test_thinking_is_a_block(self):
        grammar = 'root ::= "<think>" "is it?" "</think>" "It is."'
        content = self.ask("x", grammar=grammar)["content"]
        self.assertEqual(content, [{"type": "thinking", "thinking": "is it?", "signature": ""},
                                   {"type": "text", "text": "It is."}])
        self.assertEqual(self.joined(self.events("x", grammar=grammar)), content)

    def test_forms(self):
        for fields in ({"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
                       {"output_format": {"type": "json_schema", "schema": SCHEMA}}):
            for seed in range(3):
                message = self.ask("x", temperature=3.0, seed=seed, **fields)
                self.assertIn(json.loads(message["content"][0]["text"])["what"], ["jazz", "rock"])

    def test_what_is_refused(self):
        web = {"type": "web_search_20250305", "name": "web_search"}
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
        for fields, words in (({"max_tokens": None}, "max_tokens: expected a whole number"),
                              ({"max_tokens": 0}, "max_tokens: expected 1 to"), ({"tools": [web]}, "tools[0].type: expected custom"),
                              ({"tools": [{"name": "x"}]}, "tools[0].input_schema: expected a JSON schema"),
                              ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "x"}}, "expected one of tools, got x"),
                              ({"tool_choice": {"type": "any"}}, "tool_choice: expected tools"),
                              ({"thinking": {"type": "much"}}, "thinking.type: expected adaptive, enabled or disabled"),
                              ({"messages": []}, "messages: expected"), ({"messages": [{"role": "system", "content": "x"}]}, "role"),
                              ({"messages": [{"role": "user", "content": [image]}]}, "messages[0].content[0].type: expected text"),
                              ({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [
                                  {"type": "tool_use", "id": "c", "name": "play"}]}]}, "a text of the assistant as the last message"),
                              ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management.edits[0].type"),
                              ({"temprature": 1}, "looks like temperature")):
            error = self.ask("x", 400, **fields)
            self.assertEqual((error["type"], error["error"]["type"]), ("error", "invalid_request_error"))
            self.assertIn(words, error["error"]["message"])
        error = self.ask("x", 404, model="none")
        self.assertEqual(error["error"]["type"], "not_found_error")


class MessageTemplates(WithTemplates):
    def test_blocks_are_a_conversation(self):
        server = self.serve("{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.reasoning_content or '' }}|{{ m.content }}"
                            "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.what }}]{% endfor %}"
                            "{{ m.tool_call_id or '' }}\n{% endfor %}{{ enable_thinking }}")
        turns = [{"role": "user", "content": "hi"},
                 {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""},
                                                   {"type": "text", "text": "so"},
                                                   {"type": "tool_use", "id": "c1", "name": "play", "input": {"what": "jazz"}}]},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "on"},
                                              {"type": "tool_result", "tool_use_id": "c2",
                                               "content": [{"type": "text", "text": "off"}], "is_error": True}]},
                 {"role": "assistant", "content": "done"}, {"role": "user", "content": [{"type": "text", "text": "thanks"}]}]
        text = ("<system>|be kind\n<user>|hi\n<assistant>hm|so[play jazz]\n<tool>|onc1\n<tool>|offc2\n<assistant>|done\n"
                "<user>|thanks\nfalse")
        known = server.post(COMPLETE, {"model": "demo", "prompt": text, "temperature": 0, "max_tokens": 12})
        body = {"model": "demo", "system": [{"type": "text", "text": "be kind"}], "messages": turns,
                "thinking": {"type": "disabled"}}
        got = server.post(MESSAGES, {**body, "temperature": 0, "max_tokens": 12})
        self.assertEqual("".join(block["text"] for block in got["content"]), known["choices"][0]["text"])
        self.assertEqual(server.post(COUNT, body)["input_tokens"], known["usage"]["prompt_tokens"])


class MessageKeys(WithServer):
    def test_keys(self):
        server = Server(FOVEA, "--api-key", "secret")
        try:
            body = {"model": "demo", "max_tokens": 2, "messages": [{"role": "user", "content": "x"}]}
            self.assertEqual(server.request("POST", MESSAGES, body, {"x-api-key": "secret"})[0], 200)
            status, _, answer = server.request("POST", MESSAGES, body, {"x-api-key": "other"})
            self.assertEqual((status, json.loads(answer)["error"]["type"]), (401, "authentication_error"))
        finally:
            server.stop()

"""Responses as OpenAI's clients ask for them: the texts of chats, as items and typed events; run by server_test.py."""
import json
import re

from cases import CHAT, COMMANDS, COMPLETE, FOVEA, WithServer, WithTemplates, chat
from client import Server, at_once, http_bytes, wait_until

RESPONSES = "/v1/responses"
SCHEMA = {"type": "object", "properties": {"what": {"enum": ["jazz", "rock"]}}, "required": ["what"],
          "additionalProperties": False}
TOOL = {"type": "function", "name": "play", "description": "Plays music.", "parameters": SCHEMA, "strict": True}


def texts(response):
    """The text of a response's messages."""
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


class WithResponses(WithServer):
    def ask(self, given, want=200, **fields):
        return self.server.post(RESPONSES, {"model": "demo", "input": given, **fields}, want=want)

    def events(self, given, **fields):
        """Of a stream, which is checked: each event has its own name, and they are numbered."""
        body = {"model": "demo", "input": given, "stream": True, **fields}
        status, headers, answer = self.server.request("POST", RESPONSES, body)
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events = []
        for block in answer.decode().strip().split("\n\n"):
            if block.startswith(":"):  # a comment, of a busy machine
                continue
            name, data = block.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            self.assertEqual(name, "event: " + events[-1]["type"])
        self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
        return events

    def kept(self, response):
        """A response without what differs from one request to the next."""
        text = json.dumps({**response, "created_at": 0})
        return text.replace(response["id"].removeprefix("resp_"), "ID")


class Responses(WithResponses):
    def test_texts_are_those_of_chats(self):
        for command in COMMANDS:
            known = self.server.post(CHAT, chat(command, temperature=0))
            said = [{"role": "user", "content": command}]
            parts = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": command}]}]
            for given in (command, said, parts):
                response = self.ask(given, temperature=0)
                self.assertEqual(texts(response), known["choices"][0]["message"]["content"])
                self.assertEqual((response["object"], response["status"], response["model"]), ("response", "completed", "demo"))
                item = response["output"][0]
                self.assertEqual((len(response["output"]), item["role"], item["status"]), (1, "assistant", "completed"))
                usage = response["usage"]
                self.assertEqual((usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]), tuple(
                    known["usage"][name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")))
        for seed in range(4):
            known = self.server.post(CHAT, chat("sing", temperature=2.0, top_p=0.9, seed=seed, max_tokens=20))
            response = self.ask("sing", temperature=2.0, top_p=0.9, seed=seed, max_output_tokens=20)
            self.assertEqual(texts(response), known["choices"][0]["message"]["content"])
            self.assertEqual((response["temperature"], response["top_p"], response["max_output_tokens"]), (2.0, 0.9, 20))
        hashed = {"X-Fovea-Logits-Hash": "yes"}
        _, headers, _ = self.server.request("POST", RESPONSES, {"input": "play jazz"}, hashed)
        _, known, _ = self.server.request("POST", CHAT, chat("play jazz"), hashed)
        self.assertEqual(headers["X-Fovea-Logits-Hash"], known["X-Fovea-Logits-Hash"])

    def test_an_answer_that_is_cut_says_so(self):
        for stream in (False, True):
            fields = {"temperature": 0, "max_output_tokens": 3}
            response = self.events("play jazz", **fields)[-1]["response"] if stream else self.ask("play jazz", **fields)
            self.assertEqual((response["status"], response["incomplete_details"], response["output"][0]["status"]),
                             ("incomplete", {"reason": "max_output_tokens"}, "incomplete"))
            self.assertEqual(response["usage"]["output_tokens"], 3)

    def test_a_streams_events(self):
        whole = self.ask("play jazz", temperature=0)
        events = self.events("play jazz", temperature=0)
        deltas = [event for event in events if event["type"] == "response.output_text.delta"]
        self.assertEqual("".join(event["delta"] for event in deltas), texts(whole))
        self.assertGreater(len(deltas), 3)
        self.assertEqual([event["type"] for event in events if event not in deltas], [
            "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
            "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"])
        self.assertEqual(events[-4]["text"], texts(whole))
        self.assertEqual({(event["output_index"], event["content_index"], event["item_id"]) for event in deltas},
                         {(0, 0, events[2]["item"]["id"])})
        shared = ("usage",)  # what was computed before counts as cached
        ended = {**events[-1]["response"], **{name: whole[name] for name in shared}}
        self.assertEqual(self.kept(ended), self.kept(whole))
        self.assertEqual(events[0]["response"]["output"], [])

    def test_calls_of_functions(self):
        for choice in ("required", {"type": "function", "name": "play"}):
            fields = {"tools": [TOOL], "tool_choice": choice, "temperature": 2.0, "seed": 3, "max_output_tokens": 200}
            response = self.ask("x", **fields)
            item = response["output"][0]
            self.assertEqual((len(response["output"]), item["type"], item["name"]), (1, "function_call", "play"))
            self.assertIn(json.loads(item["arguments"])["what"], ["jazz", "rock"])
            self.assertEqual((response["tools"], response["tool_choice"]), ([TOOL], choice))
            events = self.events("x", **fields)
            deltas = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
            self.assertGreater(len(deltas), 1)
            others = [event for event in events if event["type"] != "response.function_call_arguments.delta"]
            self.assertEqual([event["type"].removeprefix("response.") for event in others], [
                "created", "in_progress", "output_item.added", "function_call_arguments.done", "output_item.done", "completed"])
            self.assertEqual(others[2]["item"]["arguments"], "")
            self.assertEqual((others[3]["arguments"], others[4]["item"]["arguments"]), ("".join(deltas),) * 2)
            self.assertEqual(json.loads("".join(deltas)), json.loads(item["arguments"]))
        marked = ('root ::= "so <tool_call>" "{\\"name\\": \\"play\\", \\"arguments\\": {\\"what\\": \\"jazz\\"}}" '
                  '"</tool_call>" " done"')
        output = self.ask("x", tools=[TOOL], grammar=marked)["output"]
        self.assertEqual([item["type"] for item in output], ["message", "function_call", "message"])
        self.assertEqual((output[0]["content"][0]["text"], output[1]["arguments"], output[2]["content"][0]["text"]),
                         ("so ", '{"what":"jazz"}', " done"))
        self.assertEqual(len({item["id"] for item in output}), 3)
        call = marked.split('"so ')[1].split(' " done"')[0]
        twice = 'root ::= "so ' + call + ' " and ' + call
        output = self.ask("x", tools=[TOOL], grammar=twice)["output"]
        self.assertEqual([item["type"] for item in output], ["message", "function_call"] * 2)

    def test_reasoning_is_an_item(self):
        grammar = 'root ::= "<think>" "is it?" "</think>" "It is."'
        output = self.ask("x", grammar=grammar)["output"]
        self.assertEqual([item["type"] for item in output], ["reasoning", "message"])
        self.assertEqual(output[0]["content"], [{"type": "reasoning_text", "text": "is it?"}])
        self.assertEqual(texts({"output": output}), "It is.")
        events = self.events("x", grammar=grammar)
        thought = "".join(e["delta"] for e in events if e["type"] == "response.reasoning_text.delta")
        said = [(e["delta"], e["output_index"]) for e in events if e["type"] == "response.output_text.delta"]
        self.assertEqual((thought, "".join(text for text, _ in said), {i for _, i in said}), ("is it?", "It is.", {1}))

    def test_forms(self):
        form = {"format": {"type": "json_schema", "name": "music", "schema": SCHEMA, "strict": True}}
        for seed in range(5):
            response = self.ask("x", text=form, temperature=3.0, seed=seed)
            self.assertIn(json.loads(texts(response))["what"], ["jazz", "rock"])
        json.loads(texts(self.ask("play jazz", text={"format": {"type": "json_object"}})))
        self.assertIn(texts(self.ask("x", regex="ab|cd", temperature=5.0, seed=2)), ["ab", "cd"])
        self.assertEqual(response["text"], form)
        self.assertIn("got another beside it", self.ask("x", 400, text=form, regex="a")["error"]["message"])

    def test_what_is_refused_and_what_is_taken(self):
        web = {"type": "web_search"}
        for fields, words in (({"previous_response_id": "resp_1"}, "previous_response_id: expected a stored response, got resp_1"),
                              ({"previous_response_id": 3}, "previous_response_id: expected a string"),
                              ({"conversation": "c"}, "conversation: expected none"), ({"background": True}, "background"),
                              ({"truncation": "auto"}, "truncation: expected none"), ({"prompt": {"id": "p"}}, "prompt: expected none"),
                              ({"tools": [web]}, "tools[0].type: expected function, got web_search"),
                              ({"tools": [TOOL], "tool_choice": web}, "tool_choice.type: expected function, got web_search"),
                              ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "x"}}, "expected one of tools, got x"),
                              ({"tools": [{"type": "function"}]}, "name"), ({"include": ["message.output_text.logprobs"]}, "include"),
                              ({"top_logprobs": 3}, "top_logprobs"), ({"n": 2}, "n: expected none"), ({"store": 1}, "store"),
                              ({"max_output_tokens": 0}, "max_output_tokens: expected 1 to"), ({"temperature": -1}, "temperature"),
                              ({"text": {"format": {"type": "xml"}}}, "text.format.type: expected text, json_object or json_schema"),
                              ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema: expected a JSON schema"),
                              ({"reasoning": {"effort": "huge"}}, "reasoning.effort: expected none, minimal"),
                              ({"instructions": 3}, "instructions: expected a string"), ({"input": []}, "input: expected"),
                              ({"input": None}, "input: expected"), ({"input": [3]}, "input[0]: expected an object"),
                              ({"input": [{"role": "user"}]}, "input[0].content: expected"),
                              ({"input": [{"content": "x"}]}, "input[0].role: expected"),
                              ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].id: expected an item of a stored response, got"),
                              ({"input": [{"type": "function_call", "call_id": "1"}]}, "input[0].name: expected"),
                              ({"input": [{"type": "function_call_output", "call_id": "1"}]}, "input[0].output: expected"),
                              ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "expected text")):
            error = self.ask("x", 400, **fields)["error"]
            self.assertIn(words, error["message"])
            self.assertNotIn("\n", error["message"])
        for fields in ({"store": True}, {"store": False}, {"include": ["reasoning.encrypted_content"]}, {"metadata": {"a": "b"}},
                       {"parallel_tool_calls": False}, {"truncation": "disabled"}, {"user": "u", "service_tier": "auto"},
                       {"previous_response_id": None, "tools": [], "reasoning": {"effort": None}}):
            response = self.ask("play jazz", max_output_tokens=2, **fields)
            self.assertEqual(response["store"], fields.get("store", True))
            self.assertEqual(response["metadata"], fields.get("metadata", {}))
        self.assertEqual(self.server.request("GET", RESPONSES)[0], 405)
        self.assertEqual(self.server.request("GET", RESPONSES + "/resp_1")[0], 404)

    def test_a_response_is_kept_and_deleted(self):
        for response in (self.ask("play jazz", temperature=0), self.events("play jazz", temperature=0)[-1]["response"]):
            self.assertRegex(response["id"], "^resp_[0-9a-f]{32}$")
            place = RESPONSES + "/" + response["id"]
            self.assertEqual(json.loads(self.server.get(place)), response)
            self.assertEqual(self.server.request("POST", place, {})[0], 405)
            status, _, answer = self.server.request("DELETE", place)
            self.assertEqual((status, json.loads(answer)), (200, {"id": response["id"], "object": "response", "deleted": True}))
            for method in ("GET", "DELETE"):
                self.assertEqual(self.server.request(method, place)[0], 404)
            self.ask("x", 400, previous_response_id=response["id"])
            self.assertEqual(self.server.request("GET", place + "/input_items")[0], 404)
        hidden = self.ask("play jazz", store=False)
        self.assertEqual(self.server.request("GET", RESPONSES + "/" + hidden["id"])[0], 404)
        self.assertEqual(self.server.request("DELETE", RESPONSES)[0], 405)
        self.assertEqual(self.server.request("DELETE", "/v1/models")[0], 405)

    def page(self, response, query=""):
        return json.loads(self.server.get(RESPONSES + "/" + response["id"] + "/input_items" + query))

    def test_what_a_response_was_given(self):
        said = {"role": "user", "content": "play jazz", "junk": [{}]}
        first = self.ask([said, {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "play", "arguments": "{}"},
                          {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "on"}]},
                          {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                          {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"text": "yes"}]}])
        hexes = first["id"].removeprefix("resp_")
        page = self.page(first, "?order=asc")
        items = page["data"]
        done = {"status": "completed"}
        self.assertEqual(items, [
            {"id": f"msg_{hexes}_i0", "type": "message", **done, "role": "user", "content": [{"type": "input_text", "text": "play jazz"}]},
            {"id": "fc_1", "type": "function_call", **done, "call_id": "c", "name": "play", "arguments": "{}"},
            {"id": f"fco_{hexes}_i2", "type": "function_call_output", **done, "call_id": "c", "output": [{"type": "input_text", "text": "on"}]},
            {"id": f"rs_{hexes}_i3", "type": "reasoning", **done, "summary": [{"type": "summary_text", "text": "hm"}], "content": []},
            {"id": f"msg_{hexes}_i4", "type": "message", **done, "role": "assistant",
             "content": [{"type": "refusal", "refusal": "no"}, {"type": "output_text", "text": "yes", "annotations": []}]}])
        self.assertEqual({**page, "data": []}, {"object": "list", "data": [], "first_id": items[0]["id"], "last_id": items[-1]["id"],
                                                "has_more": False})
        # Those of the response that it goes on from come before, and an item may be named again.
        second = self.ask("sing", previous_response_id=first["id"], instructions="be kind")
        known = [*items, *first["output"], {"id": f"msg_{second['id'][5:]}_i6", "type": "message", **done, "role": "user",
                                            "content": [{"type": "input_text", "text": "sing"}]}]
        without = lambda item: {**item, "content": [{**part, "logprobs": 0} for part in item.get("content", [])]}
        self.assertEqual(list(map(without, self.page(second)["data"])), list(map(without, reversed(known))))
        again = [{"type": "item_reference", "id": items[0]["id"]}]
        self.assertEqual(self.ask(again, temperature=0)["output"][0]["content"], self.ask("play jazz", temperature=0)["output"][0]["content"])
        # By pages.
        ids = [item["id"] for item in known]
        got, query = [], "?limit=3&order=asc"
        while True:
            page = self.page(second, query)
            got += [item["id"] for item in page["data"]]
            self.assertLessEqual(len(page["data"]), 3)
            if not page["has_more"]:
                break
            query = "?limit=3&order=asc&after=" + page["last_id"].replace("_", "%5F")
        self.assertEqual(got, ids)
        self.assertEqual(self.page(second, "?after=" + ids[0]),
                         {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False})
        place = RESPONSES + "/" + second["id"]
        for query, words in (("?limit=0", "limit: expected 1 to 100, got 0"), ("?limit=x", "limit: expected a whole number"),
                             ("?order=up", "order: expected desc or asc, got up"), ("?after=msg_1", "after: expected the id of an item"),
                             ("?before=msg_1", "before: expected none"), ("?" + "&".join(map(str, range(99))), "query: expected at most 64")):
            status, _, answer = self.server.request("GET", place + "/input_items" + query)
            self.assertEqual(status, 400)
            self.assertIn(words, json.loads(answer)["error"]["message"])
        self.assertEqual(self.server.request("DELETE", place + "/input_items")[0], 405)
        self.assertEqual(self.server.request("GET", place + "?stream=true")[0], 400)
        self.assertEqual(json.loads(self.server.get(place + "?stream=false&include%5B%5D=x")), second)
        self.assertEqual(self.server.request("GET", place + "/input_items/x")[0], 404)

    def test_tokens_are_counted_before(self):
        first = self.ask("play jazz")
        for given, fields in (("sing", {}), ("sing", {"previous_response_id": first["id"], "instructions": "be kind"}),
                              ([{"role": "user", "content": "sing"}], {"tools": [TOOL], "tool_choice": "auto"})):
            counted = self.server.post(RESPONSES + "/input_tokens", {"model": "demo", "input": given, **fields})
            answer = self.ask(given, max_output_tokens=1, **fields)
            self.assertEqual(counted, {"object": "response.input_tokens", "input_tokens": answer["usage"]["input_tokens"]})
        error = self.server.post(RESPONSES + "/input_tokens", {"input": "x", "previous_response_id": "resp_1"}, want=400)["error"]
        self.assertEqual(error["code"], "previous_response_not_found")

    def test_a_stream_that_is_left_is_not_kept(self):
        body = {"model": "demo", "input": "sing", "temperature": 9.0, "stream": True, "ignore_eos": True}
        connection = self.server.raw(http_bytes(RESPONSES, body))
        begun = b""
        while b"response.in_progress" not in begun:
            begun += connection.recv(65536)
        place = RESPONSES + "/" + re.search(rb"resp_[0-9a-f]{32}", begun)[0].decode()
        self.assertEqual(self.server.request("GET", place)[0], 404)
        connection.close()
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running") == 0))
        self.assertEqual(self.server.request("GET", place)[0], 404)

    def test_many_at_once_are_those_alone(self):
        calls = [lambda c=c, s=s: self.kept(self.ask(c, temperature=1.5, seed=s, max_output_tokens=30))
                 for c in COMMANDS for s in (1, 2)]
        cut = lambda text: json.dumps({**json.loads(text), "usage": None})
        self.assertEqual(list(map(cut, at_once(calls))), [cut(call()) for call in calls])


class StoredResponses(WithServer):
    arguments = ["--context", "256", "--stored", "40K", "--api-key", "one", "--api-key", "two"]

    def asked(self, key, given, want=200, **fields):
        body = {"model": "demo", "input": given, "max_output_tokens": 2, **fields}
        return self.server.post(RESPONSES, body, {"Authorization": "Bearer " + key}, want)

    def kept(self, key, response):
        headers = {"Authorization": "Bearer " + key}
        return self.server.request("GET", RESPONSES + "/" + response["id"], None, headers)[0] == 200

    def test_each_user_has_its_own_within_a_bound(self):
        first = self.asked("one", "play jazz")
        self.assertTrue(self.kept("one", first))
        self.assertFalse(self.kept("two", first))
        place = RESPONSES + "/" + first["id"] + "/input_items"
        for key, status in (("one", 200), ("two", 404)):
            self.assertEqual(self.server.request("GET", place, None, {"Authorization": "Bearer " + key})[0], status)
        error = self.asked("two", "x", 400, previous_response_id=first["id"])["error"]
        self.assertEqual((error["param"], error["code"]), ("previous_response_id", "previous_response_not_found"))
        many = [self.asked("two", "play jazz") for _ in range(60)]
        kept = [self.kept("two", one) for one in many]
        self.assertEqual(kept, sorted(kept))  # the oldest of who has most are gone
        self.assertTrue(0 < sum(kept) < 60)
        self.assertTrue(self.kept("one", first))
        long = self.asked("one", "x", metadata={"a": "b" * 45000})  # more than all may be
        self.assertFalse(self.kept("one", long))
        named = [[{"role": "user", "content": "x", "id": "i" * n}] for n in (9, 45000)]
        self.assertEqual([self.asked("one", given)["store"] for given in named], [True, False])

    def test_it_counts_in_what_is_printed(self):
        with Server(FOVEA, "--context", "256", "--stored", "1M") as other:
            self.assertEqual(other.figures["http_bytes_at_most"] - self.server.figures["http_bytes_at_most"], (1 << 20) - 40960)


class ResponseTemplates(WithTemplates):
    def test_a_response_goes_on_from_another(self):
        server = self.serve("{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.reasoning_content or '' }}|{{ m.content }}"
                            "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.what }}]{% endfor %}"
                            "{{ m.tool_call_id or '' }}\n{% endfor %}{{ tools[0].function.name if tools }}")
        def ask(given, **fields):
            return server.post(RESPONSES, {"model": "demo", "input": given, "temperature": 0, "max_output_tokens": 40, **fields})
        marked = ('root ::= "<think>hm</think>so <tool_call>" "{\\"name\\": \\"play\\", \\"arguments\\": {\\"what\\": \\"jazz\\"}}" '
                  '"</tool_call>"')
        first = ask("play jazz", instructions="be kind", tools=[TOOL], grammar=marked, max_output_tokens=150)
        call = first["output"][-1]
        self.assertEqual([item["type"] for item in first["output"]], ["reasoning", "message", "function_call"])
        second = ask([{"type": "function_call_output", "call_id": call["call_id"], "output": "on"}],
                     previous_response_id=first["id"], instructions="be brief")
        self.assertEqual(second["previous_response_id"], first["id"])
        third = ask("thanks", previous_response_id=second["id"])
        text = f"<user>|play jazz\n<assistant>hm|so [play jazz]\n<tool>|on{call['call_id']}\n"
        for response, prompt in ((second, "<system>|be brief\n" + text),
                                 (third, text + f"<assistant>|{texts(second)}\n<user>|thanks\n")):
            known = server.post(COMPLETE, {"model": "demo", "prompt": prompt, "temperature": 0, "max_tokens": 40})
            self.assertEqual(response["usage"]["input_tokens"], known["usage"]["prompt_tokens"])
            self.assertEqual(texts(response), known["choices"][0]["text"])
        items = [{"role": "user", "content": "play jazz"}, *({"type": "item_reference", "id": item["id"]} for item in first["output"]),
                 {"type": "function_call_output", "call_id": call["call_id"], "output": "on"}]
        self.assertEqual(texts(ask(items, instructions="be brief")), texts(second))
        # What is deleted is gone by itself: those that went on from it have all of it.
        server.request("DELETE", RESPONSES + "/" + first["id"])
        again = ask("thanks", previous_response_id=second["id"])
        self.assertEqual(texts(again), texts(third))

    def test_items_are_a_conversation(self):
        server = self.serve("{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.reasoning_content or '' }}|{{ m.content }}"
                            "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.what }}]{% endfor %}"
                            "{{ m.tool_call_id or '' }}\n{% endfor %}{{ reasoning_effort }}")
        items = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hi"},
                 {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
                 {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                  "content": [{"type": "output_text", "text": "so", "annotations": []}]},
                 {"type": "function_call", "call_id": "c1", "name": "play", "arguments": '{"what": "jazz"}'},
                 {"type": "function_call", "call_id": "c2", "name": "play", "arguments": '{"what": "rock"}'},
                 {"type": "function_call_output", "call_id": "c1", "output": "on"},
                 {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "off"}]},
                 {"type": "reasoning", "summary": []}, {"role": "assistant", "content": "done"}, {"role": "user", "content": "thanks"}]
        text = ("<system>|be kind\n<system>|be brief\n<user>|hi\n<assistant>hm|so[play jazz][play rock]\n<tool>|onc1\n<tool>|offc2\n"
                "<assistant>|done\n<user>|thanks\nlow")
        known = server.post(COMPLETE, {"model": "demo", "prompt": text, "temperature": 0, "max_tokens": 12})
        got = server.post(RESPONSES, {"model": "demo", "instructions": "be kind", "input": items, "temperature": 0,
                                      "max_output_tokens": 12, "reasoning": {"effort": "low"}})
        self.assertEqual(got["usage"]["input_tokens"], known["usage"]["prompt_tokens"])
        self.assertEqual(texts(got), known["choices"][0]["text"])

"""What clients of OpenAI, llama.cpp's server and Ollama send and expect, beside the usual calls; run by server_test.py."""
import json

from cases import CHAT, COMPLETE, FOVEA, WithServer, chat, complete
from client import Server, http_bytes, read_all

SCHEMA = {"type": "object", "properties": {"room": {"enum": ["hall", "attic"]}}, "required": ["room"],
          "additionalProperties": False}


class Strangers(WithServer):
    def content(self, body):
        return self.server.post(CHAT, body)["choices"][0]["message"]["content"]

    def test_a_schema_as_llama_cpp_has_it(self):
        for fields in ({"response_format": {"type": "json_object", "schema": SCHEMA}}, {"json_schema": SCHEMA}):
            self.assertIn(json.loads(self.content(chat("play jazz", **fields)))["room"], ["hall", "attic"])
        for fields, name in (({"json_schema": SCHEMA, "grammar": 'root ::= "a"'}, "grammar"),
                             ({"response_format": {"type": "json_object"}, "regex": "a"}, "regex"),
                             ({"grammar": 'root ::= "a"', "regex": "a"}, "regex")):
            error = self.server.post(CHAT, chat("x", **fields), want=400)["error"]
            self.assertEqual((error["param"], "one form of the answer" in error["message"]), (name, True))

    def test_forms_as_vllm_has_them(self):
        rooms = ["hall", 'at"tic', "b\\c\nd", "é"]
        for body, texts in (({"guided_json": SCHEMA}, None), ({"guided_json": json.dumps(SCHEMA)}, None),
                            ({"structured_outputs": {"json": SCHEMA}}, None), ({"guided_choice": rooms}, rooms),
                            ({"structured_outputs": {"choice": rooms}}, rooms), ({"guided_regex": "ab|cd"}, ["ab", "cd"]),
                            ({"structured_outputs": {"regex": "ab|cd"}}, ["ab", "cd"]),
                            ({"guided_grammar": 'root ::= "x" | "y"'}, ["x", "y"]),
                            ({"structured_outputs": {"grammar": 'root ::= "x" | "y"'}}, ["x", "y"]),
                            ({"ebnf": 'root ::= "x" | "y"'}, ["x", "y"])):  # SGLang's
            seen = set()
            for seed in range(8):
                text = self.content(chat("play", temperature=9.0, seed=seed, **body))
                seen.add(text)
                if texts:
                    self.assertIn(text, texts)
                else:
                    self.assertIn(json.loads(text)["room"], ["hall", "attic"])
                self.assertEqual(self.server.post(COMPLETE, complete("play", n=2, **body))["usage"]["prompt_tokens"] > 0, True)
            self.assertGreater(len(seen), 1, body)
        for fields, words in (({"guided_choice": []}, "guided_choice: expected an array of 1 to 1024 texts"),
                              ({"guided_choice": [3]}, "guided_choice: expected texts"),
                              ({"guided_json": "no"}, "guided_json: expected a JSON schema"),
                              ({"guided_json": {"type": 3}}, "guided_json: "), ({"guided_regex": "("}, "guided_regex: "),
                              ({"guided_grammar": "root ::= ("}, "guided_grammar: "),
                              ({"guided_whitespace_pattern": " "}, "guided_whitespace_pattern: expected none"),
                              ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
                              ({"structured_outputs": {"regex": "("}}, "structured_outputs.regex: "),
                              ({"guided_regex": "a", "regex": "a"}, "guided_regex: expected one form")):
            message = self.server.post(CHAT, chat("x", **fields), want=400)["error"]["message"]
            self.assertTrue(message.startswith(words) and "\n" not in message, message)

    def test_minus_1_tokens_are_as_many_as_there_is_room_for(self):
        for path, body in ((CHAT, chat("play jazz")), (CHAT, chat("play jazz", max_completion_tokens=None)),
                           (COMPLETE, complete("play jazz"))):
            without = {**body, "max_tokens": 200}
            self.assertEqual(self.server.post(path, {**body, "max_tokens": -1})["choices"],
                             self.server.post(path, without)["choices"])
        self.server.post(CHAT, chat("x", max_tokens=-2), want=400)

    def test_tokens_are_counted_in_each_piece(self):
        counting = {"include_usage": True, "continuous_usage_stats": True}
        for path, body in ((CHAT, chat("play jazz", temperature=0, n=2)), (COMPLETE, complete("play jazz", temperature=0))):
            usage = self.server.post(path, body)["usage"]
            events = list(self.server.stream(path, {**body, "stream_options": counting}))
            counts = [event["usage"]["completion_tokens"] for event in events if "usage" in event]
            self.assertEqual((counts, counts[-1]), (sorted(counts), usage["completion_tokens"]))
            self.assertGreater(len(set(counts)), 5)
            for event in events:
                if any(choice["finish_reason"] or choice.get("text") for choice in event["choices"]):
                    self.assertEqual(event["usage"]["prompt_tokens"], usage["prompt_tokens"])
            plain = list(self.server.stream(path, {**body, "stream_options": {"continuous_usage_stats": True}}))
            self.assertFalse([event for event in plain if "usage" in event])

    def test_fields_that_are_null_are_not_there(self):
        names = ["stop", "tools", "tool_choice", "response_format", "seed", "n", "temperature", "top_p", "logprobs",
                 "top_logprobs", "stream", "stream_options", "logit_bias", "max_tokens", "user", "functions", "grammar",
                 "json_schema", "regex", "frequency_penalty", "parallel_tool_calls", "metadata", "store"]
        self.assertEqual(self.content(chat("play jazz", **dict.fromkeys(names))), self.content(chat("play jazz")))

    def test_choices_in_a_stream_are_told_apart(self):
        body = chat("sing", n=3, temperature=5.0, max_tokens=12, seed=3)
        whole = [choice["message"]["content"] for choice in self.server.post(CHAT, body)["choices"]]
        texts, ends = [""] * 3, [None] * 3
        for event in self.server.stream(CHAT, body):
            for choice in event["choices"]:
                texts[choice["index"]] += choice["delta"].get("content") or ""
                ends[choice["index"]] = choice["finish_reason"] or ends[choice["index"]]
        self.assertEqual(texts, whole)
        self.assertNotIn(None, ends)

    def test_tools_without_parameters_have_arguments_that_are_an_object(self):
        for parameters in ({}, {"parameters": {}}, {"parameters": None}, {"parameters": {"type": "object", "properties": {}}}):
            body = chat("x", tools=[{"type": "function", "function": {"name": "f", **parameters}}], tool_choice="required",
                        temperature=3.0, parallel_tool_calls=False)
            for seed in range(6):
                choice = self.server.post(CHAT, {**body, "seed": seed})["choices"][0]
                if choice["finish_reason"] == "tool_calls":
                    call = choice["message"]["tool_calls"][0]["function"]
                    self.assertEqual((call["name"], json.loads(call["arguments"])), ("f", {}))
        error = self.server.post(CHAT, {**body, "tool_choice": "any"}, want=400)["error"]
        self.assertIn("tool_choice: expected auto, none, required or an object that names a tool", error["message"])
        self.server.post(CHAT, chat("x", tool_choice="none", max_tokens=2))
        self.server.post(CHAT, chat("x", tool_choice="auto", max_tokens=2))

    def test_calls_of_a_history_have_any_arguments(self):
        for arguments in ("", "{}", '{"a": 1', "not JSON"):
            call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
            messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "1", "content": "done"}, {"role": "user", "content": "play jazz"}]
            self.server.post(CHAT, {"model": "demo", "messages": messages, "max_tokens": 2})

    def test_ollamas_last_object_has_no_text(self):
        for path, body in (("/api/generate", {"prompt": "play jazz"}), ("/api/chat", {"messages": chat("play jazz")["messages"]})):
            options = {"temperature": 0, "num_predict": 4}
            events = list(self.server.stream(path, {"model": "demo", "options": options, **body}))
            whole = self.server.post(path, {"model": "demo", "options": options, "stream": False, **body})
            text = lambda event: event["response"] if "response" in event else event["message"]["content"]
            self.assertEqual("".join(map(text, events)), text(whole))
            self.assertEqual((text(events[-1]), events[-1]["done"], events[-1]["done_reason"]), ("", True, "length"))
            self.assertLess(0, whole["eval_duration"] + whole["prompt_eval_duration"])
            self.assertLessEqual(whole["eval_duration"] + whole["prompt_eval_duration"], whole["total_duration"])

    def test_what_applications_ask_of_a_model(self):
        shown = self.server.post("/api/show", {"model": "demo"})
        architecture = shown["model_info"]["general.architecture"]
        self.assertEqual(shown["model_info"][architecture + ".context_length"], 256)
        self.assertEqual(shown["details"]["families"], [architecture])
        self.assertEqual(shown["capabilities"], ["completion"])
        status, _, body = self.server.request("GET", "/v1/models/d%65mo")
        described = json.loads(body)
        self.assertEqual((status, described["id"]), (200, "demo"))
        self.assertEqual(described["size"], json.loads(self.server.get("/api/tags"))["models"][0]["size"])
        self.assertGreater(described["memory"], 0)
        self.assertEqual(self.server.request("GET", "/v1/models/demo%")[0], 404)
        for host, want in (("app.localhost", 200), ("host.docker.internal:8080", 200), ("example.org", 403)):
            status = self.server.request("GET", "/health", None, {"Host": host})[0]
            self.assertEqual(status, want, host)
        self.assertEqual(self.server.request("POST", CHAT, b"x", {"Content-Encoding": "gzip"})[0], 415)

    def test_which_kind_of_model_there_is_none_of(self):
        error = self.server.post("/v1/embeddings", {"input": "x"}, want=404)["error"]
        self.assertEqual(error["message"], "model: expected one for vectors, which none of demo is, got none")

    def test_ollama_loads_a_model_by_a_request_without_a_prompt(self):
        for body in ({}, {"prompt": ""}, {"keep_alive": 0}, {"stream": False}):
            answer = self.server.post("/api/generate", {"model": "demo", **body})
            self.assertEqual((answer["response"], answer["done"], answer["done_reason"]), ("", True, "load"))
        for body in ({}, {"messages": []}):
            answer = self.server.post("/api/chat", {"model": "demo", **body})
            self.assertEqual((answer["message"]["content"], answer["done_reason"]), ("", "load"))
        self.server.post("/api/generate", {"model": "none"}, want=404)
        self.assertEqual(self.server.request("GET", "/api/show")[0], 405)

    def test_targets_of_other_forms(self):
        for target in ("/health/", "/health?x=1", "/health/?x=1", "http://localhost:80/health", "http://localhost/health/"):
            request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            self.assertTrue(read_all(self.server.raw(request.encode())).endswith(b'{"status":"ok"}'), target)
        self.assertIn(b"<title>", read_all(self.server.raw(b"GET http://localhost HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")))
        self.assertEqual(self.server.request("POST", CHAT + "/", chat("play jazz", max_tokens=2))[0], 200)
        self.assertEqual(self.server.request("HEAD", CHAT)[::2], (405, b""))
        self.assertEqual(self.server.request("HEAD", "/health")[::2], (200, b""))
        self.assertEqual(self.server.request("OPTIONS", CHAT)[0], 204)

    def test_bodies_of_other_forms(self):
        body = chat("play jazz", temperature=0)
        expected = self.server.post(CHAT, body)["choices"]
        data = json.dumps(body).encode()
        # In chunks with an extension and a trailer; behind a byte-order mark; as curl's form; by HTTP/1.0.
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode()
        chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in (data[:7], data[7:])) + b"0\r\nX-End: 1\r\n\r\n"
        for request in (head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks, http_bytes(CHAT, b"\xef\xbb\xbf" + data,
                        "Connection: close\r\n"), http_bytes(CHAT, data, "Connection: close\r\nContent-Type: "
                        "application/x-www-form-urlencoded\r\n"), http_bytes(CHAT, data).replace(b"/1.1", b"/1.0")):
            answer = read_all(self.server.raw(request))
            self.assertEqual(json.loads(answer.split(b"\r\n\r\n", 1)[1])["choices"], expected, request[:60])
        for wrong in (b'{"messages":[{"role":"user","content":"\xff"}]}', b'{"messages":[{"role":"user","content":"\\ud800"}]}',
                      b'{"temperature":NaN}', b"\x1f\x8b\x08"):
            error = json.loads(self.server.request("POST", CHAT, wrong)[2])["error"]["message"]
            self.assertRegex(error, r"\Abody: expected JSON, got [^\n]+\Z")

    def test_a_browsers_client_may_send_headers_of_its_own(self):
        with Server(FOVEA, "--context", "256", "--cors", "https://a.example", "--api-key", "k") as server:
            asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST",
                     "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang"}
            status, headers, _ = server.request("OPTIONS", CHAT, None, asked)
            self.assertEqual((status, headers["Access-Control-Allow-Headers"]),
                             (204, asked["Access-Control-Request-Headers"]))
            status, headers, _ = server.request("POST", CHAT, chat("x"))
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))

"""Clients of the APIs themselves: openai, anthropic, ollama, cohere."""
import json
import subprocess

from clients_cases import ANSWER, COMMAND, FORM, FUNCTION, KEY, MESSAGES, SCHEMA, TOOL, Client, Shared, base, recording


class OpenAI(Client):
    PLACE = "quick"
    PACKAGES, IS_QUICK = ("openai",), True

    def setUp(self):
        import openai
        self.client = openai.OpenAI(base_url=base(), api_key=KEY)

    def chat(self, **fields):
        return self.client.chat.completions.create(model="demo", messages=MESSAGES,
                                                   temperature=0, **fields)

    def test_chat(self):
        answer = self.chat()
        self.assertEqual(answer.choices[0].message.content, ANSWER)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertGreater(answer.usage.prompt_tokens, 3)

    def test_stream(self):
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), ANSWER)
        self.assertGreater(chunks[-1].usage.completion_tokens, 3)

    def test_chances(self):
        choice = self.chat(logprobs=True, top_logprobs=2).choices[0]
        self.assertEqual("".join(token.token for token in choice.logprobs.content), ANSWER)
        self.assertEqual(len(self.chat(n=3, seed=1).choices), 3)
        self.assertEqual(self.chat(stop=["device"]).choices[0].message.content, '{"do":"on","')

    def test_form(self):
        self.check_form(self.chat(response_format=FORM).choices[0].message.content)

    def test_tools(self):
        for stream in (False, True):
            answer = self.chat(tools=[TOOL], tool_choice="required", stream=stream)
            calls = ([call for chunk in answer for call in chunk.choices[0].delta.tool_calls or []] if stream
                     else answer.choices[0].message.tool_calls)
            self.assertEqual(calls[0].function.name, "play")
            self.assertIn(json.loads("".join(call.function.arguments for call in calls))["what"], ["jazz", "rock"])

    def test_responses(self):
        ask = self.client.responses.create
        answer = ask(model="demo", input=COMMAND, temperature=0)
        self.assertEqual((answer.output_text, answer.status), (ANSWER, "completed"))
        self.assertGreater(answer.usage.input_tokens, 3)
        said = [{"role": "user", "content": COMMAND}, *answer.output, {"role": "user", "content": COMMAND}]
        self.assertEqual(ask(model="demo", input=said, temperature=0).output_text, ANSWER)
        events = list(ask(model="demo", input=COMMAND, temperature=0, stream=True))
        self.assertEqual("".join(e.delta for e in events if e.type == "response.output_text.delta"), ANSWER)
        self.assertEqual((events[-1].type, events[-1].response.output_text), ("response.completed", ANSWER))
        with self.client.responses.stream(model="demo", input=COMMAND, temperature=0) as stream:
            self.assertEqual([e.text for e in stream if e.type == "response.output_text.done"], [ANSWER])
            self.assertEqual(stream.get_final_response().output_text, ANSWER)
        tool = {"type": "function", **FUNCTION, "strict": True}
        call = ask(model="demo", input=COMMAND, tools=[tool], tool_choice="required").output[0]
        self.assertIn((call.type, json.loads(call.arguments)["what"]), [("function_call", "jazz"), ("function_call", "rock")])
        back = [{"role": "user", "content": COMMAND}, call, {"type": "function_call_output", "call_id": call.call_id, "output": "on"}]
        self.assertTrue(ask(model="demo", input=back, tools=[tool], max_output_tokens=8).output)
        form = {"format": {"type": "json_schema", "name": "music", "schema": SCHEMA, "strict": True}}
        self.assertIn(json.loads(ask(model="demo", input=COMMAND, text=form).output_text)["what"], ["jazz", "rock"])
        first = ask(model="demo", input="play jazz")
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, first.output_text)
        second = ask(model="demo", input=COMMAND, previous_response_id=first.id)
        self.assertEqual(second.output_text, ANSWER)
        given = list(self.client.responses.input_items.list(second.id, order="asc", limit=2))
        self.assertEqual([(item.role, item.content[0].text) for item in given],
                         [("user", "play jazz"), ("assistant", first.output_text), ("user", COMMAND)])
        counted = self.client.responses.input_tokens.count(model="demo", input=COMMAND)
        self.assertEqual(counted.input_tokens, answer.usage.input_tokens)
        self.client.responses.delete(first.id)
        import openai
        with self.assertRaises(openai.BadRequestError):
            ask(model="demo", input=COMMAND, previous_response_id=first.id)

    def test_tools_stream(self):
        chunks = [call for chunk in self.chat(tools=[TOOL], tool_choice="required", stream=True)
                  for call in chunk.choices[0].delta.tool_calls or []]
        self.assertGreater(len(chunks), 1)
        self.assertEqual([(c.index, c.function.name) for c in chunks], [(0, "play")] + [(0, None)] * (len(chunks) - 1))
        self.assertIn(json.loads("".join(c.function.arguments for c in chunks))["what"], ["jazz", "rock"])
        with self.client.chat.completions.stream(model="demo", messages=MESSAGES,
                                                 tools=[TOOL], tool_choice="required", temperature=0) as stream:
            done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
            self.assertEqual([event.name for event in done], ["play"])
            call = stream.get_final_completion().choices[0].message.tool_calls[0]
            self.assertIn(json.loads(call.function.arguments)["what"], ["jazz", "rock"])
        tool = {"type": "function", **FUNCTION, "strict": True}
        with self.client.responses.stream(model="demo", input=COMMAND, tools=[tool], tool_choice="required") as stream:
            deltas = [event for event in stream if event.type == "response.function_call_arguments.delta"]
            self.assertGreater(len(deltas), 1)
            call = stream.get_final_response().output[0]
            self.assertEqual("".join(event.delta for event in deltas), call.arguments)

    def test_speech(self):
        path, command = recording(), [Shared.fovea, "transcribe", Shared.speech, "--json"]
        known = json.loads(subprocess.run([*command, path], capture_output=True, check=True).stdout)
        speech = self.client.audio.transcriptions
        with open(path, "rb") as file:
            sound = file.read()
        self.assertEqual(speech.create(model="talking", file=open(path, "rb")).text, known["text"])
        whole = speech.create(model="talking", file=("talk.wav", sound), response_format="verbose_json",
                              timestamp_granularities=["segment"], temperature=0)
        self.assertEqual((whole.language, whole.duration), (known["language"], known["seconds"]))
        self.assertEqual([(s.start, s.end, s.tokens) for s in whole.segments],
                         [(s["start"], s["end"], s["tokens"]) for s in known["segments"]])
        self.assertTrue(speech.create(model="talking", file=("a.wav", sound), response_format="srt").startswith("1\n00:00:"))
        events = list(speech.create(model="talking", file=("a.wav", sound), stream=True))
        self.assertEqual([event.type for event in events[-2:]], ["transcript.text.delta", "transcript.text.done"])
        self.assertEqual(events[-1].text, known["text"])
        self.assertTrue(self.client.audio.translations.create(model="talking", file=("a.wav", sound)).text)
        import openai
        with self.assertRaises(openai.BadRequestError):
            speech.create(model="talking", file=("a.wav", b"no sound"))

    def test_vectors(self):
        vectors = self.client.embeddings.create(model="bert", input=["one text", "another"]).data  # base64 inside
        self.assertEqual(len(vectors), 2)
        self.assertAlmostEqual(sum(x * x for x in vectors[0].embedding), 1, places=4)
        self.assertEqual([model.id for model in self.client.models.list()], ["demo", "bert", "ranker", "talking"])

    def test_errors(self):
        import openai
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="none", messages=[{"role": "user", "content": "x"}])
        with self.assertRaises(openai.BadRequestError):
            self.chat(frequency_penalty=1e6)


GREEDY = {"temperature": 0}  # which the newest clients have no argument for


class Anthropic(Client):
    PLACE = "quick"
    PACKAGES, IS_QUICK = ("anthropic",), True
    TOOL = {"name": "play", "description": "Plays music.", "input_schema": SCHEMA}

    def setUp(self):
        import anthropic
        self.client = anthropic.Anthropic(base_url=Shared.server.url, api_key=KEY)

    def ask(self, **fields):
        return self.client.messages.create(**{"model": "demo", "max_tokens": 100, "extra_body": GREEDY,
                                              "messages": MESSAGES, **fields})

    def test_chat(self):
        answer = self.ask()
        self.assertEqual((answer.content[0].text, answer.stop_reason), (ANSWER, "end_turn"))
        said = [{"role": "user", "content": COMMAND}, {"role": "assistant", "content": answer.content},
                {"role": "user", "content": COMMAND}]
        self.assertEqual(self.ask(messages=said, system="Be kind.").content[0].text, ANSWER)
        stopped = self.ask(stop_sequences=["device"])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", "device"))
        self.assertEqual(self.ask(max_tokens=2).stop_reason, "max_tokens")
        count = self.client.messages.count_tokens(model="demo", messages=MESSAGES)
        self.assertEqual(count.input_tokens, answer.usage.input_tokens + answer.usage.cache_read_input_tokens)

    def test_stream(self):
        with self.client.messages.stream(model="demo", max_tokens=100, extra_body=GREEDY,
                                         messages=MESSAGES) as stream:
            self.assertEqual("".join(stream.text_stream), ANSWER)
            final = stream.get_final_message()
        self.assertEqual((final.content[0].text, final.stop_reason), (ANSWER, "end_turn"))
        self.assertEqual(final.usage.output_tokens, self.ask().usage.output_tokens)
        kinds = [event.type for event in self.ask(stream=True)]
        self.assertEqual((kinds[0], kinds[1], kinds[-3:]), ("message_start", "content_block_start", [
            "content_block_stop", "message_delta", "message_stop"]))

    def test_tools(self):
        call = self.ask(tools=[self.TOOL], tool_choice={"type": "any"})
        self.assertEqual((call.stop_reason, call.content[0].type, call.content[0].name), ("tool_use", "tool_use", "play"))
        self.assertIn(call.content[0].input["what"], ["jazz", "rock"])
        result = {"type": "tool_result", "tool_use_id": call.content[0].id, "content": "on"}
        back = [{"role": "user", "content": COMMAND}, {"role": "assistant", "content": call.content},
                {"role": "user", "content": [result, {"type": "text", "text": COMMAND}]}]
        self.assertTrue(self.ask(messages=back, tools=[self.TOOL], max_tokens=8).content)
        with self.client.messages.stream(model="demo", max_tokens=100, messages=MESSAGES,
                                         tools=[self.TOOL], tool_choice={"type": "tool", "name": "play"}) as stream:
            pieces = [event.partial_json for event in stream if event.type == "input_json"]
            self.assertGreater(len(pieces), 1)
            self.assertIn(stream.get_final_message().content[0].input["what"], ["jazz", "rock"])

    def test_errors(self):
        import anthropic
        with self.assertRaises(anthropic.BadRequestError):
            self.ask(tools=[{"type": "web_search_20250305", "name": "web_search"}])
        with self.assertRaises(anthropic.NotFoundError):
            self.ask(model="none")


class Ollama(Client):
    PLACE = "quick"
    PACKAGES, IS_QUICK = ("ollama",), True
    OPTIONS = {"temperature": 0, "repeat_penalty": 1.0}

    def setUp(self):
        import ollama
        self.client = ollama.Client(host=Shared.server.url)

    def chat(self, **fields):
        return self.client.chat("demo", MESSAGES, options=self.OPTIONS, **fields)

    def test_chat(self):
        self.assertEqual(self.chat().message.content, ANSWER)
        self.assertEqual(self.client.generate("demo", COMMAND, options=self.OPTIONS).response, ANSWER)
        self.assertEqual([model.model for model in self.client.list().models], ["demo", "bert", "ranker", "talking"])
        self.assertEqual(self.client.show("demo").details.family, "llama")

    def test_stream(self):
        parts = list(self.chat(stream=True))
        self.assertEqual("".join(part.message.content for part in parts), ANSWER)
        self.assertTrue(parts[-1].done)

    def test_form(self):
        self.check_form(self.chat(format=SCHEMA).message.content)

    def test_vectors(self):
        self.assertEqual(len(self.client.embed("bert", ["a", "b"]).embeddings), 2)

    def test_errors(self):
        import ollama
        with self.assertRaises(ollama.ResponseError) as raised:
            self.client.chat("none", MESSAGES)
        self.assertEqual(raised.exception.status_code, 404)


class Cohere(Client):
    PLACE = "quick"
    PACKAGES, IS_QUICK = ("cohere",), True
    ASKED = {"model": "ranker", "query": "who wrote it?", "documents": ["It was written by her.", "It rains."]}

    def client(self, version=2):
        import cohere
        return (cohere.ClientV2 if version == 2 else cohere.Client)(api_key=KEY, base_url=Shared.server.url)

    def test_rerank(self):
        known = Shared.server.post("/v1/rerank", self.ASKED)["results"]
        for version in (1, 2):
            results = self.client(version).rerank(**self.ASKED, top_n=2).results
            self.assertEqual([(one.index, one.relevance_score) for one in results],
                             [(one["index"], one["relevance_score"]) for one in known])

    def test_errors(self):
        from cohere.errors import BadRequestError, NotFoundError
        with self.assertRaises(NotFoundError):
            self.client().rerank(**{**self.ASKED, "model": "none"})
        with self.assertRaises(BadRequestError):
            self.client().rerank(**{**self.ASKED, "documents": []})

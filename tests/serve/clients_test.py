"""Other people's clients against `fovea serve`: anthropic, openai, ollama, LangChain's, LlamaIndex's, called as users do.

    clients_test.py FOVEA GOLDEN_DIR [--all]   status 77 where none of them is installed; --all: 1 where one is missing
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

from client import Server

FOVEA, GOLDEN = sys.argv[1:3]
COMMAND = "turn on the reading lamp"
ANSWER = '{"do":"on","device":"reading lamp"}'
SCHEMA = {"type": "object", "properties": {"what": {"enum": ["jazz", "rock"]}}, "required": ["what"],
          "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "play", "description": "Plays music.", "parameters": SCHEMA}}


def has(*modules):
    """A decorator: without these modules the class is skipped."""
    missing = [name for name in modules if importlib.util.find_spec(name.split(".")[0]) is None]
    if missing and "--all" in sys.argv[3:]:
        sys.exit(f"clients_test: expected {', '.join(missing)} to be installed, got none (./dev clients brings it)")
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


@has("openai")
class OpenAI(unittest.TestCase):
    def setUp(self):
        import openai
        self.client = openai.OpenAI(base_url=SERVER.url + "/v1", api_key="none")

    def chat(self, **fields):
        return self.client.chat.completions.create(model="demo", messages=[{"role": "user", "content": COMMAND}],
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

    def test_logprobs_seed_n_stop(self):
        choice = self.chat(logprobs=True, top_logprobs=2).choices[0]
        self.assertEqual("".join(token.token for token in choice.logprobs.content), ANSWER)
        self.assertEqual(len(self.chat(n=3, seed=1).choices), 3)
        self.assertEqual(self.chat(stop=["device"]).choices[0].message.content, '{"do":"on","')

    def test_schema(self):
        form = {"type": "json_schema", "json_schema": {"name": "music", "schema": SCHEMA, "strict": True}}
        self.assertIn(json.loads(self.chat(response_format=form).choices[0].message.content)["what"], ["jazz", "rock"])

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
        tool = {"type": "function", **TOOL["function"], "strict": True}
        call = ask(model="demo", input=COMMAND, tools=[tool], tool_choice="required").output[0]
        self.assertIn((call.type, json.loads(call.arguments)["what"]), [("function_call", "jazz"), ("function_call", "rock")])
        back = [{"role": "user", "content": COMMAND}, call, {"type": "function_call_output", "call_id": call.call_id, "output": "on"}]
        self.assertTrue(ask(model="demo", input=back, tools=[tool], max_output_tokens=8).output)
        form = {"format": {"type": "json_schema", "name": "music", "schema": SCHEMA, "strict": True}}
        self.assertIn(json.loads(ask(model="demo", input=COMMAND, text=form).output_text)["what"], ["jazz", "rock"])
        import openai
        with self.assertRaises(openai.BadRequestError):
            ask(model="demo", input=COMMAND, previous_response_id="resp_1")

    def test_arguments_come_in_pieces(self):
        chunks = [call for chunk in self.chat(tools=[TOOL], tool_choice="required", stream=True)
                  for call in chunk.choices[0].delta.tool_calls or []]
        self.assertGreater(len(chunks), 1)
        self.assertEqual([(c.index, c.function.name) for c in chunks], [(0, "play")] + [(0, None)] * (len(chunks) - 1))
        self.assertIn(json.loads("".join(c.function.arguments for c in chunks))["what"], ["jazz", "rock"])
        with self.client.chat.completions.stream(model="demo", messages=[{"role": "user", "content": COMMAND}],
                                                 tools=[TOOL], tool_choice="required", temperature=0) as stream:
            done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
            self.assertEqual([event.name for event in done], ["play"])
            call = stream.get_final_completion().choices[0].message.tool_calls[0]
            self.assertIn(json.loads(call.function.arguments)["what"], ["jazz", "rock"])
        tool = {"type": "function", **TOOL["function"], "strict": True}
        with self.client.responses.stream(model="demo", input=COMMAND, tools=[tool], tool_choice="required") as stream:
            deltas = [event for event in stream if event.type == "response.function_call_arguments.delta"]
            self.assertGreater(len(deltas), 1)
            call = stream.get_final_response().output[0]
            self.assertEqual("".join(event.delta for event in deltas), call.arguments)

    def test_recordings(self):
        path, command = os.path.join(GOLDEN, "recordings/three.wav"), [FOVEA, "transcribe", SPEECH, "--json"]
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

    def test_embeddings_and_models(self):
        vectors = self.client.embeddings.create(model="bert", input=["one text", "another"]).data  # base64 inside
        self.assertEqual(len(vectors), 2)
        self.assertAlmostEqual(sum(x * x for x in vectors[0].embedding), 1, places=4)
        self.assertEqual([model.id for model in self.client.models.list()], ["demo", "bert", "talking"])

    def test_errors(self):
        import openai
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="none", messages=[{"role": "user", "content": "x"}])
        with self.assertRaises(openai.BadRequestError):
            self.chat(frequency_penalty=1e6)


GREEDY = {"temperature": 0}  # which the newest clients have no argument for


@has("anthropic")
class Anthropic(unittest.TestCase):
    TOOL = {"name": "play", "description": "Plays music.", "input_schema": SCHEMA}

    def setUp(self):
        import anthropic
        self.client = anthropic.Anthropic(base_url=SERVER.url, api_key="none")

    def ask(self, **fields):
        return self.client.messages.create(**{"model": "demo", "max_tokens": 100, "extra_body": GREEDY,
                                              "messages": [{"role": "user", "content": COMMAND}], **fields})

    def test_messages(self):
        answer = self.ask()
        self.assertEqual((answer.content[0].text, answer.stop_reason), (ANSWER, "end_turn"))
        said = [{"role": "user", "content": COMMAND}, {"role": "assistant", "content": answer.content},
                {"role": "user", "content": COMMAND}]
        self.assertEqual(self.ask(messages=said, system="Be kind.").content[0].text, ANSWER)
        stopped = self.ask(stop_sequences=["device"])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", "device"))
        self.assertEqual(self.ask(max_tokens=2).stop_reason, "max_tokens")
        count = self.client.messages.count_tokens(model="demo", messages=[{"role": "user", "content": COMMAND}])
        self.assertEqual(count.input_tokens, answer.usage.input_tokens + answer.usage.cache_read_input_tokens)

    def test_stream(self):
        with self.client.messages.stream(model="demo", max_tokens=100, extra_body=GREEDY,
                                         messages=[{"role": "user", "content": COMMAND}]) as stream:
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
        with self.client.messages.stream(model="demo", max_tokens=100, messages=[{"role": "user", "content": COMMAND}],
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


@has("ollama")
class Ollama(unittest.TestCase):
    def setUp(self):
        import ollama
        self.client = ollama.Client(host=SERVER.url)
        self.options = {"temperature": 0, "repeat_penalty": 1.0}

    def test_all(self):
        messages = [{"role": "user", "content": COMMAND}]
        self.assertEqual(self.client.chat("demo", messages, options=self.options).message.content, ANSWER)
        parts = list(self.client.chat("demo", messages, options=self.options, stream=True))
        self.assertEqual("".join(part.message.content for part in parts), ANSWER)
        self.assertTrue(parts[-1].done)
        self.assertEqual(self.client.generate("demo", COMMAND, options=self.options).response, ANSWER)
        formed = self.client.chat("demo", messages, format=SCHEMA, options=self.options).message.content
        self.assertIn(json.loads(formed)["what"], ["jazz", "rock"])
        self.assertEqual(len(self.client.embed("bert", ["a", "b"]).embeddings), 2)
        self.assertEqual([model.model for model in self.client.list().models], ["demo", "bert", "talking"])
        self.assertEqual(self.client.show("demo").details.family, "llama")


@has("langchain_openai")
class LangChain(unittest.TestCase):
    def test_all(self):
        from langchain_openai import ChatOpenAI, OpenAIEmbeddings
        chat = ChatOpenAI(model="demo", base_url=SERVER.url + "/v1", api_key="none", temperature=0)
        self.assertEqual(chat.invoke(COMMAND).content, ANSWER)
        self.assertEqual("".join(part.content for part in chat.stream(COMMAND)), ANSWER)
        self.assertEqual([one.content for one in chat.batch([COMMAND] * 3)], [ANSWER] * 3)
        calls = chat.bind_tools([TOOL], tool_choice="play").invoke(COMMAND).tool_calls
        self.assertEqual(calls[0]["name"], "play")
        formed = chat.with_structured_output({"title": "music", **SCHEMA}, method="json_schema").invoke(COMMAND)
        self.assertIn(formed["what"], ["jazz", "rock"])
        embeddings = OpenAIEmbeddings(model="bert", base_url=SERVER.url + "/v1", api_key="none",
                                      check_embedding_ctx_length=False)
        self.assertEqual(len(embeddings.embed_documents(["a", "b"])), 2)


@has("llama_index.llms.openai_like")
class LlamaIndex(unittest.TestCase):
    def test_all(self):
        try:
            from llama_index.core.llms import ChatMessage
            from llama_index.embeddings.openai_like import OpenAILikeEmbedding
            from llama_index.llms.openai_like import OpenAILike
        except ImportError as error:
            self.skipTest(str(error))
        llm = OpenAILike(model="demo", api_base=SERVER.url + "/v1", api_key="none", is_chat_model=True, temperature=0,
                         context_window=256)
        self.assertEqual(llm.chat([ChatMessage(role="user", content=COMMAND)]).message.content, ANSWER)
        self.assertEqual("".join(part.delta or "" for part in llm.stream_chat(
            [ChatMessage(role="user", content=COMMAND)])), ANSWER)
        self.assertEqual(llm.complete(COMMAND).text, ANSWER)
        embedding = OpenAILikeEmbedding(model_name="bert", api_base=SERVER.url + "/v1", api_key="none")
        self.assertEqual(len(embedding.get_text_embedding_batch(["a", "b"])), 2)


if __name__ == "__main__":
    if not any(importlib.util.find_spec(name) for name in ("openai", "ollama", "langchain_openai", "llama_index")):
        print("skipped: none of anthropic, openai, ollama, langchain-openai, llama-index is installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        encoder = os.path.join(scratch, "bert.fovea")
        subprocess.run([FOVEA, "convert", os.path.join(GOLDEN, "encoders/bert_sentence"), "-o", encoder], check=True,
                       capture_output=True)
        SPEECH = os.path.join(scratch, "talking.fovea")
        subprocess.run([FOVEA, "convert", os.path.join(GOLDEN, "speech/whisper_talking"), "-o", SPEECH], check=True,
                       capture_output=True)
        with Server(FOVEA, "demo=", encoder, SPEECH, "--context", "256") as SERVER:
            unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")

"""Clients that speak to many servers: litellm, LangChain, LlamaIndex, instructor, outlines, guidance, dspy, haystack."""
import json
from typing import Literal

from clients_cases import ANSWER, COMMAND, FORM, FUNCTION, KEY, MESSAGES, SCHEMA, TOOL, Client, Shared, base, music, recording


class LiteLLM(Client):
    PACKAGES = ("litellm",)
    CHATS = (("openai", "/v1"), ("hosted_vllm", "/v1"), ("anthropic", ""), ("ollama_chat", ""))

    def ask(self, kind="completion", provider="openai", end="/v1", model="demo", **fields):
        import litellm
        litellm.suppress_debug_info = True
        return getattr(litellm, kind)(model=f"{provider}/{model}", api_base=Shared.server.url + end, api_key=KEY, **fields)

    def chat(self, provider="openai", end="/v1", **fields):
        return self.ask(provider=provider, end=end, **{"messages": MESSAGES, "temperature": 0, "max_tokens": 60, **fields})

    def test_chat(self):
        for provider, end in self.CHATS:
            answer = self.chat(provider, end)
            self.assertEqual((answer.choices[0].message.content, answer.choices[0].finish_reason), (ANSWER, "stop"), provider)
            self.assertGreater(answer.usage.completion_tokens, 3)
        text = self.ask("text_completion", "text-completion-openai", prompt="play jazz\n", temperature=0, max_tokens=40)
        self.assertIn("jazz", text.choices[0].text)

    def test_stream(self):
        for provider, end in self.CHATS:
            chunks = list(self.chat(provider, end, stream=True))
            self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks), ANSWER, provider)

    def test_tools(self):
        import litellm
        for provider, end in self.CHATS[:3]:
            asked = {"tools": [TOOL], "tool_choice": "required"}
            message = self.chat(provider, end, **asked).choices[0].message
            pieces = list(self.chat(provider, end, stream=True, **asked))
            for call in (message.tool_calls[0], litellm.stream_chunk_builder(pieces).choices[0].message.tool_calls[0]):
                self.assertEqual(call.function.name, "play", provider)
                self.check_form(call.function.arguments)
            back = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "on"}
            self.assertEqual(self.chat(provider, end, tools=[TOOL], messages=[*MESSAGES, message, back])
                             .choices[0].message.content, ANSWER)

    def test_form(self):
        for provider, end in self.CHATS:
            self.check_form(self.chat(provider, end, response_format=FORM).choices[0].message.content)

    def test_responses(self):
        asked = {"input": COMMAND, "temperature": 0}
        self.assertEqual(self.ask("responses", **asked).output[0].content[0].text, ANSWER)
        self.assertEqual(list(self.ask("responses", **asked, stream=True))[-1].type, "response.completed")

    def test_vectors(self):
        for provider, end in (("openai", "/v1"), ("hosted_vllm", "/v1"), ("ollama", "")):
            self.assertEqual(len(self.ask("embedding", provider, end, "bert", input=["a", "b"]).data), 2)

    def test_rerank(self):
        asked = {"query": "who wrote it?", "documents": ["It was written by her.", "It rains."]}
        known = Shared.server.post("/v1/rerank", {"model": "ranker", **asked})["results"]
        for provider in ("cohere", "hosted_vllm", "jina_ai", "huggingface"):
            results = self.ask("rerank", provider, "", "ranker", **asked).results
            self.assertEqual([one["index"] for one in results], [one["index"] for one in known], provider)

    def test_speech(self):
        with open(recording(), "rb") as file:
            self.assertTrue(self.ask("transcription", model="talking", file=file).text)

    def test_errors(self):
        import litellm
        for provider, end in self.CHATS:
            with self.assertRaises(litellm.NotFoundError):
                self.ask(provider=provider, end=end, model="none", messages=MESSAGES)
        for provider, end in self.CHATS[:3]:
            with self.assertRaises(litellm.ContextWindowExceededError):
                self.chat(provider, end, messages=[{"role": "user", "content": "word " * 400}])


class LangChain(Client):
    PLACE = "quick"
    PACKAGES, IS_QUICK = ("langchain-openai",), True

    def chat(self, **fields):
        from langchain_openai import ChatOpenAI
        return ChatOpenAI(**{"model": "demo", "base_url": base(), "api_key": KEY, "temperature": 0, **fields})

    def test_chat(self):
        self.assertEqual(self.chat().invoke(COMMAND).content, ANSWER)
        self.assertEqual([one.content for one in self.chat().batch([COMMAND] * 3)], [ANSWER] * 3)

    def test_stream(self):
        self.assertEqual("".join(part.content for part in self.chat().stream(COMMAND)), ANSWER)

    def test_tools(self):
        from langchain_core.messages import HumanMessage, ToolMessage
        called = self.chat().bind_tools([TOOL], tool_choice="play").invoke(COMMAND)
        self.assertEqual(called.tool_calls[0]["name"], "play")
        back = [HumanMessage(COMMAND), called, ToolMessage("on", tool_call_id=called.tool_calls[0]["id"])]
        self.assertEqual(self.chat().bind_tools([TOOL]).invoke(back).content, ANSWER)

    def test_form(self):
        formed = self.chat().with_structured_output({"title": "music", **SCHEMA}, method="json_schema").invoke(COMMAND)
        self.assertIn(formed["what"], ["jazz", "rock"])

    def test_responses(self):
        self.assertEqual(self.chat(use_responses_api=True).invoke(COMMAND).text, ANSWER)

    def test_vectors(self):
        from langchain_openai import OpenAIEmbeddings
        embeddings = OpenAIEmbeddings(model="bert", base_url=base(), api_key=KEY, check_embedding_ctx_length=False)
        self.assertEqual(len(embeddings.embed_documents(["a", "b"])), 2)

    def test_errors(self):
        import openai
        with self.assertRaises(openai.NotFoundError):
            self.chat(model="none").invoke(COMMAND)


class LlamaIndex(Client):
    PACKAGES = ("llama-index-llms-openai-like", "llama-index-embeddings-openai-like")
    IS_QUICK = True

    def model(self, **fields):
        from llama_index.llms.openai_like import OpenAILike
        return OpenAILike(**{"model": "demo", "api_base": base(), "api_key": KEY, "is_chat_model": True, "temperature": 0,
                             "context_window": 256, "is_function_calling_model": True, **fields})

    def said(self):
        from llama_index.core.llms import ChatMessage
        return [ChatMessage(role="user", content=COMMAND)]

    def test_chat(self):
        self.assertEqual(self.model().chat(self.said()).message.content, ANSWER)
        self.assertEqual(self.model().complete(COMMAND).text, ANSWER)

    def test_stream(self):
        self.assertEqual("".join(part.delta or "" for part in self.model().stream_chat(self.said())), ANSWER)

    def test_tools(self):
        from llama_index.core.tools import FunctionTool
        tool = FunctionTool.from_defaults(lambda what: "on", name="play", description="Plays music.", fn_schema=music())
        answer = self.model().chat_with_tools([tool], user_msg=COMMAND, tool_required=True)
        self.assertEqual(self.model().get_tool_calls_from_response(answer)[0].tool_name, "play")

    def test_form(self):
        formed = self.model(should_use_structured_outputs=True).as_structured_llm(music()).chat(self.said())
        self.assertIn(formed.raw.what, ("jazz", "rock"))

    def test_vectors(self):
        from llama_index.embeddings.openai_like import OpenAILikeEmbedding
        embedding = OpenAILikeEmbedding(model_name="bert", api_base=base(), api_key=KEY)
        self.assertEqual(len(embedding.get_text_embedding_batch(["a", "b"])), 2)

    def test_errors(self):
        import openai
        with self.assertRaises(openai.NotFoundError):
            self.model(model="none").chat(self.said())


class Instructor(Client):
    PACKAGES = ("instructor", "anthropic")

    def client(self, mode):
        import instructor
        import openai
        return instructor.from_openai(openai.OpenAI(base_url=base(), api_key=KEY), mode=getattr(instructor.Mode, mode))

    def ask(self, mode, model="demo", call="create"):
        fields = {} if mode.startswith("RESPONSES") else {"temperature": 0}
        return getattr(self.client(mode).chat.completions, call)(model=model, messages=MESSAGES, response_model=music(),
                                                                 max_retries=0, **fields)

    def test_tools(self):
        for mode in ("TOOLS", "TOOLS_STRICT"):
            self.assertIn(self.ask(mode).what, ("jazz", "rock"))

    def test_form(self):
        self.assertIn(self.ask("JSON_SCHEMA").what, ("jazz", "rock"))

    def test_stream(self):
        self.assertIn(list(self.ask("TOOLS", call="create_partial"))[-1].what, ("jazz", "rock"))

    def test_responses(self):
        self.assertIn(self.ask("RESPONSES_TOOLS").what, ("jazz", "rock"))

    def test_messages(self):
        import anthropic
        import instructor
        client = instructor.from_anthropic(anthropic.Anthropic(base_url=Shared.server.url, api_key=KEY))
        made = client.messages.create(model="demo", max_tokens=60, messages=MESSAGES, response_model=music(), max_retries=0)
        self.assertIn(made.what, ("jazz", "rock"))

    def test_errors(self):
        with self.assertRaisesRegex(Exception, "model: expected one of demo"):
            self.ask("TOOLS", model="none")


class Outlines(Client):
    PACKAGES = ("outlines", "openai")

    def model(self, server="vllm", name="demo"):
        import openai
        import outlines
        return getattr(outlines, "from_" + server)(openai.OpenAI(base_url=base(), api_key=KEY), name)

    def test_chat(self):
        for server in ("openai", "vllm", "sglang"):
            self.assertEqual(self.model(server)(COMMAND, temperature=0), ANSWER)

    def test_stream(self):
        self.assertEqual("".join(self.model().stream(COMMAND, temperature=0)), ANSWER)

    def test_form(self):
        from outlines.types import CFG, Regex
        for server in ("openai", "vllm", "sglang"):
            self.check_form(self.model(server)(COMMAND, music()))
        for server in ("vllm", "sglang"):
            self.assertRegex(self.model(server)(COMMAND, Regex("[a-z]{3}-[0-9]{2}")), "^[a-z]{3}-[0-9]{2}$")
        self.assertIn(self.model()(COMMAND, Literal["jazz", "rock"]), ("jazz", "rock"))
        self.assertIn(self.model("sglang")(COMMAND, CFG('root ::= "yes" | "no"')), ("yes", "no"))

    def test_errors(self):
        import outlines
        with self.assertRaises(outlines.exceptions.NotFoundError):
            self.model(name="none")(COMMAND)


class Guidance(Client):
    PACKAGES = ("guidance", "openai")

    def said(self, answer, name="demo"):
        from guidance import assistant, user
        from guidance.models import OpenAI
        model = OpenAI(name, api_key=KEY, base_url=base(), echo=False)
        with user():
            model += COMMAND
        with assistant():
            model += answer
        return model["answer"]

    def test_chat(self):
        from guidance import gen
        self.assertEqual(self.said(gen("answer", max_tokens=60, temperature=0)), ANSWER)

    def test_form(self):
        import guidance
        self.check_form(self.said(guidance.json(name="answer", schema=SCHEMA)))

    def test_errors(self):
        import openai
        from guidance import gen
        with self.assertRaises(openai.NotFoundError):
            self.said(gen("answer", max_tokens=4), "none")


class DSPy(Client):
    PACKAGES = ("dspy", "numpy")

    def model(self, name="demo", **fields):
        import dspy
        return dspy.LM("openai/" + name, api_base=base(), api_key=KEY, cache=False, num_retries=0, temperature=0, **fields)

    def test_chat(self):
        self.assertEqual(self.model(max_tokens=60)(COMMAND), [ANSWER])

    def test_form(self):
        self.check_form(self.model(max_tokens=60)(COMMAND, response_format=FORM)[0])

    def test_tools(self):
        called = self.model(max_tokens=60)(COMMAND, tools=[TOOL], tool_choice="required")[0]
        self.assertEqual(called["tool_calls"][0]["function"]["name"], "play")

    def test_vectors(self):
        import dspy
        self.assertEqual(len(dspy.Embedder("openai/bert", api_base=base(), api_key=KEY, caching=False)(["a", "b"])), 2)

    def test_errors(self):
        with self.assertRaisesRegex(Exception, "model: expected one of demo"):
            self.model("none")(COMMAND)


class Haystack(Client):
    PACKAGES = ("haystack-ai",)

    def ask(self, messages=None, name="OpenAIChatGenerator", model="demo", **fields):
        from haystack.components.generators import chat
        from haystack.dataclasses import ChatMessage
        from haystack.utils import Secret
        made = getattr(chat, name)(model=model, api_base_url=base(), api_key=Secret.from_token(KEY), max_retries=0)
        return made.run(messages or [ChatMessage.from_user(COMMAND)], **fields)["replies"][0]

    def tool(self):
        from haystack.tools import Tool
        return Tool(**FUNCTION, function=lambda what: "on")

    def test_chat(self):
        answer = self.ask(generation_kwargs={"temperature": 0})
        self.assertEqual((answer.text, answer.meta["finish_reason"]), (ANSWER, "stop"))

    def test_stream(self):
        parts = []
        self.assertEqual(self.ask(generation_kwargs={"temperature": 0}, streaming_callback=parts.append).text, ANSWER)
        self.assertGreater(len(parts), 5)

    def test_tools(self):
        from haystack.dataclasses import ChatMessage
        for streams in ({}, {"streaming_callback": lambda chunk: None}):
            called = self.ask(tools=[self.tool()], generation_kwargs={"tool_choice": "required"}, **streams)
            self.check_form(json.dumps(called.tool_calls[0].arguments))
        back = [ChatMessage.from_user(COMMAND), called, ChatMessage.from_tool("on", called.tool_calls[0])]
        self.assertEqual(self.ask(back, tools=[self.tool()], generation_kwargs={"temperature": 0}).text, ANSWER)

    def test_form(self):
        self.check_form(self.ask(generation_kwargs={"response_format": music()}).text)

    def test_responses(self):
        name = "OpenAIResponsesChatGenerator"
        self.assertEqual(self.ask(name=name, generation_kwargs={"temperature": 0}).text, ANSWER)
        called = self.ask(name=name, tools=[self.tool()], generation_kwargs={"tool_choice": "required"})
        self.assertEqual(called.tool_calls[0].tool_name, "play")

    def test_vectors(self):
        from haystack.components.embedders import OpenAIDocumentEmbedder
        from haystack.dataclasses import Document
        from haystack.utils import Secret
        made = OpenAIDocumentEmbedder(model="bert", api_base_url=base(), api_key=Secret.from_token(KEY), progress_bar=False)
        self.assertEqual(len(made.run([Document(content="a"), Document(content="b")])["documents"]), 2)

    def test_errors(self):
        import openai
        with self.assertRaises(openai.NotFoundError):
            self.ask(model="none")

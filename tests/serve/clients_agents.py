"""Agents: pydantic-ai, openai-agents, smolagents, ag2, strands."""
import asyncio
from typing import Literal

from clients_cases import ANSWER, COMMAND, KEY, TOOL, Client, base, music


def play(what: Literal["jazz", "rock"]) -> str:
    """Plays music.

    Args:
        what: which
    """
    return "on " + what


class PydanticAI(Client):
    PLACE = "quick"
    PACKAGES, IS_QUICK = ("pydantic-ai-slim[openai]",), True

    def agent(self, name="Chat", model="demo", **fields):
        import pydantic_ai
        from pydantic_ai.models import openai
        from pydantic_ai.providers.openai import OpenAIProvider
        made = getattr(openai, f"OpenAI{name}Model")(model, provider=OpenAIProvider(base_url=base(), api_key=KEY))
        return pydantic_ai.Agent(made, model_settings={"temperature": 0, "max_tokens": 60}, **fields)

    def test_chat(self):
        answer = self.agent(instructions="Be brief.").run_sync(COMMAND)
        self.assertEqual(answer.output, ANSWER)

    def test_stream(self):
        async def texts():
            async with self.agent().run_stream(COMMAND) as answer:
                return [text async for text in answer.stream_text(debounce_by=None)]
        said = asyncio.run(texts())
        self.assertEqual(said[-1], ANSWER)
        self.assertGreater(len(said), 5)

    def test_tools(self):
        from pydantic_ai import ToolOutput
        for name in ("Chat", "Responses"):
            self.assertIn(self.agent(name, output_type=ToolOutput(music())).run_sync(COMMAND).output.what, ("jazz", "rock"))

    def test_form(self):
        from pydantic_ai import NativeOutput
        for name in ("Chat", "Responses"):
            self.assertIn(self.agent(name, output_type=NativeOutput(music())).run_sync(COMMAND).output.what, ("jazz", "rock"))

    def test_responses(self):
        self.assertEqual(self.agent("Responses").run_sync(COMMAND).output, ANSWER)

    def test_vectors(self):
        from pydantic_ai import Embedder
        from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
        from pydantic_ai.providers.openai import OpenAIProvider
        made = Embedder(OpenAIEmbeddingModel("bert", provider=OpenAIProvider(base_url=base(), api_key=KEY)))
        self.assertEqual(len(asyncio.run(made.embed_documents(["a", "b"])).embeddings), 2)

    def test_errors(self):
        from pydantic_ai.exceptions import ModelHTTPError
        with self.assertRaises(ModelHTTPError) as raised:
            self.agent(model="none").run_sync(COMMAND)
        self.assertEqual(raised.exception.status_code, 404)


class OpenAIAgents(Client):
    PACKAGES = ("openai-agents",)
    MODELS = ("OpenAIChatCompletionsModel", "OpenAIResponsesModel")

    def agent(self, name, model="demo", **fields):
        import agents
        import openai
        agents.set_tracing_disabled(True)
        client = openai.AsyncOpenAI(base_url=base(), api_key=KEY, max_retries=0)
        settings = agents.ModelSettings(temperature=0, max_tokens=60, tool_choice="required" if "tools" in fields else None)
        return agents.Agent("lamps", model=getattr(agents, name)(model, openai_client=client), model_settings=settings, **fields)

    def run_agent(self, *arguments, **fields):
        import agents
        return agents.Runner.run_sync(self.agent(*arguments, **fields), COMMAND, max_turns=3)

    def test_chat(self):
        self.assertEqual(self.run_agent(self.MODELS[0], instructions="Be brief.").final_output, ANSWER)

    def test_responses(self):
        self.assertEqual(self.run_agent(self.MODELS[1], instructions="Be brief.").final_output, ANSWER)

    def test_stream(self):
        import agents

        async def events(name):
            running = agents.Runner.run_streamed(self.agent(name), COMMAND)
            return [event.type async for event in running.stream_events()], running.final_output
        for name in self.MODELS:
            types, output = asyncio.run(events(name))
            self.assertEqual(output, ANSWER)
            self.assertIn("raw_response_event", types)

    def test_tools(self):
        import agents
        for name in self.MODELS:
            run = self.run_agent(name, tools=[agents.function_tool(play)])
            self.assertEqual(run.final_output, ANSWER)
            self.assertEqual([type(item).__name__ for item in run.new_items],
                             ["ToolCallItem", "ToolCallOutputItem", "MessageOutputItem"])

    def test_form(self):
        for name in self.MODELS:
            self.assertIn(self.run_agent(name, output_type=music()).final_output.what, ("jazz", "rock"))

    def test_errors(self):
        import openai
        for name in self.MODELS:
            with self.assertRaises(openai.NotFoundError):
                self.run_agent(name, model="none")


class Smolagents(Client):
    PACKAGES = ("smolagents[openai]",)
    MESSAGES = [{"role": "user", "content": [{"type": "text", "text": COMMAND}]}]

    def model(self, name="demo"):
        import smolagents
        return smolagents.OpenAIModel(name, api_base=base(), api_key=KEY, temperature=0)

    def test_chat(self):
        answer = self.model().generate(self.MESSAGES)
        self.assertEqual(answer.content, ANSWER)
        self.assertGreater(answer.token_usage.output_tokens, 3)
        self.assertEqual(self.model().generate(self.MESSAGES, stop_sequences=["device"]).content, '{"do":"on","')

    def test_stream(self):
        self.assertEqual("".join(part.content or "" for part in self.model().generate_stream(self.MESSAGES)), ANSWER)

    def test_tools(self):
        import smolagents

        @smolagents.tool
        def play(what: str) -> str:
            """Plays music.

            Args:
                what: jazz or rock
            """
            return "on " + what
        called = self.model().generate(self.MESSAGES, tools_to_call_from=[play], stop_sequences=["Observation:"])
        self.assertEqual(called.tool_calls[0].function.name, "play")
        back = [*self.MESSAGES, {"role": "assistant", "content": [{"type": "text", "text": "play"}]},
                {"role": "tool-response", "content": [{"type": "text", "text": "on"}]}]
        self.assertTrue(self.model().generate(back).content)

    def test_form(self):
        form = {"type": "json_schema", "json_schema": {"name": "music", "schema": TOOL["function"]["parameters"]}}
        self.check_form(self.model().generate(self.MESSAGES, response_format=form).content)

    def test_errors(self):
        import openai
        with self.assertRaises(openai.NotFoundError):
            self.model("none").generate(self.MESSAGES)


class AG2(Client):
    PACKAGES = ("ag2[openai]",)

    def ask(self, kind="OpenAIConfig", model="demo", streaming=False, **fields):
        import ag2
        import ag2.config
        config = getattr(ag2.config, kind)(model=model, base_url=base(), api_key=KEY, temperature=0, streaming=streaming)
        return ag2.Agent("lamps", config=config, **fields).ask(COMMAND)

    def said(self, **fields):
        async def body():
            return (await self.ask(**fields)).body
        return asyncio.run(body())

    def test_chat(self):
        self.assertEqual(self.said(), ANSWER)

    def test_stream(self):
        self.assertEqual(self.said(streaming=True), ANSWER)

    def test_responses(self):
        self.assertEqual(self.said(kind="OpenAIResponsesConfig"), ANSWER)

    def test_form(self):
        async def content():
            return await (await self.ask(response_schema=music())).content()
        self.assertIn(asyncio.run(content()).what, ("jazz", "rock"))

    def test_errors(self):
        import openai
        with self.assertRaises(openai.NotFoundError):
            self.said(model="none")


class Strands(Client):
    PACKAGES = ("strands-agents[openai]",)

    def agent(self, model="demo", **fields):
        import strands
        from strands.models.openai import OpenAIModel
        client = {"base_url": base(), "api_key": KEY, "max_retries": 0}
        made = OpenAIModel(client_args=client, model_id=model, params={"temperature": 0, "max_tokens": 60})
        return strands.Agent(model=made, callback_handler=None, **fields)

    def test_stream(self):
        answer = self.agent()(COMMAND)
        self.assertEqual(str(answer).strip(), ANSWER)
        self.assertGreater(answer.metrics.accumulated_usage["outputTokens"], 3)

    def test_tools(self):
        import strands
        self.assertEqual(str(self.agent(tools=[strands.tool(play)])(COMMAND)).strip(), ANSWER)
        self.assertIn(self.agent()(COMMAND, structured_output_model=music()).structured_output.what, ("jazz", "rock"))

    def test_errors(self):
        import openai
        with self.assertRaises(openai.NotFoundError):
            self.agent("none")(COMMAND)

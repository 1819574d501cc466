"""Conversations: messages in, an answer out, with calls of tools and forms of answers."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _fovea
from ._arguments import json_text, word
from ._arrays import Ids

if TYPE_CHECKING:
    from ._opened import OpenedModel

Message = Mapping[str, Any]
Schema = Union[str, Mapping[str, Any], Any]
_NOT_READ = "tools: the model answers each message by itself, and so it is told of none"


def form_of(
    model: OpenedModel, schema: Schema | None, grammar: str | None, regex: str | None, compact: bool
) -> _fovea.Form | None:
    """Return the compiled form, which the model keeps for the next time; None where none is asked for."""
    given = {"schema": schema, "grammar": grammar, "regex": regex}
    named = {kind: text for kind, text in given.items() if text is not None}
    if not named:
        return None
    if len(named) > 1:
        raise ValueError(f"{', '.join(named)}: expected one of them, got {len(named)}")
    kind, text = next(iter(named.items()))
    if isinstance(text, ForcedCall):
        kind = "call"
    elif kind == "schema":
        text = schema_text(text)
    elif not isinstance(text, str):
        raise TypeError(f"{kind}: expected a str, got {type(text).__name__}")
    found: _fovea.Form = model._form(kind, text, bool(compact))
    return found


class ForcedCall(str):
    """A call that the answer must be, as JSON that the extension reads: in the place of a schema."""


def schema_text(schema: Schema) -> str:
    """Return a schema as JSON: of a dict, of its text, or of a pydantic model."""
    if isinstance(schema, str):
        return schema
    if hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    if not isinstance(schema, (Mapping, bool)):
        raise TypeError(f"schema: expected a dict, JSON or a pydantic model, got {type(schema).__name__}")
    return json_text(schema, "schema")


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for: a tool's name, and its arguments by theirs."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class ChatAnswer:
    """What a model answered.

    content: the text, without reasoning and calls of tools.
    reasoning: what the model thought before it.
    tool_calls: what it asks to be called, in order.
    finish_reason: "end" (the model's own), "stop", "length" or "context".
    n_prompt_tokens, n_tokens: of the conversation and of the answer.
    """

    content: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    n_prompt_tokens: int
    n_tokens: int
    reasoning: str = ""

    def __str__(self) -> str:
        """Return the text."""
        return self.content

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message, for the conversation to go on with."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            calls = [{"name": call.name, "arguments": call.arguments} for call in self.tool_calls]
            message["tool_calls"] = [{"type": "function", "function": call} for call in calls]
        return message


class ChatStream:
    """An answer while it is made: iterate over its pieces of text; then `answer` has all of it."""

    def __init__(self, pieces: Iterator[str], reader: _fovea.AnswerReader, ends: dict[str, Any]) -> None:
        self._pieces, self._reader, self._ends = pieces, reader, ends
        self._texts = self._said()
        self._parts: list[tuple[str, str]] = []
        self._answer: ChatAnswer | None = None

    def __iter__(self) -> Iterator[str]:
        """Return itself: the pieces of text that have not come yet."""
        return self

    def __next__(self) -> str:
        """Return the next piece of text; reasoning and calls are left out."""
        return next(self._texts)

    def _said(self) -> Iterator[str]:
        for piece in self._pieces:
            yield from self._part(self._reader.add(piece))
        yield from self._part(self._reader.finish())

    def _part(self, part: tuple[str, str]) -> Iterator[str]:
        self._parts.append(part)
        if part[0]:
            yield part[0]

    @property
    def answer(self) -> ChatAnswer:
        """The whole answer. What was not iterated over yet is computed."""
        if self._answer is None:
            for _ in self:
                pass
            if "figures" not in self._ends:
                raise ValueError("answer: expected a stream that has ended, got one that an error or close ended")
            figures = self._ends["figures"]
            self._answer = ChatAnswer(
                content="".join(said for said, _ in self._parts),
                reasoning="".join(thought for _, thought in self._parts),
                tool_calls=tuple(ToolCall(name, json.loads(arguments)) for name, arguments in self._reader.calls),
                finish_reason=self._ends["finish_reason"],
                n_prompt_tokens=figures["n_prompt"],
                n_tokens=figures["n_tokens"],
            )
        return self._answer


class BegunChat(NamedTuple):
    """A conversation's ids, the template whose tokens end the answer, what reads that, and the call that it must be."""

    ids: Ids
    chat: _fovea.Chat | None
    reader: _fovea.AnswerReader
    call: ForcedCall | None


def prompt_of(
    model: OpenedModel,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    chat_template: str | None,
    template_arguments: Mapping[str, Any] | None,
    tool_choice: str = "auto",
    has_form: bool = False,
) -> BegunChat:
    """Return the conversation's ids, what reads the answer, and the form of a call that it must be."""
    if isinstance(messages, (str, bytes)) or not isinstance(messages, Iterable):
        raise TypeError(f"messages: expected a list of dicts, got {type(messages).__name__}")
    if chat_template is not None:
        word(chat_template, "chat_template")
    checked = [_checked(message, number) for number, message in enumerate(messages)]
    if not checked:
        raise ValueError("messages: expected 1 or more, got none")
    given, suffix = json_text(tools, "tools"), model._facts["prompt_suffix"]
    if chat_template is None and suffix and not model._facts["has_chat_template"]:
        # A model whose prompts a text closes answers one text at a time: the last that a user said.
        said = [message["content"] for message in checked if message["role"] == "user"]
        _tell(model, _note_of(model, model._chat(None)))
        if tools:
            _tell(model, _NOT_READ)
        if not said or not isinstance(said[-1], str):
            raise ValueError("messages: expected one of role user with a text, got none")
        call = forced_call(tools, tool_choice, None)
        return BegunChat(model.tokenize(said[-1] + suffix), None, _fovea.AnswerReader.plain(given, call or ""), call)
    chat: _fovea.Chat = model._chat(chat_template)
    _tell(model, _note_of(model, chat))
    conversation, extra = json_text(checked, "messages"), json_text(template_arguments or {}, "template_arguments")
    call = forced_call(tools, tool_choice, chat)
    ids, reader = chat.begin(conversation, given, extra, call or "", has_form)
    return BegunChat(ids, chat, reader, call)


def _note_of(model: OpenedModel, chat: _fovea.Chat) -> str:
    return chat.note and f"{model._path or 'model'}: {chat.note}"


def _tell(model: OpenedModel, words: str) -> None:
    """Warn, once, of what a user should know of a model, at the line that called this package."""
    if words and words not in model._told:
        model._told.add(words)
        level, frame = 2, sys._getframe(1)
        while frame.f_back and frame.f_globals.get("__package__") == __package__:
            level, frame = level + 1, frame.f_back
        warnings.warn(words, UserWarning, stacklevel=level)


def checked_tools(tools: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the tools as templates take them: {"type": "function", "function": {"name": ..., "parameters": ...}}."""
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, (Iterable, type(None))):
        raise TypeError(f"tools: expected a list of dicts, got {type(tools).__name__}")
    result = []
    for number, tool in enumerate(tools or ()):
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or not function["name"]:
            raise ValueError(f"tools[{number}]: expected an object with a function's name, got {str(tool)[:60]!r}")
        result.append({"type": "function", "function": dict(function)})
    return result


def forced_call(tools: Sequence[Mapping[str, Any]] | None, choice: str, chat: _fovea.Chat | None) -> ForcedCall | None:
    """Return the call of the tool of that name, or of any of them where `choice` is "required"; None: it is free."""
    if choice in ("auto", "none"):
        return None
    if not tools:
        raise ValueError(f"tool_choice: expected tools beside {choice!r}, got none")
    if choice != "required" and all(choice != tool["function"]["name"] for tool in tools):
        raise ValueError(f"tool_choice: expected auto, none, required or a tool's name, got {choice!r}")
    name = "" if choice == "required" else choice
    dialect = {"dialect": chat.dialect if chat else "hermes", "in_prompt": bool(chat)}
    return ForcedCall(json_text({**dialect, "tools": tools, "name": name}, "tools"))


def _text_of(content: Any, place: str) -> str:
    """Return a message's text: a string, or parts of which each is one."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, (list, tuple)):
        raise TypeError(f"{place}: expected a str or a list of parts, got {type(content).__name__}")
    for part in content:
        if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise ValueError(f"{place}: expected parts of type text, got {kind!r}")
    return "".join(part["text"] for part in content)


def _checked(message: Any, number: int) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise TypeError(f"messages[{number}]: expected a dict with role and content, got {type(message).__name__}")
    if not isinstance(message.get("role"), str):
        raise ValueError(f"messages[{number}]: expected a role, got {message.get('role')!r}")
    result = dict(message)
    result["content"] = _text_of(result.get("content"), f"messages[{number}]: content")
    calls = []
    for call in result.get("tool_calls") or ():
        function = dict(call.get("function", call)) if isinstance(call, Mapping) else {}
        if isinstance(function.get("arguments"), str):  # as OpenAI's clients have them; templates want objects
            with suppress(ValueError):
                function["arguments"] = json.loads(function["arguments"])
        calls.append({**call, "function": function} if isinstance(call, Mapping) else call)
    if calls:
        result["tool_calls"] = calls
    return result

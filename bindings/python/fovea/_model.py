"""A model: text, logits, vectors and attention from one mapped file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Union

from . import _convert, _fovea
from ._arguments import byte_string, isa_name, real, whole, words
from ._arrays import Floats, Ids, counted, new_array
from ._attention import AttentionPattern, labels_of
from ._chat import (
    ChatAnswer,
    ChatStream,
    Message,
    checked_tools,
    prompt_of,
)
from ._opened import OF_OPENED
from ._options import options_of, takes_options, text_options
from ._speech import SpeechModel
from ._translation import TranslationModel
from ._vectors import VectorModel

Adapter = Union[str, "os.PathLike[str]", tuple[Union[str, "os.PathLike[str]"], float]]


class Model(SpeechModel, TranslationModel, VectorModel):
    """A model, opened in microseconds: its file is mapped, and its weights are read where they lie when they are used.

    path: a Fovea file; or a Hugging Face folder, a GGUF or a .safetensors file, which is converted once into the user's
        cache folder ($XDG_CACHE_HOME/fovea), with a line on standard error that says so.
    type: of a source's weights, its own by default; see :func:`fovea.convert`. tokenizer: a file beside the source.
    n_threads, isa: of every pass that the model's own methods make. They change no bit of any result.
    verify: also compute the checksum of every byte.
    adapters: low-rank adapters of the model, whose products every pass adds in their order: files that
        :func:`fovea.convert_adapter` made, each a path or a tuple of a path and its scale.

    Any number of threads may use one model: its methods keep a session for each. A model is closed by :meth:`close`, by
    `with`, or when nobody has it any more. It can be pickled: another process maps the same file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        type: str | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        n_threads: int = 0,
        isa: str = "",
        verify: bool = False,
        adapters: Sequence[Adapter] = (),
    ) -> None:
        n_threads, isa, scaled = whole(n_threads, "n_threads"), isa_name(isa), _scaled(adapters)
        native = _fovea.Model(_convert.cached(path, type, tokenizer), bool(verify), scaled)
        arguments = {  # as another process is to have them, wherever it works
            "type": type,
            "tokenizer": None if tokenizer is None else os.path.abspath(os.fsdecode(tokenizer)),
            "n_threads": n_threads,
            "isa": isa,
            "verify": bool(verify),
            "adapters": [(os.path.abspath(adapter), scale) for adapter, scale in scaled],
        }
        self._set(native, os.path.abspath(os.fsdecode(path)), arguments)

    @classmethod
    def _of(cls, native: _fovea.Model, path: str | None = None) -> Model:
        model = cls.__new__(cls)
        model._set(native, path, {})
        return model

    @classmethod
    def from_bytes(cls, data: bytes, *, adapters: Sequence[Adapter] = ()) -> Model:
        """Open a Fovea file that is in memory; its bytes are copied once."""
        return cls._of(_fovea.Model.from_bytes(byte_string(data, "data"), "bytes", _scaled(adapters)))

    def __reduce__(self) -> Any:
        """Pickle the path: whoever unpickles it opens the file."""
        if self._path is None:
            raise TypeError("model: expected one of a file to pickle, got one in memory")
        own_state = getattr(type(self), "__getstate__", None)
        if own_state in (None, getattr(object, "__getstate__", None)):
            state = {name: value for name, value in self.__dict__.items() if name not in OF_OPENED}
        else:  # a subclass knows better
            state = own_state(self)
        return _reopen, (self.__class__, self._path, self._arguments), state or None

    def close(self) -> None:
        """Let the file go, once the sessions that use it are gone. Every later call raises ValueError."""
        self._native.close()
        self._kept = threading.local()
        self._forget_forms()

    def __enter__(self) -> Model:
        """Return the model, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the model."""
        self.close()

    def __repr__(self) -> str:
        """Return name and size."""
        return f"<fovea.Model {self.name!r}: {self.architecture}, {self.n_layers} layers, d_model {self.d_model}>"

    # ---- continuations -----------------------------------------------------------------------------------------------

    @takes_options(text_options, max_new_tokens=128)
    def generate(self, prompt: Any, **options: Any) -> str:
        """Return the continuation of `prompt`, without the prompt: the text of `fovea run`, to the last bit.

        What the prompt shares with this thread's last one is not computed again. FullError where the prompt is longer
        than the context.
        """
        return "".join(self.stream(prompt, **options))

    @takes_options(text_options, max_new_tokens=128)
    def stream(self, prompt: Any, **options: Any) -> Iterator[str]:
        """Yield the continuation of `prompt` in pieces, as they are made."""
        return self._stream(prompt, {"max_new_tokens": 128, **options}, {}, None)

    def _stream(
        self, prompt: Any, options: dict[str, Any], ends: dict[str, Any], chat: _fovea.Chat | None
    ) -> Iterator[str]:
        """Check at once what can be, and return what computes when it is asked for a piece."""
        known = options_of(prompt, options)
        known["prompt"] = self._prompt_ids(prompt, known["special"])
        self._need_text()
        known["max_new_tokens"] = whole(known["max_new_tokens"], "max_new_tokens")
        return self._streamed(known, ends, chat)

    def _streamed(self, options: dict[str, Any], ends: dict[str, Any], chat: _fovea.Chat | None) -> Iterator[str]:
        room = self._room(len(options["prompt"]) + options["max_new_tokens"])
        with self._session("text", max_kv_len=room) as session:
            yield from session._stream(options, chat)
            ends.update(finish_reason=session.finish_reason, figures=session._native.figures)

    def chat(self, messages: Sequence[Message], **options: Any) -> ChatAnswer:
        """Return the model's answer to a conversation, by its own chat template.

        messages: dicts with "role" and "content", as OpenAI's and transformers' are; `answer.message` is the next one.
        tools: {"type": "function", "function": {"name", "description", "parameters": a JSON schema}} each, or what
            "function" has alone. tool_choice: "auto"; "none"; "required": the answer is a call; a name: of that tool.
        chat_template: in place of the model's own. template_arguments: more variables of it ("enable_thinking").
        schema, grammar, regex and the others: as :meth:`generate` has them. What is not named of how tokens are chosen
            is as the model's file has it (`config["sampling"]`).

        Where the model ends its turn the answer ends. A template that knows no tools gets them as a text of the
        system. A warning says, once, that a model has no template, or is told of no tools. FullError where the
        conversation is longer than the context: nothing is left out of it unasked.
        """
        return self.stream_chat(messages, **options).answer

    def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Any] | None = None,
        tool_choice: str = "auto",
        chat_template: str | None = None,
        template_arguments: dict[str, Any] | None = None,
        max_new_tokens: int = 512,
        **options: Any,
    ) -> ChatStream:
        """Do the same piece by piece: iterate over the result; its `answer` has all, calls of tools too."""
        self._need_logits()
        known = [] if tool_choice == "none" else checked_tools(tools)
        has_form = any(options.get(name) is not None for name in ("schema", "grammar", "regex"))
        if tool_choice not in ("auto", "none") and has_form:
            raise ValueError("tool_choice: expected auto or none beside a form, got another")
        begun = prompt_of(self, messages, known or None, chat_template, template_arguments, tool_choice, has_form)
        if begun.call is not None:
            options["schema"] = begun.call
        if begun.chat is not None:
            options["stop"] = [*words(options.pop("stop", None), "stop"), *begun.chat.stops]
        ends: dict[str, Any] = {}
        own = self._facts["sampling"]
        pieces = self._stream(begun.ids, {"max_new_tokens": max_new_tokens, **own, **options}, ends, begun.chat)
        return ChatStream(pieces, begun.reader, ends)

    def logits(self, ids: str | Ids, *, out: Any = None) -> Floats:
        """Return the logits after every token: [seq_len, vocab_size] float32, unnormalised.

        ids: [seq_len] whole numbers: a list, an array, whatever gives them one by one; or a text.
        out: where they go; by default a new array.

        FullError where there are more of them than the context has positions.
        """
        self._need_logits()
        ids = self.tokenize(ids) if isinstance(ids, str) else counted(ids, "ids")
        if len(ids) > self.max_positions:
            raise _fovea.FullError(f"ids: expected at most {self.max_positions}, got {len(ids)}")
        with self._session("text", max_kv_len=self._room(len(ids))) as session:
            session.rewind()
            return session.forward_all(ids, out=out)

    # ---- looking at attention ----------------------------------------------------------------------------------------

    def attention(self, text: str | Ids, *, layers: Sequence[int] | None = None) -> AttentionPattern:
        """Return what each token of `text` attends to: [layer, head, query, key], a page of which a notebook shows.

        layers: all that attend by default. Each takes a pass of its own; the passes have the same bits, so they fit
        together.
        """
        ids = self.tokenize(text) if isinstance(text, str) else counted(text, "text")
        if not self.vocab_size:
            raise ValueError("text: expected a model that reads ids, got one of vectors; see encode_arrays")
        if not 0 < len(ids) <= self.max_positions:
            kind = _fovea.FullError if len(ids) else ValueError
            raise kind(f"text: expected 1 to {self.max_positions} tokens, got {len(ids)}")
        heads = self._stack["heads_of_layers"]
        that_attend = [layer for layer, n_heads in enumerate(heads) if n_heads]
        given = that_attend if layers is None else counted(layers, "layers")
        chosen = tuple(whole(layer, "layers") for layer in given)
        if not chosen or not all(layer in that_attend for layer in chosen):
            raise ValueError(f"layers: expected numbers of those that attend, {that_attend}, got {list(chosen)}")
        weights = new_array((len(chosen), heads[chosen[0]], len(ids), len(ids)), "text")
        limits = {"max_kv_len": self._room(len(ids))} if self.gives_logits else {"max_batch": self._room(len(ids))}
        with self._session("text" if self.gives_logits else "rows", **limits) as session:
            session._native.attention(ids, list(chosen), weights)
        labels = labels_of(self._native, [int(i) for i in ids], has_tokenizer=self.has_tokenizer)
        return AttentionPattern(weights=weights, tokens=labels, layers=chosen, model=os.path.basename(self._path or ""))


def _scaled(adapters: Sequence[Adapter]) -> list[tuple[str, float]]:
    """Return paths with their scales."""
    if isinstance(adapters, (str, os.PathLike)):
        raise TypeError("adapters: expected a list, got a path")
    if not isinstance(adapters, Iterable):
        raise TypeError(f"adapters: expected a list, got {type(adapters).__name__}")
    scaled = []
    for one in adapters:
        if isinstance(one, tuple) and len(one) != 2:
            raise TypeError(f"adapters: expected a path or a tuple of a path and its scale, got a tuple of {len(one)}")
        path, scale = one if isinstance(one, tuple) else (one, 1.0)
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"adapters: expected paths, got {type(path).__name__}")
        scaled.append((_convert.existing(path), real(scale, "adapters: scale")))
    return scaled


def _reopen(kind: type[Model], path: str, arguments: dict[str, Any]) -> Model:
    model = kind.__new__(kind)  # a subclass may be made of something else than a path
    Model.__init__(model, path, **arguments)
    return model

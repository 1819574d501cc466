"""What every kind of model has: facts, ids of texts, plans, and a session for each thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal, overload

from . import _fovea
from ._arguments import word
from ._arrays import Ids, counted
from ._plan import Limits, Plan, make_plan
from ._session import Session

_FORMS = 32  # compiled forms of answers that a model keeps


# What `_set` gives a model. A pickle has the rest, which is a subclass's.
OF_OPENED = frozenset(
    (
        *("_native", "_path", "_arguments", "_n_threads", "_isa", "_kept", "_form", "_chat", "_told"),
        *("_facts", "_stack"),
    )
)


class OpenedModel:
    """A mapped file and what it says of itself."""

    def _set(self, native: _fovea.Model, path: str | None, arguments: dict[str, Any]) -> None:
        self._native, self._path, self._arguments = native, path, arguments
        self._n_threads: int = arguments.get("n_threads", 0)
        self._isa: str = arguments.get("isa", "")
        self._kept = threading.local()
        self._told: set[str] = set()  # what it was warned of
        self._forget_forms()
        facts = native.facts()
        facts["default_prompt_name"] = facts["default_prompt_name"] or None
        self._facts = facts
        self._stack: dict[str, Any] = facts.get("decoder") or facts["encoder"]

    def _forget_forms(self) -> None:
        native = self._native  # and not self, so that a model goes as soon as nobody has it
        self._form = lru_cache(_FORMS)(lambda kind, text, compact: _fovea.Form(native, kind, text, compact))
        self._chat = lru_cache(4)(lambda chat_template: _fovea.Chat(native, chat_template))

    # ---- what it is --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What the converter was given."""
        return str(self._facts["name"])

    @property
    def architecture(self) -> str:
        """The source's own word: "llama", "bert", …."""
        return str(self._facts["architecture"])

    @property
    def config(self) -> dict[str, Any]:
        """Sizes of its stacks, under "encoder" and "decoder", and what else the file says of itself."""
        return dict(self._facts)

    @property
    def vocab_size(self) -> int:
        """How many ids there are; 0 for models of vectors."""
        return int(self._stack["vocab_size"])

    @property
    def d_model(self) -> int:
        """The width of its vectors."""
        return int(self._stack["d_model"])

    @property
    def vector_width(self) -> int:
        """The width of what :meth:`encode` gives: d_model, or that of the map behind a sentence encoder's pooling."""
        return int(self._facts["vector_width"])

    @property
    def n_layers(self) -> int:
        """The layers of the stack whose result it gives."""
        return int(self._stack["n_layers"])

    @property
    def n_heads(self) -> int:
        """Query heads of its first layer."""
        return int(self._stack["n_heads"])

    @property
    def max_positions(self) -> int:
        """The longest text it was made for, in tokens."""
        return int(self._stack["max_positions"])

    @property
    def max_seq_length(self) -> int:
        """The most tokens of a text that is read whole: what a sentence-transformers folder says, or max_positions."""
        return int(self._facts["max_seq_length"])

    @property
    def labels(self) -> list[str]:
        """The labels of a model for classes or words, in the order of their ids; none of another's."""
        return list(self._facts["labels"])

    @property
    def gives_logits(self) -> bool:
        """Whether it continues texts; else it gives vectors."""
        return bool(self._facts["gives_logits"])

    @property
    def has_tokenizer(self) -> bool:
        """Whether its file holds a tokenizer."""
        return bool(self._facts["has_tokenizer"])

    @property
    def prompts(self) -> dict[str, str]:
        """What :meth:`Model.encode` may put before texts, by a name for each task."""
        return dict(self._facts["prompts"])

    @property
    def default_prompt_name(self) -> str | None:
        """The name of the prompt that is used unasked."""
        return self._facts["default_prompt_name"]  # type: ignore[no-any-return]

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._native.closed

    def _refused(self, words: str) -> ValueError:
        return ValueError(f"{self._path}: model: {words}" if self._path else f"model: {words}")

    def _need_logits(self) -> None:
        if self._facts["writes_target"]:
            raise self._refused("expected one that continues its prompt, got one that translates; see Model.translate")
        if not self.gives_logits:
            raise self._refused("expected one for logits, got one for vectors")

    def _need_text(self) -> None:
        self._need_logits()
        if not self.has_tokenizer:
            words = "expected one with a tokenizer, whose continuation is a text, got one without"
            raise self._refused(f"{words}; Session.forward gives the logits of ids")

    # ---- text and ids ------------------------------------------------------------------------------------------------

    @overload
    def tokenize(
        self, text: str, *, add_special: bool = ..., parse_special: bool = ..., return_offsets: Literal[False] = ...
    ) -> list[int]: ...
    @overload
    def tokenize(
        self, text: str, *, add_special: bool = ..., parse_special: bool = ..., return_offsets: Literal[True]
    ) -> tuple[list[int], list[tuple[int, int]]]: ...
    def tokenize(
        self, text: str, *, add_special: bool = True, parse_special: bool = False, return_offsets: bool = False
    ) -> list[int] | tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of `text`.

        add_special: with the tokens that the model wants around a text. parse_special: "<|name|>" in it is that token.
        return_offsets: with each token's place, ``text[begin:end]``, as the ``tokenizers`` package has it. A token's
        own space counts; tokens that stand for no part of the text have (0, 0).
        """
        options = (word(text, "text"), bool(add_special), bool(parse_special))
        return self._native.tokenize_with_offsets(*options) if return_offsets else self._native.tokenize(*options)

    def detokenize(self, ids: Ids, *, show_special: bool = False) -> str:
        """Return the text that `ids` stand for; bytes that are no character come out as U+FFFD."""
        return self._native.detokenize(counted(ids, "ids"), bool(show_special))

    def _prompt_ids(self, prompt: str | Ids, special: bool = False) -> Any:
        if isinstance(prompt, str):
            return self.tokenize(prompt + self._facts["prompt_suffix"], parse_special=special)
        return counted(prompt, "prompt")

    # ---- memory, sessions --------------------------------------------------------------------------------------------

    def plan(self, **limits: Any) -> Plan:
        """Return the exact memory of a session with these :class:`fovea.Limits`, before any is taken."""
        return make_plan(self._native, Limits(**limits))

    def session(self, **limits: Any) -> Session:
        """Return a :class:`fovea.Session` with these limits."""
        return Session(self, **limits)

    def _room(self, n: int) -> int:
        """A session's length for n positions: a power of two, so that the next text, a little longer, fits too."""
        return min(max(128, 1 << (max(n, 1) - 1).bit_length()), self.max_positions)

    def _memory(self) -> dict[str, Any]:
        """What this thread keeps for its calls; in a forked child nothing, for their threads stayed with its parent."""
        kept = self._kept.__dict__
        if kept.get("pid") != os.getpid():
            kept.clear()
            kept["pid"] = os.getpid()
        return kept

    @contextmanager
    def _session(self, kind: str, **limits: Any) -> Iterator[Session]:
        """This thread's session for that kind of work, where it is large enough; nobody else has it in the block."""
        kept = self._memory()
        session, had = kept.pop(kind, (None, {}))
        if session is None or any(had[name] < limits[name] for name in limits):
            session, had = None, limits  # its memory goes before the new one's comes
            session = Session(self, n_threads=self._n_threads, isa=self._isa, **limits)
        try:
            yield session
        finally:
            if not self._native.closed:
                kept[kind] = (session, had)

"""Sessions: one text at a time; workspaces, pools and steps: many texts in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _fovea
from ._arguments import byte_string, isa_name, native_cache, native_model, whole, words
from ._arrays import Floats, Ids, counted
from ._chat import form_of
from ._options import options_of, takes_options, text_options
from ._plan import Limits

if TYPE_CHECKING:
    from ._opened import OpenedModel


class Session:
    """What computes and what remembers one text, in an arena of its own.

    Any number of sessions share a model's bytes. Calls from several threads wait for one another; for work at the same
    time give each thread a session, made on that thread. The arguments are those of :class:`fovea.Limits`.
    """

    def __init__(
        self,
        model: OpenedModel,
        *,
        max_kv_len: int = 0,
        max_batch: int = 0,
        n_threads: int = 0,
        kv_type: str = "f32",
        max_sequences: int = 0,
        max_key_rows: int = 0,
        isa: str = "",
    ) -> None:
        limits = Limits(max_kv_len, max_batch, n_threads, kv_type, max_sequences, max_key_rows)
        self._model = model
        self._limits = limits
        self._native = _fovea.Session(native_model(model), limits._named(), isa_name(isa))
        self._vocab_size = model.vocab_size
        self.finish_reason = ""

    def forward(self, ids: Ids | Floats, *, out: Any = None) -> Floats:
        """Append `ids` to the text and compute the logits that follow the last of them.

        ids: [seq_len] whole numbers below vocab_size; or in their place [seq_len, d_model] float32, C-contiguous: rows
            of an image, say, as `inputs_embeds` of transformers are.
        out: [vocab_size] float32, written and returned; by default a new array.

        FullError where the context ends; nothing has changed then.
        """
        if out is None:
            out = np.empty(self._vocab_size, dtype=np.float32)
        self._native.forward(counted(ids, "ids"), out)
        return out  # type: ignore[no-any-return]

    def forward_all(self, ids: Ids | Floats, *, out: Any = None) -> Floats:
        """Do the same, with the logits after every id: [seq_len, vocab_size]."""
        known = counted(ids, "ids")
        if out is None:
            out = np.empty((len(known), self._vocab_size), dtype=np.float32)
        self._native.forward(known, out, True)
        return out  # type: ignore[no-any-return]

    def append(self, ids: Ids | Floats) -> None:
        """Append `ids` without computing logits."""
        self._native.forward(counted(ids, "ids"), None)

    def propose_by(self, draft: OpenedModel, *, always: bool = False) -> None:
        """Let `draft` guess tokens from here on, which the model verifies: the same texts, sooner where it is right.

        draft: a smaller model with the same tokens, or the model's next-token head (`fovea convert --mtp`). Texts take
            8 guesses a pass, or the option `speculate`. always: also where guessing does not pay.
        """
        self._native.propose_by(native_model(draft), bool(always))

    @takes_options(text_options)
    def stream(self, prompt: Any, **options: Any) -> Iterator[str]:
        """Continue `prompt`, piece by piece. What the session holds of it is not computed again."""
        return self._stream(options_of(prompt, options), None)

    def _stream(self, options: dict[str, Any], chat: _fovea.Chat | None) -> Iterator[str]:
        self._model._need_text()
        options["special"] = bool(options["special"])
        ids = self._model._prompt_ids(options.pop("prompt"), options["special"])
        stops, bias = words(options.pop("stop"), "stop"), options["logit_bias"] or {}
        if not isinstance(bias, Mapping):
            raise TypeError(f"logit_bias: expected a dict from ids to numbers, got {type(bias).__name__}")
        options["logit_bias"] = dict(bias)
        if options["max_new_tokens"] is None:
            del options["max_new_tokens"]
        else:
            options["max_new_tokens"] = whole(options["max_new_tokens"], "max_new_tokens")
        form = form_of(self._model, *(options.pop(name) for name in ("schema", "grammar", "regex", "compact")))
        return self._pieces(self._native.start(ids, options, stops, form, chat))

    def _pieces(self, text: int) -> Iterator[str]:
        self.finish_reason = ""
        while not self.finish_reason:
            piece, reason = self._native.next(text)
            self.finish_reason = reason
            if piece:
                yield piece

    @takes_options(text_options)
    def generate(self, prompt: Any, **options: Any) -> str:
        """Return what :meth:`stream` yields, joined."""
        return "".join(self.stream(prompt, **options))

    def rewind(self, kv_len: int = 0) -> int:
        """Forget every position from `kv_len` on. Return how many are left, 0 or `kv_len`: a session sets no marks."""
        return self._native.rewind(whole(kv_len, "kv_len"))

    def save(self) -> bytes:
        """Return what the session holds, as `fovea run --session` keeps it; another goes on from there, bit for bit."""
        return self._native.save()

    def restore(self, saved: bytes) -> None:
        """Become what the saved session was. ValueError where the bytes are damaged; nothing has changed then."""
        self._native.restore(byte_string(saved, "saved"))

    def fork(self) -> Session:
        """Return a session with the same limits that holds the same text."""
        other = Session(self._model, **self._limits._named(), isa=self.isa)
        other._native.copy_from(self._native)
        return other

    def cancel(self) -> None:
        """End the pass that runs, or the next one, from any thread: it raises :class:`fovea.Cancelled`."""
        self._native.cancel()

    @property
    def tokens(self) -> list[int]:
        """The ids that the cache holds."""
        return self._native.tokens

    @property
    def kv_len(self) -> int:
        """Positions cached so far."""
        return self._native.kv_len

    @property
    def max_kv_len(self) -> int:
        """Positions that there is room for."""
        return self._native.max_kv_len

    @property
    def isa(self) -> str:
        """The instruction set that runs it. It changes no bit of any result."""
        return self._native.isa

    @property
    def arena_bytes(self) -> int:
        """The memory it has taken: that of its plan."""
        return self._native.arena_bytes


class Cache:
    """What a model remembers of one text, as pages of a pool. Made by :meth:`CachePool.cache` and :meth:`fork`."""

    def __init__(self, native: _fovea.Cache) -> None:
        self._native = native

    def fork(self) -> Cache:
        """Return a cache that holds the same. Pages are shared, and copied when one of them writes."""
        return Cache(self._native.fork())

    def rewind(self, kv_len: int = 0) -> int:
        """Forget every position from `kv_len` on. Return how many are left.

        That is `kv_len`, except for models with recurrent layers: the latest :meth:`mark` at or below it, or 0.
        """
        return self._native.rewind(whole(kv_len, "kv_len"))

    def mark(self) -> None:
        """Keep the present state of recurrent layers for :meth:`rewind`. FullError without room."""
        self._native.mark()

    def save(self) -> bytes:
        """Return positions, keys and values; any cache or pool of the model restores them."""
        return self._native.save()

    def restore(self, saved: bytes) -> None:
        """Become what the saved cache was."""
        self._native.restore(byte_string(saved, "saved"))

    def close(self) -> None:
        """Give the pages back now, instead of when nobody has the cache any more."""
        self._native.close()

    @property
    def kv_len(self) -> int:
        """Positions cached so far; 0 once closed."""
        return self._native.kv_len

    @property
    def n_pages(self) -> int:
        """Pages held, shared ones too."""
        return self._native.n_pages


class CachePool:
    """Memory for the caches of many texts, cut into pages of `page_len` positions.

    memory: for what :meth:`Workspace.cache_memory` fills: a decoder's keys and values of what it attends to.
    max_marks, n_states: marks of a cache and states of all, for recurrent layers. 0: 2, and 2 + max_marks each.
    """

    def __init__(
        self,
        model: OpenedModel,
        *,
        max_sequences: int = 1,
        max_kv_len: int = 0,
        page_len: int = 64,
        n_pages: int = 0,
        kv_type: str = "f32",
        memory: bool = False,
        max_marks: int = 0,
        n_states: int = 0,
    ) -> None:
        limits = {
            "memory": bool(memory),
            "max_sequences": max_sequences,
            "max_kv_len": max_kv_len,
            "page_len": page_len,
            "n_pages": n_pages,
            "kv_type": kv_type,
            "max_marks": max_marks,
            "n_states": n_states,
        }
        self._native = _fovea.CachePool(native_model(model), limits)

    def cache(self) -> Cache:
        """Return an empty cache. FullError where `max_sequences` of them exist."""
        return Cache(self._native.cache())

    @property
    def n_free_pages(self) -> int:
        """Pages that no cache holds."""
        return self._native.n_free_pages

    @property
    def n_free_sequences(self) -> int:
        """Caches that can still be made."""
        return self._native.n_free_sequences

    @property
    def arena_bytes(self) -> int:
        """The memory it has taken."""
        return self._native.arena_bytes


class Step(NamedTuple):
    """Ids for one text.

    cache: what is appended to.
    ids: [n] whole numbers below vocab_size.
    logits: where the logits go: float32 [vocab_size] after the last id, [n, vocab_size] after each, None for none.
    memory: of a decoder that attends to one: what :meth:`Workspace.cache_memory` filled. Steps may share it.
    """

    cache: Cache
    ids: Ids
    logits: Any | None = None
    memory: Cache | None = None


class Workspace:
    """Threads, and the rows of one pass over many texts: the weights are read once for all of them."""

    def __init__(
        self,
        model: OpenedModel,
        *,
        max_batch: int = 0,
        max_sequences: int = 0,
        max_kv_len: int = 0,
        n_threads: int = 0,
        isa: str = "",
    ) -> None:
        limits = Limits(max_kv_len=max_kv_len, max_batch=max_batch, n_threads=n_threads, max_sequences=max_sequences)
        self._native = _fovea.Workspace(native_model(model), limits._named(), isa_name(isa))

    def forward(self, steps: Sequence[Step]) -> None:
        """Append each step's ids to its cache and compute its logits, all in one pass.

        A text's logits are those it has alone, in every bit. FullError, and nothing has changed, where a pool has no
        pages left or a context ends.
        """
        natives = []
        if not isinstance(steps, Iterable):
            raise TypeError(f"steps: expected a list of fovea.Step, got {type(steps).__name__}")
        for number, step in enumerate(steps):
            if not isinstance(step, tuple) or not 2 <= len(step) <= 4:
                raise TypeError(f"steps[{number}]: expected a fovea.Step, got {type(step).__name__}")
            cache, ids, logits, memory = Step(*step)
            at = None if memory is None else native_cache(memory, f"steps[{number}]: memory")
            natives.append((native_cache(cache, f"steps[{number}]: cache"), ids, logits, at))
        self._native.forward(natives)

    def cache_memory(self, memories: Sequence[Cache], sources: Sequence[Any]) -> None:
        """Compute what a decoder attends to, once for all steps to come: the encoder's vectors, as keys and values.

        memories: empty caches of a pool for memories, each of which gets one of the sources.
        sources: the encoder's ids [n], or float32 [n, d_model] where it reads vectors, or where there is no encoder the
            memory itself.

        Logits of steps beside it are those of the whole model at once, in every bit.
        """
        for given, name in ((memories, "memories"), (sources, "sources")):
            if not isinstance(given, Iterable):
                raise TypeError(f"{name}: expected a list, got {type(given).__name__}")
        natives = [native_cache(cache, f"memories[{number}]") for number, cache in enumerate(memories)]
        self._native.cache_memory(natives, list(sources))

    def cancel(self) -> None:
        """End the pass that runs, or the next one, from any thread: it raises :class:`fovea.Cancelled`."""
        self._native.cancel()

    @property
    def arena_bytes(self) -> int:
        """The memory it has taken: that of its plan."""
        return self._native.arena_bytes

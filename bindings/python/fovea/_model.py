"""A model: text, logits, vectors and attention from one mapped file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from . import _convert, _fovea
from ._arrays import Ids, float_array, new_array, shape_of
from ._attention import AttentionPattern, _packed, labels_of
from ._chat import (
    ChatAnswer,
    ChatStream,
    Message,
    Schema,
    checked_tools,
    prompt_of,
    reader_of,
    schema_of_calls,
)
from ._plan import Limits, Plan, make_plan
from ._progress import chunks, progress_bar
from ._session import Session

_ROWS = 1024  # tokens in one pass of an encoder
_FORMS = 32  # compiled forms of answers that a model keeps


class Model:
    """A model, opened in microseconds: its file is mapped, and its weights are read where they lie when they are used.

    path: a Fovea file; or a Hugging Face folder, a GGUF or a .safetensors file, which is converted once into the user's
        cache folder ($XDG_CACHE_HOME/fovea), with a line on standard error that says so.
    type: of a source's weights, its own by default; see :func:`fovea.convert`. tokenizer: a file beside the source.
    n_threads, isa: of every pass that the model's own methods make. They change no bit of any result.
    verify: also compute the checksum of every byte.

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
    ) -> None:
        arguments = {"type": type, "tokenizer": tokenizer, "n_threads": n_threads, "isa": isa}
        self._set(_fovea.Model(_convert.cached(path, type, tokenizer), verify), os.fspath(path), arguments)

    def _set(self, native: _fovea.Model, path: str | None, arguments: dict[str, Any]) -> None:
        self._native, self._path, self._arguments = native, path, arguments
        self._n_threads: int = arguments.get("n_threads", 0)
        self._isa: str = arguments.get("isa", "")
        self._kept = threading.local()
        self._forget_forms()
        facts = native.facts()
        for name in ("name", "architecture", "prompt_suffix"):
            facts[name] = facts[name].decode(errors="replace")
        self._facts = facts
        self._stack: dict[str, Any] = facts.get("decoder") or facts["encoder"]

    @classmethod
    def _of(cls, native: _fovea.Model, path: str | None = None) -> Model:
        model = cls.__new__(cls)
        model._set(native, path, {})
        return model

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Open a Fovea file that is in memory; its bytes are copied once."""
        return cls._of(_fovea.Model.from_bytes(bytes(data)))

    def __reduce__(self) -> Any:
        """Pickle the path: whoever unpickles it opens the file."""
        if self._path is None:
            raise TypeError("model: expected one of a file to pickle, got one in memory")
        return _reopen, (os.path.abspath(self._path), self._arguments)

    def close(self) -> None:
        """Let the file go, once the sessions that use it are gone. Every later call raises ValueError."""
        self._native.close()
        self._kept = threading.local()
        self._forget_forms()

    def _forget_forms(self) -> None:
        native = self._native  # and not self, so that a model goes as soon as nobody has it
        self._form = lru_cache(_FORMS)(lambda kind, text, compact: _fovea.Form(native, kind, text, compact))
        self._chat = lru_cache(4)(lambda chat_template: _fovea.Chat(native, chat_template))

    def __enter__(self) -> Model:
        """Return the model, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the model."""
        self.close()

    def __repr__(self) -> str:
        """Return name and size."""
        return f"<fovea.Model {self.name!r}: {self.architecture}, {self.n_layers} layers, d_model {self.d_model}>"

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
    def gives_logits(self) -> bool:
        """Whether it continues texts; else it gives vectors."""
        return bool(self._facts["gives_logits"])

    @property
    def has_tokenizer(self) -> bool:
        """Whether its file holds a tokenizer."""
        return bool(self._facts["has_tokenizer"])

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._native.closed

    # ---- text and ids ------------------------------------------------------------------------------------------------

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Return the ids of `text`.

        add_special: with the tokens that the model wants around a text. parse_special: "<|name|>" in it is that token.
        """
        return self._native.tokenize(text, add_special, parse_special)

    def detokenize(self, ids: Ids, *, show_special: bool = False) -> str:
        """Return the text that `ids` stand for; bytes that are no character come out as U+FFFD."""
        return self._native.detokenize(ids, show_special)

    def _prompt_ids(self, prompt: str | Ids, special: bool = False) -> Ids:
        if isinstance(prompt, str):
            return self.tokenize(prompt + self._facts["prompt_suffix"], parse_special=special)
        return prompt

    # ---- continuations -----------------------------------------------------------------------------------------------

    def generate(
        self,
        prompt: str | Ids,
        *,
        max_new_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repeat_penalty: float = 1.0,
        seed: int = 0,
        stop: str | Sequence[str] = (),
        special: bool = False,
        speculate: int = 0,
        schema: Schema | None = None,
        grammar: str | None = None,
        regex: str | None = None,
        compact: bool = False,
    ) -> str:
        """Return the continuation of `prompt`, without the prompt: the text of `fovea run`, to the last bit.

        prompt: a text, or ids as they are.
        max_new_tokens: at most; a text also ends where the model or the context ends it.
        temperature: 0 takes the likeliest. top_k: among the k likeliest (0: all). top_p: among the fewest that reach
            this probability. min_p: without what is less than this times as likely as the first.
        repeat_penalty: above 1, recent tokens become less likely. seed: one seed gives one text, on every machine.
        stop: texts that end the continuation, which has all before them.
        special: read special tokens in the prompt, and show those that come.
        speculate: tokens guessed ahead and verified in one pass: the same text, sooner where it repeats.
        schema, grammar, regex: one of them, which the whole continuation fits unless max_new_tokens or the context cut
            it: a JSON schema (a dict, its text, a pydantic model), a grammar as llama.cpp has them, an expression.
            compact: JSON without spaces between its parts.

        What the prompt shares with this thread's last one is not computed again. FullError where the prompt is longer
        than the context.
        """
        return "".join(
            self.stream(
                prompt,
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                min_p=min_p,
                repeat_penalty=repeat_penalty,
                seed=seed,
                stop=stop,
                special=special,
                speculate=speculate,
                schema=schema,
                grammar=grammar,
                regex=regex,
                compact=compact,
            )
        )

    def stream(
        self, prompt: str | Ids, *, max_new_tokens: int = 128, special: bool = False, **options: Any
    ) -> Iterator[str]:
        """Yield the continuation of `prompt` in pieces, as they are made; arguments as :meth:`generate` has them."""
        ids = self._prompt_ids(prompt, special)
        return self._stream(ids, {}, max_new_tokens=max_new_tokens, special=special, **options)

    def _stream(self, ids: Ids, ends: dict[str, Any], *, max_new_tokens: int, **options: Any) -> Iterator[str]:
        if not isinstance(max_new_tokens, int) or max_new_tokens < 0:
            raise ValueError(f"max_new_tokens: expected a whole number of 0 or more, got {max_new_tokens!r}")
        self._need_logits()
        with self._session("text", max_kv_len=self._room(len(ids) + max_new_tokens)) as session:
            yield from session.stream(ids, max_new_tokens=max_new_tokens, **options)
            ends.update(finish_reason=session.finish_reason, figures=session._native.figures)

    def chat(self, messages: Sequence[Message], **options: Any) -> ChatAnswer:
        """Return the model's answer to a conversation, by its own chat template.

        messages: dicts with "role" and "content", as OpenAI's and transformers' are; `answer.message` is the next one.
        tools: {"type": "function", "function": {"name", "description", "parameters": a JSON schema}} each, or what
            "function" has alone. tool_choice: "auto"; "none"; "required": the answer is a call; a name: of that tool.
        chat_template: in place of the model's own. template_arguments: more variables of it ("enable_thinking").
        schema, grammar, regex and the others: as :meth:`generate` has them.

        Where the model ends its turn the answer ends. FullError where the conversation is longer than the context:
        nothing is left out of it unasked.
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
        if tool_choice not in ("auto", "none"):
            if any(options.get(name) is not None for name in ("schema", "grammar", "regex")):
                raise ValueError("tool_choice: expected auto or none beside a form, got another")
            options["schema"] = schema_of_calls(known, tool_choice)
        ids, native = prompt_of(self, messages, known or None, chat_template, template_arguments)
        if native is not None:
            stop = options.pop("stop", ())
            options["stop"] = [*([stop] if isinstance(stop, str) else stop), *native.stops]
        ends: dict[str, Any] = {}
        pieces = self._stream(ids, ends, max_new_tokens=max_new_tokens, _chat=native, **options)
        return ChatStream(pieces, reader_of(known, tool_choice), ends)

    def logits(self, ids: str | Ids, *, out: Any = None) -> Any:
        """Return the logits after every token: [seq_len, vocab_size] float32, unnormalised.

        ids: [seq_len] whole numbers, or a text. out: where they go; by default a new array.
        """
        self._need_logits()
        if isinstance(ids, str):
            ids = self.tokenize(ids)
        if len(ids) > self.max_positions:
            raise ValueError(f"ids: expected at most {self.max_positions}, got {len(ids)}")
        with self._session("text", max_kv_len=self._room(len(ids))) as session:
            session.rewind()
            return session.forward_all(ids, out=out)

    def _need_logits(self) -> None:
        if not self.gives_logits:
            raise ValueError(f"{self._path or 'model'}: model: expected one for logits, got one for vectors")

    # ---- vectors -----------------------------------------------------------------------------------------------------

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        normalize_embeddings: bool = False,
        batch_size: int = 64,
        max_length: int = 0,
        show_progress_bar: bool | None = None,
        out: Any = None,
    ) -> Any:
        """Return a vector for each text: [n, d_model] float32; [d_model] for one str.

        texts: a list, a pandas Series, or anything that gives str; read in pieces, so that memory beyond the result
            does not grow with their number. Those of like length go through a pass together.
        normalize_embeddings: divide each vector by its length, where the model does not do so itself.
        batch_size: texts in one pass, at most. max_length: tokens of a text; by default the model's positions. Longer
            texts are cut, the tokens that close them stay.
        show_progress_bar: by default where there are many texts and tqdm is installed.
        out: [n, d_model], where the vectors go; by default a new array.
        """
        if isinstance(texts, str):
            one = new_array((self.d_model,), "texts") if out is None else out
            self.encode([texts], normalize_embeddings=normalize_embeddings, max_length=max_length, out=one[None])
            return one
        n = len(texts) if isinstance(texts, Sized) else None
        if out is not None and n is not None and shape_of(out, "out") != (n, self.d_model):
            raise ValueError(f"out: expected shape {[n, self.d_model]}, got {list(shape_of(out, 'out'))}")
        if out is None and n is not None:
            out = new_array((n, self.d_model), "texts")
        vectors = None if out is None else np.asarray(out)  # the same memory, of a tensor too
        done, pieces = 0, []
        limits = {"max_batch": max(_ROWS, self.max_positions), "max_sequences": batch_size}
        with progress_bar(n, show_progress_bar) as bar, self._session("texts", **limits) as session:
            for chunk in chunks(texts):
                to = new_array((len(chunk), self.d_model), "texts") if vectors is None else vectors[done:][: len(chunk)]
                session._native.encode_texts(chunk, max_length, to)
                if normalize_embeddings and not self._stack["normalizes"]:
                    to /= np.maximum(np.linalg.norm(to, axis=1, keepdims=True), np.float32(1e-12))
                pieces += [to] if vectors is None else []
                done += len(chunk)
                bar.update(len(chunk))
        if n is not None and done != n:
            raise ValueError(f"texts: expected {n}, as their len() says, got {done}")
        return out if out is not None else np.concatenate(pieces or [new_array((0, self.d_model), "texts")])

    def encode_arrays(
        self,
        source: Any = None,
        *,
        target: Any = None,
        memory: Any = None,
        causal: bool = False,
        out: Any = None,
        weights_of: tuple[Literal["encoder", "decoder", "memory"], int] | None = None,
        **masks: Any,
    ) -> Any:
        """Run a model of vectors: a converted `torch.nn.TransformerEncoder`, `TransformerDecoder` or `Transformer`.

        source: [batch, seq, d_model] or [seq, d_model] float32, what the encoder reads. target: what the decoder reads.
        memory: what a decoder without an encoder attends to.
        causal: each position sees those before it, in the stack whose result is given.
        masks: source_mask, target_mask, memory_mask [query, key] or larger, and source_padding_mask,
            target_padding_mask, memory_padding_mask [batch, key]: booleans hide where true, float32 is added.
        out: where the result goes. Return it: [batch, seq, d_model], or as the argument was.
        weights_of: a stack, or the decoder's attention to its memory, and a layer: return (result, weights [batch,
            n_heads, n_queries, n_keys]).
        """
        names = {f"{side}{kind}" for side in ("source", "target", "memory") for kind in ("_mask", "_padding_mask")}
        for name in masks:
            if name not in names:
                raise TypeError(f"masks: expected one of {', '.join(sorted(names))}, got {name}")
        given: dict[str, Any] = {"causal": bool(causal)}
        given.update({name: _packed(mask) for name, mask in masks.items() if mask is not None})
        for name, array in (("source", source), ("target", target), ("memory", memory)):
            if array is not None:
                given[name] = _packed(float_array(array, name))
        shapes = {name: shape_of(given[name], name) for name in ("source", "target", "memory") if name in given}
        result = shapes.get("target" if "decoder" in self._facts else "source")
        if result is None or any(len(shape) < 2 for shape in shapes.values()):
            raise ValueError("source, target: expected an array [batch, seq, d_model] for each stack, got none")
        if out is None:
            pooled = result[:-2] if self._stack["pools"] else result[:-1]
            out = new_array((*pooled, self.d_model), "source")
        rows = {name: int(np.prod(shape[:-1])) for name, shape in shapes.items()}
        limits = {
            "max_batch": max(rows.get("source", 1), rows.get("target", 1)),
            "max_key_rows": max(rows.values()),
            "max_sequences": max(shape[0] if len(shape) == 3 else 1 for shape in shapes.values()),
        }
        with self._session("arrays", **limits) as session:
            if weights_of is None:
                session._native.encode_arrays(given, out, None)
                return out
            where, layer = weights_of
            if where not in ("encoder", "decoder", "memory"):
                raise ValueError(f"weights_of: expected encoder, decoder or memory, got {where!r}")
            if ("decoder" if where == "memory" else where) not in self._facts:
                raise ValueError(f"weights_of: expected a stack that the model has, got {where!r}")
            queries = shapes["source" if where == "encoder" else "target"]
            keys = shapes["source" if "source" in shapes else "memory"] if where == "memory" else queries
            heads = self._facts["encoder" if where == "encoder" else "decoder"]["heads_of_layers"]
            batch = queries[0] if len(queries) == 3 else 1
            weights = new_array((batch, heads[min(layer, len(heads) - 1)], queries[-2], keys[-2]), "weights_of")
            session._native.encode_arrays(given, out, weights, layer, where == "encoder", where == "memory")
            return out, weights if len(queries) == 3 else weights[0]

    # ---- looking at attention ----------------------------------------------------------------------------------------

    def attention(self, text: str | Ids, *, layers: Sequence[int] | None = None) -> AttentionPattern:
        """Return what each token of `text` attends to: [layer, head, query, key], a page of which a notebook shows.

        layers: all by default. Each takes a pass of its own; the passes have the same bits, so they fit together.
        """
        ids = self.tokenize(text) if isinstance(text, str) else [int(i) for i in text]
        if not self.vocab_size:
            raise ValueError("text: expected a model that reads ids, got one of vectors; see encode_arrays")
        if not 0 < len(ids) <= self.max_positions:
            raise ValueError(f"text: expected 1 to {self.max_positions} tokens, got {len(ids)}")
        chosen = tuple(range(self.n_layers) if layers is None else layers)
        if not chosen or not all(0 <= layer < self.n_layers for layer in chosen):
            raise ValueError(f"layers: expected numbers from 0 to {self.n_layers - 1}, got {list(chosen)}")
        heads = self._stack["heads_of_layers"]
        weights = new_array((len(chosen), heads[chosen[0]], len(ids), len(ids)), "text")
        limits = {"max_kv_len": self._room(len(ids))} if self.gives_logits else {"max_batch": self._room(len(ids))}
        with self._session("text" if self.gives_logits else "rows", **limits) as session:
            session._native.attention(ids, list(chosen), weights)
        labels = labels_of(self._native, ids, has_tokenizer=self.has_tokenizer)
        return AttentionPattern(weights=weights, tokens=labels, layers=chosen)

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

    @contextmanager
    def _session(self, kind: str, **limits: Any) -> Iterator[Session]:
        """This thread's session for that kind of work, where it is large enough; nobody else has it in the block."""
        kept = self._kept.__dict__
        if kept.get("pid") != os.getpid():  # a forked child has sessions whose threads stayed with its parent
            kept.clear()
            kept["pid"] = os.getpid()
        session, had = kept.pop(kind, (None, {}))
        if session is None or any(had[name] < limits[name] for name in limits):
            session, had = None, limits  # its memory goes before the new one's comes
            session = Session(self, n_threads=self._n_threads, isa=self._isa, **limits)
        try:
            yield session
        finally:
            if not self._native.closed:
                kept[kind] = (session, had)


def _reopen(path: str, arguments: dict[str, Any]) -> Model:
    return Model(path, **arguments)

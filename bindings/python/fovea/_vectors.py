"""Vectors of texts and arrays, and what heads say of texts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sized
from contextlib import AbstractContextManager
from typing import Any, Literal, overload

import numpy as np

from ._arguments import whole, word
from ._arrays import Floats, float_array, new_array, packed, shape_of
from ._heads import Ranked, result_of
from ._opened import OpenedModel
from ._progress import CHUNK, checked_texts, chunks, listed, progress_bar
from ._session import Session

_ROWS = 1024  # tokens in one pass of an encoder


class VectorModel(OpenedModel):
    """What encoders, and stacks of vectors, are asked for."""

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        normalize_embeddings: bool = False,
        batch_size: int = 64,
        max_length: int = 0,
        parse_special: bool = False,
        show_progress_bar: bool | None = None,
        out: Any = None,
    ) -> Floats:
        """Return a vector for each text: [n, vector_width] float32; [vector_width] for one str.

        texts: a list, a pandas Series, or anything that gives str; read in pieces, so that memory beyond the result
            does not grow with their number. Those of like length go through a pass together.
        prompt_name: put the model's prompt of that name before each text; by default that of default_prompt_name.
        prompt: put this before each text instead; "" puts nothing.
        normalize_embeddings: divide each vector by its length, where the model does not do so itself.
        batch_size: texts in one pass, at most.
        max_length: tokens of a text; by default what its sentence-transformers folder says, or the model's positions.
            Longer texts are cut, the tokens that close them stay; without max_length a warning says how many.
        parse_special: "[SEP]" and the like in texts are those tokens.
        show_progress_bar: by default where there are many texts and tqdm is installed.
        out: [n, vector_width], where the vectors go; by default a new array.
        """
        self._need_vectors()
        before, one = self._prompt_before(prompt_name, prompt), isinstance(texts, str)
        many: Any = [texts] if one else checked_texts(texts, "texts")
        n = len(many) if isinstance(many, Sized) else None
        to = None if out is None else self._rows_of(out, n, one)
        if to is None and n is not None:
            to = new_array((n, self.vector_width), "texts")
        pieces, done = [], 0
        most, n_cut = whole(max_length, "max_length"), 0
        with progress_bar(n, show_progress_bar) as bar, self._text_session(batch_size) as session:
            for chunk in chunks(many, "texts"):
                piece = new_array((len(chunk), self.vector_width), "texts") if to is None else to[done:][: len(chunk)]
                if len(piece) < len(chunk):
                    raise _not_as_many(n, done + len(chunk), to)
                n_cut += session._native.encode_texts(chunk, before, most, bool(parse_special), piece)
                if normalize_embeddings and not self._gives_length_1():
                    piece /= np.maximum(np.linalg.norm(piece, axis=1, keepdims=True), np.float32(1e-12))
                pieces += [piece] if to is None else []
                done += len(chunk)
                bar.update(len(chunk))
        if not most:
            self._warn_cut(n_cut, done, self.max_seq_length)
        if to is not None and done != len(to):
            raise _not_as_many(n, done, to)
        if out is not None:
            return out  # type: ignore[no-any-return]
        if to is None:
            return np.concatenate(pieces or [new_array((0, self.vector_width), "texts")])
        return to[0] if one else to

    def _gives_length_1(self) -> bool:
        whole_width = self.d_model if self._facts["task"] else self._stack["result_width"]
        return bool(self._stack["normalizes"]) and self.vector_width == whole_width

    def _text_session(self, batch_size: int) -> AbstractContextManager[Session]:
        n = whole(batch_size, "batch_size", least=1)
        return self._session("texts", max_batch=max(_ROWS, self.max_positions), max_sequences=n)

    def encode_sparse(
        self,
        texts: str | Iterable[str],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 64,
        parse_special: bool = False,
    ) -> Any:
        """Return the weights of each text's tokens by id, of a model that makes sparse vectors; one dict for one str.

        It is a SPLADE, or bge-m3 converted with `--sparse`. The arguments are those of :meth:`encode`.
        """
        if not self._facts["makes_sparse"]:
            raise self._refused("expected one that makes sparse vectors of texts, got another")
        before = self._prompt_before(prompt_name, prompt)
        many = listed([texts] if isinstance(texts, str) else texts, "texts")
        vectors: list[dict[int, float]] = []
        n_cut = 0
        with self._text_session(batch_size) as session:
            for at in range(0, len(many), CHUNK):
                found, cut = session._native.encode_sparse(many[at : at + CHUNK], before, bool(parse_special))
                vectors += found
                n_cut += cut
        self._warn_cut(n_cut, len(many), self.max_seq_length)
        return vectors[0] if isinstance(texts, str) else vectors

    @overload
    def encode_late(  # type: ignore[overload-overlap]
        self, texts: str, *, as_query: bool = False, prompt: str | None = None, batch_size: int = 64
    ) -> Floats: ...
    @overload
    def encode_late(
        self, texts: Iterable[str], *, as_query: bool = False, prompt: str | None = None, batch_size: int = 64
    ) -> list[Floats]: ...
    def encode_late(
        self, texts: str | Iterable[str], *, as_query: bool = False, prompt: str | None = None, batch_size: int = 64
    ) -> Floats | list[Floats]:
        """Return the vectors of each text's tokens, of length 1, of a model of late interaction: [n_tokens, width].

        It is a ColBERT, or bge-m3 converted with `--colbert`. Several texts give a list. as_query: texts are read as
        queries, else as documents. prompt: put this before each text, in place of the model's own. See :meth:`rank`.
        """
        if not self._facts["has_late_interaction"]:
            raise self._refused("expected one of late interaction, got another")
        one, rows, n_cut = isinstance(texts, str), list[Floats](), 0
        many = [texts] if isinstance(texts, str) else listed(texts, "texts")
        width = int(self._stack["result_width"])
        with self._text_session(batch_size) as session:
            for at in range(0, len(many), CHUNK):
                found, cut = session._native.encode_late(many[at : at + CHUNK], prompt, bool(as_query), False)
                rows += [np.frombuffer(of_text, np.float32).reshape(-1, width).copy() for of_text in found]
                n_cut += cut
        self._warn_cut(n_cut, len(many), self.max_seq_length)
        return rows[0] if one else rows

    def encode_query(self, texts: str | Iterable[str], **options: Any) -> Floats:
        """Return what :meth:`encode` does with the model's prompt for queries before each text, if it has one."""
        return self.encode(texts, **self._with_prompt(options, "query"))

    def encode_document(self, texts: str | Iterable[str], **options: Any) -> Floats:
        """Return what :meth:`encode` does with the model's prompt for what is searched, if it has one."""
        return self.encode(texts, **self._with_prompt(options, "document", "passage", "corpus"))

    def _with_prompt(self, options: dict[str, Any], *names: str) -> dict[str, Any]:
        if options.get("prompt") is not None or options.get("prompt_name") is not None:
            return options
        name = next((name for name in names if name in self.prompts), None)
        return {**options, "prompt_name": name} if name is not None else {**options, "prompt": ""}

    def similarity(self, first: Any, second: Any) -> Floats:
        """Return how like each vector is to each: [n, m] float32, of vectors [n, width] and [m, width].

        It is the cosine, or what the model's folder says (similarity_fn_name): the product, or the distance, euclidean
        or manhattan, less than 0. One vector [width] counts as one row. A vector of zeros is like none. The product is
        numpy's, whose last bits depend on the machine and on how many rows there are.
        """
        a: Floats = _rows_of_vectors(first, "first")
        b: Floats = _rows_of_vectors(second, "second")
        if a.shape[1] != b.shape[1]:
            raise ValueError(f"second: expected vectors of width {a.shape[1]}, got {b.shape[1]}")
        function = self._facts["similarity"]
        if function == "dot":
            return a @ b.T
        if function in ("euclidean", "manhattan"):
            order = 2 if function == "euclidean" else 1
            distances: Floats = np.stack([np.linalg.norm(a - row, order, axis=1) for row in b], axis=1)
            return -distances
        return _with_length_1(a) @ _with_length_1(b).T

    def _rows_of(self, out: Any, n: int | None, one: bool) -> Floats:
        """Return the caller's array as rows for n vectors: the same memory, of a tensor too."""
        shape, width = shape_of(out, "out"), self.vector_width
        if shape != ((width,) if one else ((shape[0] if n is None and shape else n), width)):
            words = f"[{width}]" if one else f"[{'n' if n is None else n}, {width}]"
            raise ValueError(f"out: expected shape {words}, got {list(shape)}")
        return np.asarray(out)[None] if one else np.asarray(out)

    def _prompt_before(self, name: str | None, prompt: str | None) -> str:
        if prompt is not None:
            return word(prompt, "prompt")
        if name is None:
            name = self.default_prompt_name
        prompts = self.prompts
        if name is not None and word(name, "prompt_name") not in prompts:
            names = ", ".join(prompts) or "none, for the model has no prompts"
            raise ValueError(f"prompt_name: expected one of {names}, got {name!r}")
        return "" if name is None else prompts[name]

    def _need_vectors(self) -> None:
        if self.gives_logits:
            raise self._refused("expected one for vectors, got one for logits")

    def classify(
        self,
        texts: str | Iterable[str],
        pairs: str | Iterable[str] | None = None,
        *,
        top: int | None = None,
        answer_tokens: int = 30,
        no_answer: bool = False,
        join: bool = False,
        parse_special: bool = False,
        batch_size: int = 64,
    ) -> Any:
        """Return what the model's head says of each text, or of each with its pair; of one str, what it says of that.

        A head for classes gives a list of :class:`fovea.Label`, the likeliest first; one for words a list of
        :class:`fovea.LabelledWord`; one for answers the :class:`fovea.FoundAnswer` in the pair; one for masked words a
        list of the likeliest labels for each mask of the text, spelled as the model has it: [MASK] or <mask>.

        pairs: a second text for each, or one str for all. top: labels for each mask, by default 5; or a list of so
            many answers. answer_tokens: of an answer, at most. no_answer: an answer may be "".
        join: the words of one entity (B-PER, I-PER) as one, without those outside all entities.
        parse_special: "[SEP]" and the like in texts are those tokens.
        Numbers are those of `fovea classify`. A longer text than the model takes is cut, with a warning; of a pair the
        longer of both.
        """
        if isinstance(texts, str):
            if pairs is not None and not isinstance(pairs, str):
                raise TypeError(f"pairs: expected a str beside one, got {type(pairs).__name__}; see rank")
            return self.classify(
                [texts],
                pairs,
                top=top,
                answer_tokens=answer_tokens,
                no_answer=no_answer,
                join=join,
                parse_special=parse_special,
                batch_size=batch_size,
            )[0]
        options = {
            "top": 5 if top is None else whole(top, "top", least=1),
            "answers": 1 if top is None else whole(top, "top", least=1),
            "answer_tokens": whole(answer_tokens, "answer_tokens", least=1),
            "no_answer": bool(no_answer),
            "join": bool(join),
            "parse_special": bool(parse_special),
        }
        if not self._facts["task"]:
            raise self._refused("expected an encoder with a head for classes, words, answers or masks, got one without")
        many = listed(texts, "texts")
        others = [pairs] * len(many) if isinstance(pairs, str) else None if pairs is None else listed(pairs, "pairs")
        if others is not None and len(others) != len(many):
            raise ValueError(f"pairs: expected one for each of {len(many)} texts, got {len(others)}")
        results: list[Any] = []
        n_cut = 0
        with self._text_session(batch_size) as session:
            for at in range(0, max(len(many), 1), CHUNK):
                beside = None if others is None else others[at : at + CHUNK]
                found, cut = session._native.classify(many[at : at + CHUNK], beside, options)
                results += found
                n_cut += cut
        self._warn_cut(n_cut, len(many), self.max_seq_length)
        return [result_of(self._facts["task"], result, top is not None) for result in results]

    @overload
    def encode_tokens(  # type: ignore[overload-overlap]  # a str gives strs, too
        self, texts: str, *, parse_special: bool = False, batch_size: int = 64
    ) -> Floats: ...
    @overload
    def encode_tokens(
        self, texts: Iterable[str], *, parse_special: bool = False, batch_size: int = 64
    ) -> list[Floats]: ...
    def encode_tokens(
        self, texts: str | Iterable[str], *, parse_special: bool = False, batch_size: int = 64
    ) -> Floats | list[Floats]:
        """Return the vectors of each text's tokens, the template's too: [n_tokens, d_model] float32, or a list of them.

        They are what pooling would read, in the order of ``model.tokenize(text)``.
        """
        if isinstance(texts, str):
            return self.encode_tokens([texts], parse_special=parse_special, batch_size=batch_size)[0]
        return self._rows(listed(texts, "texts"), None, False, parse_special, batch_size)

    @overload
    def head_logits(  # type: ignore[overload-overlap]
        self, texts: str, pairs: str | None = None, *, parse_special: bool = False, batch_size: int = 64
    ) -> Floats: ...
    @overload
    def head_logits(
        self,
        texts: Iterable[str],
        pairs: str | Iterable[str] | None = None,
        *,
        parse_special: bool = False,
        batch_size: int = 64,
    ) -> list[Floats]: ...
    def head_logits(
        self,
        texts: str | Iterable[str],
        pairs: str | Iterable[str] | None = None,
        *,
        parse_special: bool = False,
        batch_size: int = 64,
    ) -> Floats | list[Floats]:
        """Return the logits that the model's head makes of each text, or of each with its pair.

        A head for classes gives [n_labels] float32; one for words [n_tokens, n_labels]; one for answers [n_tokens, 2],
        start and end; one for masked words [n_tokens, vocab_size], as SPLADE wants them. Several texts give a list.
        """
        if not self._facts["task"]:
            raise self._refused("expected an encoder with a head for classes, words, answers or masks, got one without")
        one = isinstance(texts, str)
        many = [texts] if isinstance(texts, str) else listed(texts, "texts")
        others = [pairs] * len(many) if isinstance(pairs, str) else None if pairs is None else listed(pairs, "pairs")
        rows = self._rows(many, others, True, parse_special, batch_size)
        if self._facts["task"] == "text-classification":
            rows = [of_text[0] for of_text in rows]
        return rows[0] if one else rows

    def _rows(
        self, texts: list[str], pairs: list[str] | None, of_head: bool, special: bool, batch_size: int
    ) -> list[Floats]:
        width = int(self._stack["result_width"]) if of_head else self.d_model
        rows: list[Floats] = []
        n_cut = 0
        with self._text_session(batch_size) as session:
            for at in range(0, max(len(texts), 1), CHUNK):
                beside = None if pairs is None else pairs[at : at + CHUNK]
                found, cut = session._native.rows_of_texts(texts[at : at + CHUNK], beside, of_head, bool(special))
                rows += [np.frombuffer(of_text, np.float32).reshape(-1, width).copy() for of_text in found]
                n_cut += cut
        self._warn_cut(n_cut, len(texts), self.max_seq_length)
        return rows

    def rank(
        self, query: str, documents: Iterable[str], *, top: int | None = None, batch_size: int = 64
    ) -> list[Ranked]:
        """Return the documents by a reranker's scores for the query, the best first.

        top: so many of them. The model is a CrossEncoder with one label, or one of late interaction.
        """
        many = listed(documents, "documents")
        if self._facts["has_late_interaction"]:
            with self._text_session(batch_size) as session:
                scores, n_cut = session._native.late_scores(word(query, "query"), many)
            self._warn_cut(n_cut, len(many), self.max_seq_length)
        elif self._facts["scores_pairs"]:
            results = self.classify([word(query, "query")] * len(many), many, batch_size=batch_size)
            scores = [labels[0].score for labels in results]
        else:
            raise self._refused(
                "expected a reranker, a head for classes with one label or late interaction, got another"
            )
        ranked = [Ranked(i, score, many[i]) for i, score in enumerate(scores)]
        ranked.sort(key=lambda one: -one.score)
        return ranked if top is None else ranked[: whole(top, "top", least=1)]

    @staticmethod
    def _warn_cut(n_cut: int, n: int, most: int) -> None:
        if n_cut:
            of = f"{n_cut} of {n} texts have" if n > 1 else "the text has"
            warnings.warn(f"{of} more than {most} tokens, and the rest was cut", stacklevel=3)

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
        given.update({name: packed(mask) for name, mask in masks.items() if mask is not None})
        for name, array in (("source", source), ("target", target), ("memory", memory)):
            if array is not None:
                given[name] = packed(float_array(array, name))
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
            if not isinstance(weights_of, (tuple, list)) or len(weights_of) != 2:
                raise TypeError(f"weights_of: expected a stack and a layer, got {type(weights_of).__name__}")
            where, layer = weights_of[0], whole(weights_of[1], "weights_of")
            if where not in ("encoder", "decoder", "memory"):
                raise ValueError(f"weights_of: expected encoder, decoder or memory, got {where!r}")
            if ("decoder" if where == "memory" else where) not in self._facts:
                raise ValueError(f"weights_of: expected a stack that the model has, got {where!r}")
            queries = shapes["source" if where == "encoder" else "target"]
            keys = shapes["source" if "source" in shapes else "memory"] if where == "memory" else queries
            heads = self._facts["encoder" if where == "encoder" else "decoder"]["heads_of_layers"]
            if layer >= len(heads):
                raise ValueError(f"weights_of: expected a layer below {len(heads)}, got {layer}")
            batch = queries[0] if len(queries) == 3 else 1
            weights = new_array((batch, heads[layer], queries[-2], keys[-2]), "weights_of")
            session._native.encode_arrays(given, out, weights, layer, where == "encoder", where == "memory")
            return out, weights if len(queries) == 3 else weights[0]


def _not_as_many(n: int | None, n_texts: int, rows: Any) -> ValueError:
    """Return what says that there were more texts, or fewer, than their len() or the caller's array has."""
    if n is not None:
        return ValueError(f"texts: expected {n}, as their len() says, got {n_texts}")
    return ValueError(f"out: expected a row for each of {n_texts} texts or more, got {len(rows)}")


def _rows_of_vectors(array: Any, name: str) -> Any:
    try:
        vectors = np.atleast_2d(np.asarray(array, np.float32))
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected vectors [n, width], got {type(array).__name__}") from None
    if vectors.ndim != 2:
        raise ValueError(f"{name}: expected vectors [n, width], got {list(vectors.shape)}")
    return vectors


def _with_length_1(vectors: Floats) -> Floats:
    lengths: Floats = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return vectors / lengths

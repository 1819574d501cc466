"""Vectors of texts and arrays, and what heads say of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any, Literal

import numpy as np

from ._arrays import float_array, new_array, shape_of
from ._attention import _packed
from ._heads import result_of
from ._opened import OpenedModel
from ._progress import CHUNK, chunks, progress_bar

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
        show_progress_bar: bool | None = None,
        out: Any = None,
    ) -> Any:
        """Return a vector for each text: [n, vector_width] float32; [vector_width] for one str.

        texts: a list, a pandas Series, or anything that gives str; read in pieces, so that memory beyond the result
            does not grow with their number. Those of like length go through a pass together.
        prompt_name: put the model's prompt of that name before each text; by default that of default_prompt_name.
        prompt: put this before each text instead; "" puts nothing.
        normalize_embeddings: divide each vector by its length, where the model does not do so itself.
        batch_size: texts in one pass, at most.
        max_length: tokens of a text; by default what its sentence-transformers folder says, or the model's positions.
            Longer texts are cut, the tokens that close them stay.
        show_progress_bar: by default where there are many texts and tqdm is installed.
        out: [n, vector_width], where the vectors go; by default a new array.
        """
        self._need_vectors()
        if isinstance(texts, str):
            one = new_array((self.vector_width,), "texts") if out is None else out
            self.encode(
                [texts],
                prompt_name=prompt_name,
                prompt=prompt,
                normalize_embeddings=normalize_embeddings,
                max_length=max_length,
                out=one[None],
            )
            return one
        if not isinstance(texts, Iterable) or isinstance(texts, bytes):
            raise TypeError(f"texts: expected a str or several, got {type(texts).__name__}")
        before = self._prompt_before(prompt_name, prompt)
        n = len(texts) if isinstance(texts, Sized) else None
        if out is not None and n is not None and shape_of(out, "out") != (n, self.vector_width):
            raise ValueError(f"out: expected shape {[n, self.vector_width]}, got {list(shape_of(out, 'out'))}")
        if out is None and n is not None:
            out = new_array((n, self.vector_width), "texts")
        vectors = None if out is None else np.asarray(out)  # the same memory, of a tensor too
        done, pieces = 0, []
        limits = {"max_batch": max(_ROWS, self.max_positions), "max_sequences": batch_size}
        with progress_bar(n, show_progress_bar) as bar, self._session("texts", **limits) as session:
            for chunk in chunks(texts):
                to = (
                    new_array((len(chunk), self.vector_width), "texts")
                    if vectors is None
                    else vectors[done:][: len(chunk)]
                )
                session._native.encode_texts([before + text for text in chunk] if before else chunk, max_length, to)
                if normalize_embeddings and not self._stack["normalizes"]:
                    to /= np.maximum(np.linalg.norm(to, axis=1, keepdims=True), np.float32(1e-12))
                pieces += [to] if vectors is None else []
                done += len(chunk)
                bar.update(len(chunk))
        if n is not None and done != n:
            raise ValueError(f"texts: expected {n}, as their len() says, got {done}")
        return out if out is not None else np.concatenate(pieces or [new_array((0, self.vector_width), "texts")])

    def _prompt_before(self, name: str | None, prompt: str | None) -> str:
        if prompt is not None:
            return prompt
        if name is None:
            name = self.default_prompt_name
        prompts = self.prompts
        if name is not None and name not in prompts:
            names = ", ".join(prompts) or "none, for the model has no prompts"
            raise ValueError(f"prompt_name: expected one of {names}, got {name!r}")
        return "" if name is None else prompts[name]

    def _need_vectors(self) -> None:
        if self.gives_logits:
            raise ValueError(f"{self._path or 'model'}: model: expected one for vectors, got one for logits")

    def classify(
        self,
        texts: str | Iterable[str],
        pairs: str | Iterable[str] | None = None,
        *,
        top: int = 5,
        answer_tokens: int = 30,
        batch_size: int = 64,
    ) -> Any:
        """Return what the model's head says of each text, or of each with its pair; of one str, what it says of that.

        A head for classes gives a list of :class:`fovea.Label`, the likeliest first; one for words a list of
        :class:`fovea.LabelledWord`; one for answers the :class:`fovea.FoundAnswer` in the pair; one for masked words a
        list of the `top` likeliest labels for each mask of the text, spelled as the model has it: [MASK] or <mask>.

        pairs: a second text for each, or one str for all. answer_tokens: of an answer, at most.
        Numbers are those of `fovea classify`. A longer text than the model takes is cut; of a pair the longer of both.
        """
        if isinstance(texts, str):
            if pairs is not None and not isinstance(pairs, str):
                raise TypeError(f"pairs: expected a str beside one, got {type(pairs).__name__}")
            return self.classify([texts], pairs, top=top, answer_tokens=answer_tokens, batch_size=batch_size)[0]
        for name, number in (("top", top), ("answer_tokens", answer_tokens)):
            if not isinstance(number, int) or not 0 < number < 1 << 32:
                raise ValueError(f"{name}: expected a whole number of 1 or more, got {number!r}")
        if not self._facts["task"]:
            words = "expected an encoder with a head for classes, words, answers or masks, got one without"
            raise ValueError(f"{self._path or 'model'}: model: {words}")
        many = list(texts)
        others = [pairs] * len(many) if isinstance(pairs, str) else None if pairs is None else list(pairs)
        if others is not None and len(others) != len(many):
            raise ValueError(f"pairs: expected one for each of {len(many)} texts, got {len(others)}")
        limits = {"max_batch": max(_ROWS, self.max_positions), "max_sequences": batch_size}
        results: list[Any] = []
        with self._session("texts", **limits) as session:
            for at in range(0, max(len(many), 1), CHUNK):
                beside = None if others is None else others[at : at + CHUNK]
                results += session._native.classify(many[at : at + CHUNK], beside, top, answer_tokens)
        return [result_of(self._facts["task"], result) for result in results]

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

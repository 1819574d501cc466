"""Attention over arrays, and what attention looks like."""

from __future__ import annotations

import html
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _fovea
from ._arguments import real, whole
from ._arrays import Floats, float_array, new_array, packed, shape_of
from ._torch import class_name, config_of_torch, is_exactly

_of_this_thread = threading.local()


def _heads(n_threads: int) -> _fovea.Attention:
    """This thread's attention over heads, which keeps the arena of its largest call."""
    n_threads = whole(n_threads, "n_threads")
    kept: dict[int, _fovea.Attention] = _of_this_thread.__dict__.setdefault("kept", {})
    found = kept.get(n_threads)
    if found is None:
        found = kept[n_threads] = _fovea.Attention(None, n_threads)
    return found


def _mask(mask: Any, keep_mask: Any) -> Any:
    if keep_mask is None:
        return None if mask is None else packed(mask)
    if mask is not None:
        raise ValueError("mask or keep_mask: expected one of them, got both")
    keep = np.asarray(keep_mask)
    if keep.dtype != np.bool_:
        raise TypeError(f"keep_mask: expected an array of booleans, got {keep.dtype}")
    return np.asarray(np.logical_not(keep))


def attend(
    query: Any,
    key: Any,
    value: Any,
    *,
    mask: Any = None,
    keep_mask: Any = None,
    key_padding_mask: Any = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    kv_lengths: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    return_weights: bool = False,
    out: Any = None,
    n_threads: int = 0,
) -> Any:
    """Compute softmax(query·keyᵀ·scale + mask)·value for every head.

    query: [batch, n_heads, n_queries, head_dim] float32, any strides; batch, or batch and heads, may be missing.
    key: [batch, n_kv_heads, n_keys, head_dim]; n_kv_heads divides n_heads.
    value: [batch, n_kv_heads, n_keys, value_dim].
    mask: booleans hide a pair where true, float32 is added to the score; [query, key], [batch, query, key],
        [batch·heads, query, key] or [batch, head, query, key], where a 1 in place of any but the last stands for all.
        keep_mask is a mask that shows where true.
    key_padding_mask: [batch, key], the same for whole keys.
    causal: query i sees the keys up to i, behind the past ones.
    scale: 1/sqrt(head_dim) by default. softcap: scores become c·tanh(score/c).
    kv_lengths: [batch] how many keys are real. past_key, past_value: keys and values before the others.
    return_weights: give (result, weights [batch, n_heads, n_queries, n_keys]).
    out: where the result [..., n_queries, value_dim] goes, float32, any strides; by default a new array.

    A query that sees no key gives zeros. ValueError and TypeError name the argument, what was expected and what it got.
    """
    query, key, value = float_array(query, "query"), float_array(key, "key"), float_array(value, "value")
    shape, value_shape = _heads_shape(query, "query"), _heads_shape(value, "value")
    if out is None:
        out = new_array((*shape[:-1], value_shape[-1]), "query")
    weights, full = None, (1,) * (4 - len(shape)) + shape
    if return_weights:
        n_keys = _heads_shape(key, "key")[-2] + (0 if past_key is None else _heads_shape(past_key, "past_key")[-2])
        weights = new_array((*full[:3], n_keys), "query")
    padding = None if key_padding_mask is None else packed(key_padding_mask)
    numbers = 0.0 if scale is None else _scale(scale), real(softcap, "softcap")
    past: tuple[Any, Any] = (None, None)
    if past_key is not None or past_value is not None:
        past = float_array(past_key, "past_key"), float_array(past_value, "past_value")
    hidden = _mask(mask, keep_mask)
    native = _heads(n_threads)
    native.attend(query, key, value, out, bool(causal), hidden, padding, weights, True, *numbers, kv_lengths, *past)
    return out if weights is None else (out, weights.reshape(*shape[:-1], weights.shape[-1]))


def _heads_shape(array: Any, name: str) -> tuple[int, ...]:
    shape = shape_of(array, name)
    if not 2 <= len(shape) <= 4:
        wanted = "[batch, heads, seq, dim], [heads, seq, dim] or [seq, dim]"
        raise ValueError(f"{name}: expected {wanted}, got {list(shape)}")
    return shape


def _scale(scale: float) -> float:
    number = real(scale, "scale")
    if number == 0 or number != number:
        raise ValueError(f"scale: expected a number other than 0, got {number}")
    return number


class MultiheadAttention:
    """`torch.nn.MultiheadAttention` over NumPy arrays: the same arguments, the same state dict, the same results.

    state_dict: the module's arrays by their names: in_proj_weight [3·embed_dim, embed_dim] (or q_proj_weight,
        k_proj_weight and v_proj_weight), out_proj.weight and, where there are such, in_proj_bias, out_proj.bias, bias_k
        and bias_v. float32, float16 or bfloat16.
    type: how the weights are stored, the arrays' type by default; "q8" and "q4" take a quarter and an eighth.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        state_dict: Mapping[str, Any],
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        type: str | None = None,
        n_threads: int = 0,
    ) -> None:
        from ._convert import model_of_arrays

        config = {
            "model_type": "torch.nn.MultiheadAttention",
            "embed_dim": embed_dim,
            "num_heads": num_heads,
            "kdim": embed_dim if kdim is None else kdim,
            "vdim": embed_dim if vdim is None else vdim,
            "bias": bias,
            "add_bias_kv": add_bias_kv,
            "add_zero_attn": add_zero_attn,
        }
        self.embed_dim, self.num_heads, self.batch_first = embed_dim, num_heads, batch_first
        self._n_appended = int(add_bias_kv) + int(add_zero_attn)
        n_threads = whole(n_threads, "n_threads")
        self._native = _fovea.Attention(model_of_arrays(state_dict, config, type=type), n_threads)

    @classmethod
    def from_torch(cls, module: Any, *, type: str | None = None, n_threads: int = 0) -> MultiheadAttention:
        """Take a `torch.nn.MultiheadAttention` as it is."""
        if not is_exactly(module, "MultiheadAttention"):
            raise TypeError(f"module: expected a torch.nn.MultiheadAttention, got {class_name(module)}")
        config = config_of_torch(module)
        del config["model_type"]
        state = module.state_dict()
        return cls(**config, state_dict=state, batch_first=module.batch_first, type=type, n_threads=n_threads)

    def __call__(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Floats, Floats | None]:
        """Attend.

        query: [n_queries, batch, embed_dim], with batch_first [batch, n_queries, embed_dim], or [n_queries, embed_dim].
        key, value: the same of kdim and vdim.
        attn_mask, key_padding_mask: booleans hide where true, float32 is added.

        Return the result, shaped as the query, and the weights [batch, n_queries, n_keys], or with
        average_attn_weights=False [batch, n_heads, n_queries, n_keys]; None where need_weights is false.
        """
        batched = len(shape_of(query, "query")) == 3
        turned: dict[int, Any] = {}  # an array given twice stays one: its rows are packed once

        def rows(array: Any, name: str) -> Any:
            if id(array) not in turned:
                given = np.asarray(float_array(array, name))
                if given.dtype != np.float32:
                    raise TypeError(f"{name}: expected an array of float32, got {given.dtype}")
                if given.ndim != (3 if batched else 2):
                    raise ValueError(f"{name}: expected {3 if batched else 2} dimensions, got {list(given.shape)}")
                given = given if batched else given[np.newaxis]
                swap = batched and not self.batch_first
                turned[id(array)] = np.ascontiguousarray(given.swapaxes(0, 1) if swap else given)
            return turned[id(array)]

        q, k, v = rows(query, "query"), rows(key, "key"), rows(value, "value")
        out = new_array((q.shape[0], q.shape[1], self.embed_dim), "query")
        mask = None if attn_mask is None else packed(attn_mask)
        padding = None if key_padding_mask is None else packed(key_padding_mask)
        weights: Floats | None = None
        if need_weights:
            heads = () if average_attn_weights else (self.num_heads,)
            weights = new_array((q.shape[0], *heads, q.shape[1], k.shape[1] + self._n_appended), "key")
        self._native.attend(q, k, v, out, bool(is_causal), mask, padding, weights, not average_attn_weights)
        if not batched:
            return out[0], None if weights is None else weights[0]
        return (out if self.batch_first else out.swapaxes(0, 1)), weights


@dataclass(frozen=True)
class AttentionPattern:
    """What every query of every head gives to every key; in a notebook a page one can point into.

    weights: [layer, head, query, key] float32; each row sums to 1.
    tokens: the bytes that each position stands for.
    layers: the numbers of the layers.
    model: the name of the model's file, for the page's heading; may be empty.
    """

    weights: Floats
    tokens: tuple[bytes, ...]
    layers: tuple[int, ...]
    model: str = ""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the weights, so that NumPy's functions take the pattern."""
        return np.array(self.weights, dtype=dtype) if copy or dtype is not None else self.weights

    def __getitem__(self, index: Any) -> Any:
        """Return part of the weights."""
        return self.weights[index]

    def __len__(self) -> int:
        """Return how many layers there are."""
        return len(self.weights)

    @property
    def shape(self) -> tuple[int, ...]:
        """(layers, heads, queries, keys)."""
        return self.weights.shape

    def html(self) -> str:
        """Return the page that `fovea run --picture x.html` writes."""
        labels = list(self.tokens)
        patterns = [(f"layer {n}", self.weights[i], labels, labels) for i, n in enumerate(self.layers)]
        return _fovea.draw_page(patterns, name=self.model)

    def save(self, path: str) -> None:
        """Write the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())

    def _repr_html_(self) -> str:
        # A frame of its own: pages of one notebook share no names and no styles.
        page = html.escape(self.html(), quote=True)
        return f'<iframe title="Attention" style="width:100%;height:900px;border:0" srcdoc="{page}"></iframe>'


def labels_of(model: _fovea.Model, ids: Sequence[int], *, has_tokenizer: bool) -> tuple[bytes, ...]:
    """Return what each id stands for, or its number where the model has no tokenizer."""
    return tuple(model.piece(i) if has_tokenizer else str(i).encode() for i in ids)

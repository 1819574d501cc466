"""What a config.json would say of a module of `torch.nn`, and what must be true of one for that to be all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

_MODULES = ("MultiheadAttention", "TransformerEncoder", "TransformerDecoder", "Transformer")


def class_name(module: Any) -> str:
    """Return a class's name, with where it is from unless that is Python or torch.nn."""
    kind = module.__class__
    known = kind.__module__ == "builtins" or kind.__module__.startswith("torch.nn.modules.")
    return str(kind.__qualname__ if known else f"{kind.__module__}.{kind.__qualname__}")


def is_exactly(module: Any, name: str) -> bool:
    """Whether it is torch.nn's class of that name: a subclass may compute something else."""
    torch = sys.modules.get("torch")  # which is there where one of its modules is
    return torch is not None and module.__class__ is getattr(torch.nn, name)


def config_of_torch(module: Any) -> dict[str, Any]:
    """Return the configuration. TypeError or ValueError for what is not computed: the message names the part."""
    kind = next((name for name in _MODULES if is_exactly(module, name)), "")
    if kind == "MultiheadAttention":
        return {
            "model_type": "torch.nn.MultiheadAttention",
            "embed_dim": module.embed_dim,
            "num_heads": module.num_heads,
            "kdim": module.kdim,
            "vdim": module.vdim,
            "bias": module.in_proj_bias is not None,
            "add_bias_kv": module.bias_k is not None,
            "add_zero_attn": module.add_zero_attn,
        }
    if kind in ("TransformerEncoder", "TransformerDecoder"):
        of_layers = _config_of_layers([("", module, f"{kind}Layer")])
        return {"model_type": f"torch.nn.{kind}", "num_layers": len(module.layers), **of_layers}
    if kind == "Transformer":
        for name in ("encoder", "decoder"):
            _need(getattr(module, name), f"Transformer{name.capitalize()}", name)
        stacks = [("encoder.", module.encoder, "TransformerEncoderLayer"),
                  ("decoder.", module.decoder, "TransformerDecoderLayer")]  # fmt: skip
        return {
            "model_type": "torch.nn.Transformer",
            "num_encoder_layers": len(module.encoder.layers),
            "num_decoder_layers": len(module.decoder.layers),
            **_config_of_layers(stacks),
        }
    words = "expected a module of torch.nn (MultiheadAttention, Transformer, …) or of transformers"
    raise TypeError(f"source: {words}, got {class_name(module)}")


def _need(module: Any, name: str, place: str) -> None:
    if not is_exactly(module, name):
        raise TypeError(f"source: {place}: expected a torch.nn.{name}, got {class_name(module)}")


def _config_of_layers(stacks: list[tuple[str, Any, str]]) -> dict[str, Any]:
    """Return what all layers of all stacks have in common. ValueError where they have not."""
    first: dict[str, tuple[Any, str]] = {}
    for prefix, stack, kind in stacks:
        if not len(stack.layers):
            raise ValueError(f"source: {prefix}layers: expected 1 or more, got none")
        facts: list[tuple[str, str, Any]] = []
        for number, layer in enumerate(stack.layers):
            place = f"{prefix}layers[{number}]"
            _need(layer, kind, place)
            facts += [*_facts_of_layer(layer, place)]
        facts.append((f"{prefix}norm", "final_norm", stack.norm is not None))
        if stack.norm is not None:
            facts += [*_facts_of_norm(stack.norm, f"{prefix}norm")]
        for place, name, value in facts:
            expected, where = first.setdefault(name, (value, place))
            if value != expected:
                raise ValueError(f"source: {place}: {name}: expected {expected} as in {where}, got {value}")
    return {name: value for name, (value, _) in first.items()}


def _facts_of_layer(layer: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    """Yield where something was read, what it is called in a configuration, and the value."""
    yield place, "d_model", layer.self_attn.embed_dim
    yield place, "dim_feedforward", layer.linear1.out_features
    yield place, "activation", _activation(layer.activation, f"{place}.activation")
    yield place, "norm_first", bool(layer.norm_first)
    yield place, "bias", layer.linear1.bias is not None
    for name in ("self_attn", "multihead_attn"):
        if hasattr(layer, name):
            yield from _facts_of_attention(getattr(layer, name), f"{place}.{name}")
    for name in ("linear1", "linear2"):
        _need(getattr(layer, name), "Linear", f"{place}.{name}")
    for name in ("norm1", "norm2", "norm3"):
        if hasattr(layer, name):
            yield from _facts_of_norm(getattr(layer, name), f"{place}.{name}")


def _facts_of_attention(attention: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    _need(attention, "MultiheadAttention", place)
    if attention.bias_k is not None or attention.add_zero_attn:
        raise ValueError(f"source: {place}: expected no add_bias_kv and no add_zero_attn within a layer, got one")
    yield place, "nhead", attention.num_heads


def _facts_of_norm(norm: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    _need(norm, "LayerNorm", place)
    yield place, "layer_norm_eps", norm.eps


def _activation(function: Any, place: str) -> str:
    """Return "relu" or "gelu", which it is, whatever it is called."""
    import torch  # which is there, for the layer is one of its classes

    if function in (torch.nn.functional.relu, torch.relu) or is_exactly(function, "ReLU"):
        return "relu"
    if function is torch.nn.functional.gelu:
        return "gelu"
    got = getattr(function, "__name__", class_name(function))
    if is_exactly(function, "GELU"):
        if function.approximate == "none":
            return "gelu"
        got = f"GELU(approximate={function.approximate!r})"
    raise ValueError(f"source: {place}: expected relu or gelu, which is exact, got {got}")

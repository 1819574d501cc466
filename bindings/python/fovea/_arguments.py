"""What arguments that are no arrays must be. TypeError and ValueError name the argument."""

from __future__ import annotations

import json
from collections.abc import Iterable
from operator import index
from typing import Any, TypeVar

import numpy as np

from . import _fovea

Native = TypeVar("Native")


def whole(value: Any, name: str, *, least: int = 0) -> int:
    """A whole number of 32 bits, NumPy's too."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name}: expected a whole number, got {type(value).__name__}") from None
    if not least <= number < 1 << 32:
        raise ValueError(f"{name}: expected a whole number of {least} or more, below 2^32, got {number}")
    return number


def word(value: Any, name: str) -> str:
    """A str."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a str, got {type(value).__name__}")
    return value


def words(value: Any, name: str) -> list[str]:
    """A str, several, or None: a list of them."""
    if value is None or isinstance(value, str):
        return [] if value is None else [value]
    if not isinstance(value, Iterable) or isinstance(value, (bytes, bytearray)):
        raise TypeError(f"{name}: expected a str or several, got {type(value).__name__}")
    return [word(one, f"{name}[{number}]") for number, one in enumerate(value)]


def real(value: Any, name: str) -> float:
    """A number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}") from None


def json_text(value: Any, what: str) -> str:
    """JSON of what it can say, NumPy's numbers among it."""
    try:
        return json.dumps(value, allow_nan=False, default=_number)
    except RecursionError:
        raise ValueError(f"{what}: expected fewer objects within each other, got too many") from None
    except ValueError as error:
        raise ValueError(f"{what}: expected what JSON can say, got another value: {error}") from None
    except TypeError as error:
        raise TypeError(f"{what}: expected what JSON can say, got another type: {error}") from None


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(type(value).__name__)


def isa_name(value: Any) -> str:
    """One of the instruction sets that are here, or "" for the best."""
    if word(value, "isa") and value not in _fovea.isa_names():
        raise ValueError(f"isa: expected one of {', '.join(_fovea.isa_names())}, got {value!r}")
    return str(value)


def byte_string(value: Any, name: str) -> bytes:
    """The bytes of bytes, or of what has a buffer of them."""
    if isinstance(value, bytes):
        return value
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(f"{name}: expected bytes, got {type(value).__name__}") from None


def native_model(model: Any) -> _fovea.Model:
    """What the extension knows of a model."""
    return _native(model, _fovea.Model, "model: expected a fovea.Model")


def native_cache(cache: Any, name: str) -> _fovea.Cache:
    """What the extension knows of a cache."""
    return _native(cache, _fovea.Cache, f"{name}: expected a fovea.Cache")


def _native(owner: Any, kind: type[Native], expected: str) -> Native:
    native = getattr(owner, "_native", None)
    if not isinstance(native, kind):
        raise TypeError(f"{expected}, got {type(owner).__name__}")
    return native

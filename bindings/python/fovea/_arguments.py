"""What arguments that are no arrays must be. TypeError and ValueError name the argument."""

from __future__ import annotations

from operator import index
from typing import Any

from . import _fovea


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
    try:
        return [word(one, name) for one in value]
    except TypeError:
        raise TypeError(f"{name}: expected a str or several, got {type(value).__name__}") from None


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
    native = getattr(model, "_native", None)
    if not isinstance(native, _fovea.Model):
        raise TypeError(f"model: expected a fovea.Model, got {type(model).__name__}")
    return native


def native_cache(cache: Any, name: str) -> _fovea.Cache:
    """What the extension knows of a cache."""
    native = getattr(cache, "_native", None)
    if not isinstance(native, _fovea.Cache):
        raise TypeError(f"{name}: expected a fovea.Cache, got {type(cache).__name__}")
    return native

"""What the package's files share about arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Union

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = Union[Sequence[int], Iterable[int], npt.NDArray[Any]]
FLOAT32 = np.dtype(np.float32)


def float_array(array: Any, name: str) -> Any:
    """`array` as the engine can read it: itself, or a copy where its rows have gaps or its batch has stride 0.

    Anything with the buffer protocol or DLPack is taken. TypeError where it is no array of float32.
    """
    if isinstance(array, np.ndarray) and array.dtype != FLOAT32:
        raise TypeError(f"{name}: expected an array of float32, got {array.dtype}")
    seen = seen_by_numpy(array)
    if seen is None or seen.dtype != FLOAT32 or seen.flags.c_contiguous:  # most; the rest takes as long as a small pass
        return array
    has_gaps = seen.ndim and not (seen.strides[-1] == 4 or seen.shape[-1] == 1)
    is_repeated = seen.ndim == 4 and seen.strides[0] == 0 and seen.shape[0] > 1
    return np.ascontiguousarray(seen) if has_gaps or is_repeated or min(seen.strides, default=0) < 0 else array


def packed(array: Any) -> Any:
    """`array`, or a copy whose elements lie one after the other where its own do not."""
    seen = seen_by_numpy(array)
    return array if seen is None or seen.flags.c_contiguous else np.ascontiguousarray(seen)


def seen_by_numpy(array: Any) -> npt.NDArray[Any] | None:
    """The array's own memory as NumPy has it; None of what it cannot have, of which the extension says what it is."""
    if isinstance(array, np.ndarray):
        return array
    with suppress(Exception):  # whatever the owner of the memory raises
        return np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(memoryview(array))
    return None


def counted(ids: Any, name: str) -> Any:
    """`ids` as they are, or as a list where they have no length, as a generator has none. TypeError for a number."""
    try:
        len(ids)
        return ids
    except TypeError:
        pass
    try:
        remaining = iter(ids)
    except TypeError:
        raise TypeError(f"{name}: expected a list or an array of whole numbers, got {type(ids).__name__}") from None
    return list(remaining)


def shape_of(array: Any, name: str) -> tuple[int, ...]:
    """The shape of what has one."""
    if isinstance(array, np.ndarray):
        shape: tuple[int, ...] = array.shape
        return shape
    try:
        return tuple(int(n) for n in array.shape)
    except (AttributeError, TypeError):
        pass
    try:
        return tuple(memoryview(array).shape or ())
    except TypeError:
        raise TypeError(f"{name}: expected an array of float32, got {type(array).__name__}") from None


def new_array(shape: Sequence[int], name: str) -> Floats:
    """An array for a result, or ValueError where no array can be as large."""
    try:
        return np.empty(shape, FLOAT32)
    except ValueError:
        raise ValueError(f"{name}: expected a shape that an array can have, got {list(shape)}") from None

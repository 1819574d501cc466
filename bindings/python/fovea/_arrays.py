"""What the package's files share about arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = Union[Sequence[int], Iterable[int], npt.NDArray[Any]]
FLOAT32 = np.dtype(np.float32)


def float_array(array: Any, name: str) -> Any:
    """`array` as the engine can read it: itself, or a copy where its last dimension has gaps.

    Anything with the buffer protocol or DLPack is taken. TypeError where it is no array of float32.
    """
    if isinstance(array, np.ndarray):
        if array.dtype != FLOAT32:
            raise TypeError(f"{name}: expected an array of float32, got {array.dtype}")
        if array.flags.c_contiguous:  # most are; the rest takes as long as a small pass
            return array
        if (array.ndim and not (array.strides[-1] == 4 or array.shape[-1] == 1)) or min(array.strides, default=0) < 0:
            return np.ascontiguousarray(array)
    return array


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

"""Texts in pieces, and a bar that tells how many are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import islice
from typing import Any

CHUNK = 2048  # texts that are tokenized and sorted by length together
_LONG = 4 * CHUNK  # texts from which on there is a progress bar


def chunks(texts: Iterable[str], name: str) -> Iterator[list[str]]:
    """Yield so many texts as are tokenized and sorted together. TypeError that tells which one is no text."""
    remaining, done = iter(texts), 0
    while chunk := list(islice(remaining, CHUNK)):
        for i, text in enumerate(chunk, done):
            if not isinstance(text, str):
                nan = " nan, a missing value" if isinstance(text, float) and text != text else ""
                raise TypeError(f"{name}[{i}]: expected a str, got {type(text).__name__}{nan}")
        yield chunk
        done += len(chunk)


def checked_texts(texts: Any, name: str) -> Any:
    """`texts`, or TypeError where it is something that gives no texts one by one, or gives something else."""
    kind = type(texts).__name__
    if hasattr(texts, "columns"):  # pandas, polars, pyarrow: iterating gives names of columns
        raise TypeError(f"{name}: expected a str or several, got a {kind}; give one of its columns")
    if isinstance(texts, Mapping):
        raise TypeError(f"{name}: expected a str or several, got a {kind}; give a list of its values")
    if not isinstance(texts, Iterable) or isinstance(texts, (bytes, bytearray)):
        raise TypeError(f"{name}: expected a str or several, got {kind}")
    if getattr(texts, "ndim", 1) != 1:
        raise TypeError(f"{name}: expected one dimension, got a {kind} of {texts.ndim}")  # type: ignore[attr-defined]
    return texts


def listed(texts: Any, name: str) -> list[str]:
    """Return the texts as a list."""
    return [text for chunk in chunks(checked_texts(texts, name), name) for text in chunk]


class _NoBar:
    """What stands in for a progress bar."""

    def update(self, n: int) -> None:
        """Do nothing."""


@contextmanager
def progress_bar(n: int | None, wanted: bool | None) -> Iterator[Any]:
    """Yield a bar of tqdm's, or one that shows nothing where it is not wanted or not there."""
    tqdm: Any = None
    if wanted or (wanted is None and n is not None and n >= _LONG):
        with suppress(ImportError):
            tqdm = import_module("tqdm.auto").tqdm
    if tqdm is None:
        yield _NoBar()
        return
    with tqdm(total=n, unit="text") as bar:
        yield bar

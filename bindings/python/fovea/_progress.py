"""Texts in pieces, and a bar that tells how many are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import islice
from typing import Any

CHUNK = 2048  # texts that are tokenized and sorted by length together
_LONG = 4 * CHUNK  # texts from which on there is a progress bar


def chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield so many texts as are tokenized and sorted together."""
    remaining = iter(texts)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


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

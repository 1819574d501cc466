"""What an encoder's head says of texts, in words."""

from __future__ import annotations

from typing import Any, NamedTuple


class Label(NamedTuple):
    """A label, or a word in a mask's place.

    score: its probability, or what the model's head makes of the logit otherwise.
    """

    label: str
    score: float
    logit: float


class LabelledWord(NamedTuple):
    """A word of the text, and its likeliest label."""

    word: str
    label: str
    score: float


class FoundAnswer(NamedTuple):
    """Where the second text answers the first.

    score: the product of the probabilities of its start and its end.
    begin, end: tokens of the second text.
    """

    text: str
    score: float
    begin: int
    end: int


def result_of(task: str, native: Any) -> Any:
    """Return what the extension has found of one text, as the above."""
    if task == "question-answering":
        return FoundAnswer(*native)
    if task == "token-classification":
        return [LabelledWord(*word) for word in native]
    if task == "fill-mask":
        return [[Label(*label) for label in mask] for mask in native]
    return [Label(*label) for label in native]

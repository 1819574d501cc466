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
    """A word of the text, or several as one entity, and its likeliest label.

    characters: where it lies in the text, text[begin:end]; None where that is not known, as in pairs.
    """

    word: str
    label: str
    score: float
    characters: tuple[int, int] | None = None


class FoundAnswer(NamedTuple):
    """Where the second text answers the first.

    text: "" where no answer is likelier than any.
    score: the product of the probabilities of its start and its end, among the second text's tokens and [CLS].
    begin, end: tokens of the second text.
    characters: where it lies in the second text, second[begin:end]; None where that is not known.
    no_answer: the same product of [CLS], which stands for no answer.
    """

    text: str
    score: float
    begin: int
    end: int
    characters: tuple[int, int] | None = None
    no_answer: float = 0.0


class Ranked(NamedTuple):
    """A document, its number in the list that was given, and a reranker's score of it."""

    number: int
    score: float
    document: str


def result_of(task: str, native: Any, many: bool = False) -> Any:
    """Return what the extension has found of one text, as the above: `many` answers, or the likeliest."""
    if task == "question-answering":
        answers = [FoundAnswer(*answer) for answer in native]
        return answers if many else answers[0]
    if task == "token-classification":
        return [LabelledWord(*word) for word in native]
    if task == "fill-mask":
        return [[Label(*label) for label in mask] for mask in native]
    return [Label(*label) for label in native]

"""Texts that are written from others."""

from __future__ import annotations

from dataclasses import dataclass

from . import _fovea
from ._arguments import whole, word
from ._arrays import Ids
from ._opened import OpenedModel


@dataclass(frozen=True)
class Translation:
    """A text that was written from another: a translation, a summary, an answer.

    text: None of a model without a tokenizer. tokens: its ids.
    score: of several beams, the logarithm of its probability, divided by its length to the power of length_penalty.
    finish_reason: "end" (the model's own), or "length" or "context" where a limit cut it.
    n_parts: in which the source was read, 1 unless it is longer than the model reads at once. Several have no score.
    """

    text: str | None
    tokens: tuple[int, ...]
    score: float | None
    finish_reason: str
    n_parts: int = 1


class TranslationModel(OpenedModel):
    """What models that write one text from another are asked for."""

    def translate(
        self,
        source: str | Ids,
        *,
        from_language: str | None = None,
        to_language: str | None = None,
        num_beams: int = 0,
        max_new_tokens: int = 0,
        special: bool = False,
    ) -> Translation:
        """Return what the model writes from `source`, a text or ids: the text of `fovea run`, to the last bit.

        Models of translations and of summaries alike are asked so. A text longer than the model reads at once is split
        where sentences end or, within longer ones, words; ids are refused.

        from_language, to_language: as the model names them, "eng_Latn", or as people do, "en", "English"; by default
            the tokenizer's own.
        num_beams: beginnings that go on side by side; by default as many as the model says. 1 is fastest.
        max_new_tokens: at most; by default what the model allows.
        special: read special tokens in the source, and show those that come.
        """
        n_beams = whole(num_beams, "num_beams")
        n_new = whole(max_new_tokens, "max_new_tokens")
        read_in = "" if from_language is None else word(from_language, "from_language")
        written_in = "" if to_language is None else word(to_language, "to_language")
        if not self._facts["writes_target"]:
            raise self._refused("expected one that writes a text from another, got another kind")
        if (read_in or written_in) and not self.has_tokenizer:
            raise self._refused("expected one with a tokenizer, which knows languages, got one without")
        is_text = isinstance(source, str) and self.has_tokenizer
        given = source + self._facts["prompt_suffix"] if is_text else self._prompt_ids(source, bool(special))
        return Translation(*self._translator(n_beams).run(given, read_in, written_in, n_new, bool(special)))

    def _translator(self, n_beams: int) -> _fovea.Translator:
        """This thread's memory for it."""
        kept = self._memory()
        if kept.get("n_beams") != n_beams:
            kept.pop("translator", None)  # its memory goes before the new one's comes
            kept["n_beams"] = n_beams
        if "translator" not in kept:
            kept["translator"] = _fovea.Translator(self._native, self._n_threads, self._isa, n_beams)
        found: _fovea.Translator = kept["translator"]
        return found

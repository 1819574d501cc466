"""What is said in recordings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _fovea
from ._arguments import whole, word
from ._arrays import float_array, shape_of
from ._convert import existing
from ._opened import OpenedModel

_TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class SpeechWord:
    """A word of a recording, with the space before it and the marks around it.

    start, end: seconds from the recording's beginning. probability: the mean of its tokens'.
    """

    word: str
    start: float
    end: float
    probability: float


@dataclass(frozen=True)
class SpeechSegment:
    """A stretch of a recording and what was said in it.

    start, end: seconds from the recording's beginning.
    text: with the space before its first word. tokens: its ids, times among them.
    avg_logprob, no_speech_prob, compression_ratio, temperature: of the window of 30 seconds that it is in: the mean
        logarithm of its tokens' probabilities, how likely nobody speaks, how well its text compresses, and the
        temperature at which it was written.
    words: with their times, where `word_timestamps` asked for them.
    language: of its window, where `multilingual` asked for it.
    """

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]
    avg_logprob: float
    no_speech_prob: float
    compression_ratio: float
    temperature: float
    words: tuple[SpeechWord, ...] = ()
    language: str | None = None


@dataclass(frozen=True)
class Transcript:
    """A recording's text, the language that was spoken, and the segments with their times.

    language: "en", "de", …; None of no sound at all. language_probability: where the language was heard.
    """

    text: str
    language: str | None
    language_probability: float | None
    segments: tuple[SpeechSegment, ...]


def _threshold(value: Any, name: str) -> float | None:
    """A number, or None."""
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected a number or None, got {type(value).__name__}") from None


def _clips(times: Sequence[float] | None) -> list[tuple[float, float]]:
    """Begins and ends of parts of a recording."""
    seconds = [] if times is None else [float(t) for t in times]
    return list(zip(seconds[::2], [*seconds[1::2], float("inf")][: len(seconds[::2])]))


class SpeechModel(OpenedModel):
    """What models that hear are asked for."""

    @property
    def sampling_rate(self) -> int:
        """Samples a second of what it hears; 0 for a model that reads text or vectors."""
        return int(self._facts["sampling_rate"])

    def transcribe(
        self,
        sound: str | os.PathLike[str] | Any,
        *,
        sampling_rate: int | None = None,
        language: str | None = None,
        task: str = "transcribe",
        timestamps: bool = True,
        previous_text: bool = True,
        prompt: str = "",
        carry_prompt: bool = False,
        multilingual: bool = False,
        clip_timestamps: Sequence[float] | None = None,
        vad: str | None = None,
        temperature: float | Sequence[float] = _TEMPERATURES,
        compression_ratio_threshold: float | None = 2.4,
        logprob_threshold: float | None = -1.0,
        no_speech_threshold: float | None = 0.6,
        max_new_tokens: int = 0,
        seed: int = 0,
        word_timestamps: bool = False,
    ) -> Transcript:
        """Return what is said in a recording: the text of `fovea transcribe`, to the last bit.

        sound: the path of a WAV file (of FLAC, Ogg, MP3 and others too where the module was built with libsndfile,
            which wheels are not), or samples: [n_samples] float32, mono, full scale 1.
        sampling_rate: of the samples, by default the model's own :attr:`sampling_rate`; others are resampled.
        language: "en", "English", "en-US", …; by default what is likeliest in the first window. task: "transcribe", or
            "translate" into English.
        timestamps: let the model write times, by which windows of 30 seconds follow each other between sentences.
            False: it writes none, and a long recording is cut every 30 seconds.
        previous_text: read each window with the text before it.
        prompt: a text before the recording's own: names as they are spelled. carry_prompt: before every window's text.
        multilingual: hear the language of each window; segments then have it.
        clip_timestamps: start, end, start, end, … in seconds of the parts that are heard; the last may lack its end.
        vad: "energy" passes over stretches without a voice, told by how loud they are.
        temperature: tried in order while a window's text repeats itself (its compression ratio is above the threshold)
            or is unlikely (the mean logarithm of its tokens' probabilities is below); 0 takes the likeliest tokens,
            others draw them by `seed`. A window is silent where that is likelier than no_speech_threshold and its text
            is unlikely. None: that threshold is not asked.
        max_new_tokens: of a window, at most; by default half of what the model takes.
        word_timestamps: give each segment its words with their times, by what the decoder attends to.
        """
        options = {
            "language": "" if language is None else word(language, "language"),
            "task": word(task, "task"),
            "timestamps": bool(timestamps),
            "previous_text": bool(previous_text),
            "temperatures": [float(t) for t in np.atleast_1d(np.asarray(temperature, np.float64))],
            "max_compression": _threshold(compression_ratio_threshold, "compression_ratio_threshold"),
            "min_logprob": _threshold(logprob_threshold, "logprob_threshold"),
            "no_speech": _threshold(no_speech_threshold, "no_speech_threshold"),
            "max_new_tokens": whole(max_new_tokens, "max_new_tokens"),
            "seed": whole(seed, "seed"),
            "words": bool(word_timestamps),
            "prompt": word(prompt, "prompt"),
            "carry_prompt": bool(carry_prompt),
            "multilingual": bool(multilingual),
            "clips": _clips(clip_timestamps),
            "voice": vad is not None,
        }
        if vad not in (None, "energy"):
            raise ValueError(f"vad: expected energy or None, got {vad}")
        rate = 0 if sampling_rate is None else whole(sampling_rate, "sampling_rate", least=1)
        path, samples = None, None
        if isinstance(sound, (str, os.PathLike)):
            if sampling_rate is not None:
                raise ValueError("sampling_rate: expected none beside a file, which has its own, got one")
            path = existing(sound)
        else:
            samples = float_array(sound, "sound")
            if len(shape_of(samples, "sound")) != 1:
                raise ValueError(f"sound: expected samples [n_samples], got shape {list(shape_of(samples, 'sound'))}")
        native = self._transcriber(bool(word_timestamps))
        text, spoken, probability, found = native.run(path, samples, rate, options)
        segments = (SpeechSegment(*[*one[:-2], tuple(SpeechWord(*word) for word in one[-2]), one[-1]]) for one in found)
        return Transcript(text, spoken, probability, tuple(segments))

    def _transcriber(self, words: bool) -> _fovea.Transcriber:
        """This thread's memory for it, from the first call that asks on with room for what words need."""
        kept = self._memory()
        if "speech" not in kept or (words and not kept["speech"].words):
            kept["speech"] = _fovea.Transcriber(self._native, self._n_threads, self._isa, words)
        found: _fovea.Transcriber = kept["speech"]
        return found

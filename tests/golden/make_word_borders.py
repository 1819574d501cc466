#!/usr/bin/env python3
"""Words at the borders of segments and beside pauses, as OpenAI's own program leaves them: word_borders.json.

Needs openai-whisper. Its add_word_timestamps gets random words in place of those that its attention finds: short ones, some of no
length, some with a long pause in them, sentences' ends, and segments whose own times lie off. Nothing is rounded, so that no
comparison is a tie.
"""
import json
import pathlib
import random

from whisper import timing

SEED = 7
N_CASES = 30
FILE = pathlib.Path(__file__).resolve().parent / "word_borders.json"


class Tokenizer:
    eot = 1 << 20


def words_of(rng, at, n_segments):
    """Lists of [text, start, end] for each segment."""
    segments = []
    for _ in range(n_segments):
        words = []
        for i in range(rng.randint(1, 6)):
            duration = rng.choice([rng.uniform(0.1, 0.5)] * 5 + [0.0, rng.uniform(1.5, 12)])
            words.append([f" w{i}", at, at + duration])
            at += duration
            if rng.random() < 0.2:
                duration = rng.choice([0.0, rng.uniform(0, 0.1), rng.uniform(1, 8)])
                words.append([rng.choice([".", ",", "!"]), at, at + duration])
                at += duration
        segments.append(words)
    return segments


def case_of(rng):
    speech_end = rng.choice([0.0, rng.uniform(0, 20)])
    lists = words_of(rng, speech_end + rng.choice([0.0, rng.uniform(0, 2)]), rng.randint(1, 4))
    off = lambda: rng.choice([0.0, rng.uniform(-0.4, 0.4), rng.uniform(-6, 6)])
    segments = []
    for words in lists:
        start, end = max(0.0, words[0][1] + off()), words[-1][2] + off()
        segments.append({"seek": 0, "start": start, "end": max(start, end), "tokens": list(range(len(words)))})
    case = {"speech_end": speech_end,
            "segments": [{"start": s["start"], "end": s["end"], "words": w} for s, w in zip(segments, lists)]}
    alignment = [timing.WordTiming(text, [0], start, end, 1.0) for words in lists for text, start, end in words]
    timing.find_alignment = lambda *_, **__: alignment
    timing.round = lambda x, _: x
    timing.add_word_timestamps(segments=segments, model=None, tokenizer=Tokenizer, mel=None, num_frames=0,
                               last_speech_timestamp=speech_end)
    case["settled"] = [{"start": s["start"], "end": s["end"], "words": [[w["word"], w["start"], w["end"]] for w in s["words"]]}
                       for s in segments]
    return case


def rounded(value):
    """Numbers with as many digits as a comparison within 1e-5 needs."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def main():
    rng = random.Random(SEED)
    cases = [rounded(case_of(rng)) for _ in range(N_CASES)]
    FILE.write_text(json.dumps(cases, separators=(",", ":")).replace('},{"speech_end"', '},\n{"speech_end"') + "\n")


if __name__ == "__main__":
    main()

"""What is said in recordings: as transformers and the command line have it; samples, rates, refusals."""

import json
import subprocess
import wave

import numpy as np
import pytest
from conftest import GOLDEN

import fovea

RECORDINGS = GOLDEN / "recordings"
GREEDY = {
    "temperature": 0,
    "compression_ratio_threshold": None,
    "logprob_threshold": None,
    "no_speech_threshold": None,
    "max_new_tokens": 16,
}


@pytest.fixture(scope="module")
def whisper():
    """A small model that hears, with random weights."""
    return fovea.Model(GOLDEN / "speech" / "whisper_talking", n_threads=1)


def samples_of(name):
    with wave.open(str(RECORDINGS / f"{name}.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def test_transcripts_are_those_of_transformers(whisper):
    expected = json.loads((RECORDINGS / "transcripts.json").read_text())["three timestamps"]
    result = whisper.transcribe(RECORDINGS / "three.wav", language="de", previous_text=False, **GREEDY)
    assert result.language == "de"
    assert result.language_probability is None
    assert [round(s.start, 2) for s in result.segments] == [round(s["start"], 2) for s in expected]
    for segment, other in zip(result.segments, expected):
        assert list(segment.tokens) == other["tokens"][: len(segment.tokens)]
    assert result.text.strip() == "".join(s.text for s in result.segments).strip()


def test_transcripts_are_those_of_the_command_line(whisper, command_line):
    command = [command_line, "transcribe", whisper._path, str(RECORDINGS / "two.wav"), "--json", "--seed", "3"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    result = whisper.transcribe(RECORDINGS / "two.wav", seed=3)
    assert (result.text, result.language) == (said["text"], said["language"])
    assert result.language_probability == said["language_probability"]

    def as_said(segment, words):
        fields = {**vars(segment), "tokens": list(segment.tokens), "words": [vars(w) for w in segment.words]}
        if fields["language"] is None:
            del fields["language"]
        return fields if words else {name: fields[name] for name in fields if name != "words"}

    assert [as_said(s, False) for s in result.segments] == said["segments"]
    assert not any(s.words for s in result.segments)
    said = json.loads(subprocess.run([*command, "--words"], capture_output=True, text=True, check=True).stdout)
    result = whisper.transcribe(RECORDINGS / "two.wav", seed=3, word_timestamps=True)
    assert [as_said(s, True) for s in result.segments] == said["segments"]
    assert all(s.words for s in result.segments)


def test_options_are_those_of_the_command_line(whisper, command_line):
    command = [command_line, "transcribe", whisper._path, str(RECORDINGS / "three.wav"), "--json"]
    for options, named in (
        (["--clip-timestamps", "0.2,0.5,0.9"], {"clip_timestamps": [0.2, 0.5, 0.9]}),
        (["--prompt", "A name.", "--carry-prompt"], {"prompt": "A name.", "carry_prompt": True}),
        (["--multilingual"], {"multilingual": True}),
        (["--vad", "energy"], {"vad": "energy"}),
        (["--language", "German"], {"language": "German"}),
    ):
        said = json.loads(subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout)
        result = whisper.transcribe(RECORDINGS / "three.wav", **named)
        assert (result.text, [s.start for s in result.segments]) == (
            said["text"],
            [s["start"] for s in said["segments"]],
        )
        assert [s.language for s in result.segments] == [s.get("language") for s in said["segments"]]
    with pytest.raises(ValueError, match="vad: expected energy or None, got loud"):
        whisper.transcribe(RECORDINGS / "one.wav", vad="loud")
    with pytest.raises(ValueError, match="clips: expected times that grow"):
        whisper.transcribe(RECORDINGS / "one.wav", clip_timestamps=[2, 1])


def test_samples_are_what_the_file_has(whisper):
    assert whisper.sampling_rate == 16000
    from_file = whisper.transcribe(str(RECORDINGS / "one.wav"), **GREEDY)
    samples = samples_of("one")
    assert whisper.transcribe(samples, **GREEDY) == from_file
    assert whisper.transcribe(samples, sampling_rate=16000, **GREEDY) == from_file
    assert whisper.transcribe(samples[::-1][::-1], **GREEDY) == from_file
    slow = whisper.transcribe(np.repeat(samples, 2), sampling_rate=32000, **GREEDY)
    assert slow.segments


def test_models_are_told_apart(whisper, demo):
    assert demo.sampling_rate == 0
    with pytest.raises(ValueError, match="model: expected one that hears, got one that reads text"):
        demo.transcribe(RECORDINGS / "one.wav")
    with pytest.raises(ValueError, match="expected one for logits"):
        whisper.generate("a text")


def test_refusals_name_what_is_wrong(whisper, tmp_path):
    with pytest.raises(FileNotFoundError):
        whisper.transcribe("nothere.wav")
    with pytest.raises(IsADirectoryError, match="expected a file, got a folder"):
        whisper.transcribe(tmp_path)
    with pytest.raises(TypeError, match="sound: expected an array of float32, got int16"):
        whisper.transcribe(np.zeros(100, np.int16))
    with pytest.raises(ValueError, match=r"sound: expected samples \[n_samples\], got shape \[2, 50\]"):
        whisper.transcribe(np.zeros((2, 50), np.float32))
    with pytest.raises(ValueError, match="sampling_rate: expected none beside a file"):
        whisper.transcribe(RECORDINGS / "one.wav", sampling_rate=8000)
    with pytest.raises(ValueError, match="language: expected one of de, en, haw, got xx"):
        whisper.transcribe(samples_of("one"), language="xx")
    with pytest.raises(ValueError, match="finite samples before the first other: expected 3, got 1"):
        whisper.transcribe(np.array([0, np.nan, 0], np.float32))
    with pytest.raises(ValueError, match="temperatures: expected at least one"):
        whisper.transcribe(samples_of("one"), temperature=[])
    with pytest.raises(ValueError, match="task: expected one of transcribe, translate, got sing"):
        whisper.transcribe(samples_of("one"), task="sing")
    with pytest.raises(ValueError, match="samples a second: expected 1,000 to 768,000, got 1"):
        whisper.transcribe(samples_of("one"), sampling_rate=1)
    for name in ("compression_ratio_threshold", "logprob_threshold", "no_speech_threshold"):
        with pytest.raises(TypeError, match=f"{name}: expected a number or None, got str"):
            whisper.transcribe(samples_of("one"), **{name: "much"})
    (tmp_path / "text.wav").write_text("no sound")
    with pytest.raises(ValueError, match=r"text\.wav: expected a"):
        whisper.transcribe(tmp_path / "text.wav")

"""What people do with speech: transcripts, and words with their times."""
import difflib
import hashlib
import json
import shutil
import struct
import subprocess
import wave

import numpy

from report import HAS_TORCH

RATE = 16000
SAID = ["The train to the city leaves at half past seven.", "Please close the window before you leave.",
        "Bread, butter and cheese are on the table."]


def recorded(path):
    """Three sentences by espeak-ng with silence between them; returns a name of the recording, which another voice changes."""
    samples = []
    for sentence in SAID:
        speak = ["espeak-ng", "-v", "en-us", "-s", "145", "--stdout", sentence]
        spoken = subprocess.run(speak, check=True, capture_output=True).stdout
        sound = numpy.frombuffer(spoken[44:], numpy.int16)
        (rate,) = struct.unpack_from("<I", spoken, 24)
        samples.append(numpy.interp(numpy.arange(0, len(sound), rate / RATE), numpy.arange(len(sound)), sound))
        samples.append(numpy.zeros(RATE // 2))
    samples = numpy.concatenate(samples).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    return hashlib.sha256(samples.tobytes()).hexdigest()[:8]


def words_of(text):
    return "".join(c for c in text.lower() if c.isalnum() or c.isspace()).split()


def n_other_words(got, expected):
    got, expected = words_of(got), words_of(expected)
    same = sum(block.size for block in difflib.SequenceMatcher(None, got, expected, autojunk=False).get_matching_blocks())
    return max(len(got), len(expected)) - same


def transcribes(report, model, folder):
    """A recording as text, beside transformers' on the same weights and beside what was said."""
    if not shutil.which("espeak-ng"):
        return print("skipped: transcripts, without espeak-ng")
    path = report.work / "said.wav"
    name = recorded(path)
    ask = ["transcribe", model, path, "--language", "en", "--temp", "0", "--no-timestamps"]
    text = report.run(*ask).strip()
    theirs = transformers_text(path, folder) if HAS_TORCH else None
    if report.kept("recording", name) == name:  # other versions of espeak-ng speak otherwise
        report.text("a recording of 9 seconds", text)
        committed = report.kept("transformers' transcript", theirs)
        theirs = theirs or committed
    n_other = n_other_words(text, " ".join(SAID))
    report.row("words", f"{len(words_of(text))}", f"{len(words_of(' '.join(SAID)))} said", f"{n_other} other", n_other <= 4)
    if theirs:
        report.true("its text", f"{len(text)} characters", "transformers", theirs == text)
    timed = json.loads(report.run("transcribe", model, path, "--language", "en", "--temp", "0", "--words", "--json"))
    words = [word for segment in timed["segments"] for word in segment["words"]]
    longest = max(word["end"] - word["start"] for word in words)
    forward = all(a["end"] <= b["start"] + 1e-6 for a, b in zip(words, words[1:]))
    report.true("times of words", f"{len(words)} words, longest {longest:.2f} s", "forward, below 3 s", forward and longest < 3)


def transformers_text(path, folder):
    """What transformers' model writes greedily of it, one token after another."""
    import torch
    from tokenizers import Tokenizer
    from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration
    with wave.open(str(path)) as file:
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2").astype(numpy.float32) / 32768
    model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    settings = json.loads((folder / "generation_config.json").read_text())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    names = ["<|startoftranscript|>", *([] if folder.name.endswith(".en") else ["<|en|>", "<|transcribe|>"]), "<|notimestamps|>"]
    ids, end = [tokenizer.token_to_id(name) for name in names], tokenizer.token_to_id("<|endoftext|>")
    n_begin = len(ids)
    with torch.no_grad():
        extract = WhisperFeatureExtractor(feature_size=model.config.num_mel_bins)
        features = extract(samples, sampling_rate=RATE, return_tensors="pt")
        memory = model.model.encoder(features.input_features)
        while len(ids) < 200:
            logits = model(encoder_outputs=memory, decoder_input_ids=torch.tensor([ids])).logits[0, -1]
            logits[settings["suppress_tokens"]] = -torch.inf
            if len(ids) == n_begin:
                logits[settings["begin_suppress_tokens"]] = -torch.inf
            logits[end + 1:] = -torch.inf
            ids.append(int(logits.argmax()))
            if ids[-1] == end:
                break
    return tokenizer.decode(ids[n_begin:-1]).strip()

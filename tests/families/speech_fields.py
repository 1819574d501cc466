"""Changes of the files of a Whisper folder, for fields.py: the segments that transformers' generate() writes of a recording."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy
import torch
import transformers as T

from changing import COMMON, each_change, judge
from changing import changes_of as all_changes_of

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
sys.path.append(str(GOLDEN))
import make_transcripts  # noqa: E402

BASE = GOLDEN / "speech/whisper_talking"
RATE, HOP = 16000, 160  # unless preprocessor_config.json says others
SECONDS = 1.5  # two windows and a half of the golden model's
FIRST_TIMESTAMP = json.loads((BASE / "generation_config.json").read_text())["no_timestamps_token_id"] + 1
MOST = 24      # tokens of a window: half of the model's positions
FILES = ["generation_config.json", "config.json", "preprocessor_config.json"]
FOREIGN = {
    "generation_config.json": {
        "forced_decoder_ids": [[1, 268], [2, 270]], "alignment_heads": [[0, 1]], "num_beams": 2, "do_sample": True, "temperature": 0.5,
        "repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "min_length": 30, "min_new_tokens": 8, "bad_words_ids": [[9]],
        "forced_bos_token_id": 5, "forced_eos_token_id": 1, "sequence_bias": [[[100], -50.0]], "length_penalty": 0.1,
        "exponential_decay_length_penalty": [2, 1.5], "guidance_scale": 1.5, "top_k": 3, "renormalize_logits": True,
        "encoder_no_repeat_ngram_size": 1, "encoder_repetition_penalty": 1.5, "prompt_lookup_num_tokens": 2, "language": "en",
        "task": "translate", "no_speech_threshold": 0.0, "logprob_threshold": -0.01, "compression_ratio_threshold": 0.1,
        "condition_on_prev_tokens": True, "max_new_tokens": 5, "dola_layers": "high", "penalty_alpha": 0.6, "top_h": 0.3,
        "watermarking_config": {"greenlist_ratio": 0.25, "bias": 2.0}, "epsilon_cutoff": 0.02, "eta_cutoff": 0.05,
        "stop_strings": ["a"], "token_healing": True, "force_words_ids": [[9]]},
    "config.json": {"scale_embedding": True, "tie_word_embeddings": False, "forced_decoder_ids": [[1, 269], [2, 270]], "num_beams": 2,
                    "suppress_tokens": [280], "begin_suppress_tokens": [282], "median_filter_width": 3, "head_dim": 8,
                    "layer_norm_eps": 0.1, "attention_bias": False, "activation_function": "relu"},
    "preprocessor_config.json": {"dither": 0.5, "padding_value": 0.5, "do_normalize": True, "n_fft": 512, "hop_length": 80,
                                 "sampling_rate": 8000, "return_attention_mask": True, "feature_size": 40}}
# Without the ids that begin, end and steer a transcript Fovea goes by the names of tokens; transformers stops or never ends.
BY_NAMES = {"decoder_start_token_id", "eos_token_id", "is_multilingual", "lang_to_id", "task_to_id", "no_timestamps_token_id",
            "prev_sot_token_id"}


def changes_of(file, written):
    for path, value in all_changes_of(written, texts=["relu", "gelu"], skip=COMMON if file == "config.json" else ()):
        if not (file == "generation_config.json" and path[0] in BY_NAMES and (value is ... or value is None)):
            yield path, value
    yield from (((name,), value) for name, value in FOREIGN[file].items() if written.get(name, ...) != value)


def changes(_):
    """Of the golden model that talks."""
    samples = make_transcripts.sound(int(SECONDS * RATE), 1)
    for file in FILES:
        written = json.loads((BASE / file).read_text())
        yield from each_change(file, written, changes_of(file, written),
                               lambda fovea, fields, work, file=file: compare(fovea, file, fields, samples, work))


def in_one(segments, is_text):
    """Segments of (start, end, tokens) with a text and a length, as one array; their timestamps, which transformers repeats, apart."""
    return numpy.array([number for start, end, tokens in segments if start < end and is_text(tokens)
                        for number in (round(start, 4), round(end, 4), *(i for i in tokens if i < FIRST_TIMESTAMP), -1)], float)


def is_text(folder):
    tokenizer = T.WhisperTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    return lambda tokens: tokenizer.decode(tokens, skip_special_tokens=True).strip(" \t\r\n") != ""


def asked_of(generation):
    return {"language": "de", "task": "transcribe"} if generation.get("is_multilingual") else {}


def expect(folder, generation, samples):
    model = T.WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float64).eval()
    settings = model.generation_config
    steering = [settings.decoder_start_token_id, *settings.task_to_id.values(), settings.prev_sot_token_id,
                settings.no_timestamps_token_id - 1]  # OpenAI's own code never writes these
    settings.suppress_tokens = [*(settings.suppress_tokens or []), *steering]
    extractor = T.WhisperFeatureExtractor.from_pretrained(folder)
    features = extractor(samples.astype(numpy.float32) / 32768, sampling_rate=extractor.sampling_rate, return_tensors="pt",
                         truncation=False, padding="longest").input_features
    out = model.generate(features.double(), max_new_tokens=MOST, return_timestamps=True, return_segments=True, **asked_of(generation))
    return in_one(((float(s["start"]), float(s["end"]), s["tokens"].tolist()) for s in out["segments"][0]), is_text(folder))


def compare(fovea, file, fields, samples, work):
    """The same segments, or a note names what is not heeded."""
    folder, recording = work / "model", work / "sound.raw"
    shutil.copytree(BASE, folder, ignore=shutil.ignore_patterns("*.npy"))
    (folder / file).write_text(json.dumps(fields))
    recording.write_bytes(samples.tobytes())
    generation = json.loads((folder / "generation_config.json").read_text())
    try:
        torch.manual_seed(1)
        expected = expect(folder, generation, samples)
    except Exception:  # refusals of many kinds, and faults of its own
        return "skipped"
    made = subprocess.run([fovea, "convert", folder, "-o", work / "m.fovea", "--type", "f32"], capture_output=True, text=True)
    changed = [name for name in {*fields, *FOREIGN[file]} if fields.get(name) != json.loads((BASE / file).read_text()).get(name)]
    named = [name for name in changed if re.search(f"{file}: {name}: (.*: )?transcripts don't heed", made.stderr)]
    if named:
        return "refused: " + ", ".join(named)

    frames = json.loads((folder / "preprocessor_config.json").read_text())
    rate, hop = frames.get("sampling_rate", RATE), frames.get("hop_length", HOP)
    before = [] if generation.get("condition_on_prev_tokens") else ["--no-previous-text"]

    def got():
        made.check_returncode()
        pace = hop / rate * RATE / HOP  # transformers tells times as if a frame took 10 ms
        asked = [word for name, value in asked_of(generation).items() for word in (f"--{name}", value)]
        answer = subprocess.run([fovea, "transcribe", work / "m.fovea", recording, "--raw", f"{rate}:s16", "--temp", "0",
                                 "--json", *before, *asked], check=True, capture_output=True, text=True).stdout
        return in_one(((s["start"] / pace, s["end"] / pace, s["tokens"]) for s in json.loads(answer)["segments"]), is_text(folder))

    return judge(expected, got, work) if len(expected) else "skipped"

#!/usr/bin/env python3
"""A small model that talks, recordings, and the tokens that transformers' generate() writes of them.

Needs torch and transformers 5. Greedy, in float64, without second attempts: recordings/transcripts.json holds for each recording
(recordings/*.wav, 16-bit) and each way of asking the segments, of which speech_engine_test.cpp wants the same; plain ones are of
whisper_narrow. The model's positions weigh more than its tokens, so that it does not repeat itself, and its times and its end are made likely.
"""
import json
import pathlib
import shutil
import sys
import wave

import numpy
import torch
from make_sound import frames_of, mel_filters
from make_speech import randomize
from transformers import WhisperConfig, WhisperForConditionalGeneration, WhisperTokenizerFast

FOLDER = pathlib.Path(__file__).resolve().parent / "speech"
RECORDINGS = FOLDER.parent / "recordings"
MODEL = FOLDER / "whisper_talking"
SEED = 1
WINDOW = 9600  # samples: 60 frames
SOUNDS = {"one": WINDOW, "two": WINDOW * 3 // 2, "three": WINDOW * 5 // 2}
ASKED = {
    "plain": {"language": "en", "task": "transcribe"},
    "timestamps": {"language": "de", "task": "transcribe", "return_timestamps": True},
    "detected": {"task": "translate", "return_timestamps": True},
    "previous": {"language": "haw", "task": "transcribe", "return_timestamps": True, "condition_on_prev_tokens": True},
    "prompted": {"language": "haw", "task": "transcribe", "return_timestamps": True, "condition_on_prev_tokens": True,
                 "prompt": " Fovea, a name. "},
}


def sound(n_samples, seed):
    """Tones that come and go over noise, as 16-bit numbers."""
    random = numpy.random.default_rng(seed)
    t = numpy.arange(n_samples) / 16000
    x = random.normal(0, 0.01, n_samples)
    for _ in range(12):
        begin, length, hertz = random.uniform(0, t[-1]), random.uniform(0.02, 0.2), random.uniform(100, 6000)
        x += 0.15 * numpy.sin(2 * numpy.pi * hertz * t) * ((t > begin) & (t < begin + length))
    return numpy.round(numpy.clip(x, -1, 1) * 32767).astype(numpy.int16)


def save_model(seed):
    """The folder of whisper_narrow, smaller, with weights of its own."""
    shutil.copytree(FOLDER / "whisper_narrow", MODEL, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.npy", "*.safetensors"))
    config = WhisperConfig.from_pretrained(MODEL, d_model=32, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=32,
                                           decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=32,
                                           max_target_positions=48)
    model = WhisperForConditionalGeneration(config).eval()
    randomize(model, seed)
    decoder = model.model.decoder
    decoder.embed_positions.weight.data *= 3
    times = decoder.embed_tokens.weight.data[config.vocab_size - config.max_source_positions - 1:]
    times *= 1.3
    model.half().save_pretrained(MODEL)
    generation = json.loads((FOLDER / "whisper_narrow" / "generation_config.json").read_text())
    steering = [generation["decoder_start_token_id"], *generation["task_to_id"].values(), generation["prev_sot_token_id"],
                generation["no_timestamps_token_id"] - 1]  # as Whisper's own files have them
    generation |= {"pad_token_id": config.pad_token_id, "suppress_tokens": generation["suppress_tokens"] + steering}
    (MODEL / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n")


def main():
    save_model(int(sys.argv[1]) if len(sys.argv) > 1 else SEED)
    models = {name: WhisperForConditionalGeneration.from_pretrained(FOLDER / name, dtype=torch.float64).eval()
              for name in ("whisper_talking", "whisper_narrow")}
    filters = mel_filters(16000, 400, 80)  # the extractor of transformers takes float32, which is further from the exact value
    tokenizer = WhisperTokenizerFast(tokenizer_file=str(MODEL / "tokenizer.json"))
    expected = {}
    for number, (name, n_samples) in enumerate(SOUNDS.items()):
        samples = sound(n_samples, number)
        with wave.open(str(RECORDINGS / f"{name}.wav"), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(16000)
            file.writeframes(samples.tobytes())
        frames = frames_of((16000, 400, 160, 80, n_samples // 160), filters, samples.astype(numpy.float32) / 32768)
        features = torch.from_numpy(frames.T.astype(numpy.float64))[None]
        for asked, arguments in ASKED.items():
            plain = "return_timestamps" not in arguments  # of the model that writes none by itself, and one window alone
            if plain and name != "one":
                continue
            model = models["whisper_narrow" if plain else "whisper_talking"]
            arguments = dict(arguments)
            if "prompt" in arguments:
                arguments["prompt_ids"] = torch.from_numpy(tokenizer.get_prompt_ids(arguments.pop("prompt")))
            out = model.generate(features, max_new_tokens=16, do_sample=False, num_beams=1, return_segments=True,
                                 **arguments)
            expected[f"{name} {asked}"] = [
                {"start": round(float(s["start"]), 4), "end": round(float(s["end"]), 4), "tokens": s["tokens"].tolist()}
                for s in out["segments"][0]]
            print(name, asked, expected[f"{name} {asked}"])
    (RECORDINGS / "transcripts.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()

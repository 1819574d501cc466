#!/usr/bin/env python3
"""Makes tests/golden/whisper_files: one small model as OpenAI's own checkpoint and as whisper.cpp's file.

    tiny.pt                 {"dims", "model_state_dict"}, as the package openai-whisper loads it; float16
    multilingual.tiktoken   its tokens, beside it
    tiny.bin                the same as whisper.cpp's converter lays it out, one matrix in Q8_0, which holds it exactly
    logits.npy              [n_tokens, n_vocab], of tokens (7·i + 3) mod n_vocab beside frames.npy [n_frames, n_mels]
    expected.json           ids of texts, and which tokens are never written, by the package's own tokenizer

Needs torch, openai-whisper, tiktoken and gguf. Everything is seeded.
"""
import base64
import json
import pathlib
import shutil
import struct
import tempfile

import gguf
import numpy
import torch
import whisper
import whisper.tokenizer
from whisper.model import ModelDimensions, Whisper

FOLDER = pathlib.Path(__file__).resolve().parent / "whisper_files"
MERGED = [b"th", b"the", b" t", b" th", b" the", b"on", b"la", b"lam", b"lamp", b" -", b" '", b"<<", b" <<", b"--", b" --",
          b"\xe2\x99", b" \xe2\x99", b"\xe2\x99\xaa", b" \xe2\x99\xaa", b" (", b"in", b"ing"]
TEXTS = ["the lamp", " the thing\nis on", "<< -- ♪♪ 'la' —", "été 日本"]
N_LANGUAGES, N_TOKENS = 3, 4
EXACT = "encoder.blocks.0.mlp.0.weight"


def write_tokens(path):
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    order = printable + [byte for byte in range(256) if byte not in printable]  # as GPT-2 has them
    tokens = [bytes([byte]) for byte in order] + MERGED
    path.write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens)))
    return tokens


def own_tokenizer(path):
    """The package's tokenizer over those tokens."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "assets").mkdir()
        shutil.copy(path, pathlib.Path(folder) / "assets")
        kept = whisper.tokenizer.__file__
        whisper.tokenizer.__file__ = str(pathlib.Path(folder) / "tokenizer.py")
        try:
            encoding = whisper.tokenizer.get_encoding("multilingual", N_LANGUAGES)
        finally:
            whisper.tokenizer.__file__ = kept
    return whisper.tokenizer.Tokenizer(encoding, N_LANGUAGES, language="en", task="transcribe")


def randomize(model):
    generator = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if "ln" in name:
            parameter.data = noise * 0.2 + (0.0 if name.endswith("bias") else 1.0)
        elif name == EXACT:
            quants = torch.randint(-127, 128, parameter.shape, generator=generator)
            quants[:, ::32] = 127
            parameter.data = quants / 256
        else:
            parameter.data = noise * (1.2 / parameter[0].numel()**0.5 if parameter.dim() > 1 else 0.3)
        parameter.data = parameter.data.half().float()


def write_ggml(path, model, tokens):
    dims = model.dims
    filters = whisper.audio.mel_filters("cpu", dims.n_mels).numpy()
    with open(path, "wb") as out:
        out.write(struct.pack("<12i", 0x67676d6c, dims.n_vocab, dims.n_audio_ctx, dims.n_audio_state, dims.n_audio_head,
                              dims.n_audio_layer, dims.n_text_ctx, dims.n_text_state, dims.n_text_head, dims.n_text_layer,
                              dims.n_mels, 1))
        out.write(struct.pack("<2i", *filters.shape))
        out.write(filters.astype(numpy.float32).tobytes())
        out.write(struct.pack("<i", len(tokens)))
        for token in tokens:
            out.write(struct.pack("<i", len(token)) + token)
        for name, tensor in model.state_dict().items():
            data = tensor.numpy().squeeze()
            if name in ("encoder.conv1.bias", "encoder.conv2.bias"):
                data = data.reshape(-1, 1)
            wide = data.ndim < 2 or name in ("encoder.conv1.bias", "encoder.conv2.bias", "encoder.positional_embedding",
                                             "decoder.positional_embedding")
            kind = 8 if name == EXACT else 0 if wide else 1
            stored = (gguf.quants.quantize(data, gguf.GGMLQuantizationType.Q8_0) if kind == 8 else
                      data.astype(numpy.float32 if wide else numpy.float16))
            spelled = name.encode()
            out.write(struct.pack("<3i", data.ndim, len(spelled), kind))
            out.write(struct.pack(f"<{data.ndim}i", *reversed(data.shape)) + spelled + stored.tobytes())


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    tokens = write_tokens(FOLDER / "multilingual.tiktoken")
    spoken = own_tokenizer(FOLDER / "multilingual.tiktoken")
    n_vocab = spoken.encoding.n_vocab
    model = Whisper(ModelDimensions(n_mels=80, n_audio_ctx=10, n_audio_state=32, n_audio_head=2, n_audio_layer=1, n_vocab=n_vocab,
                                    n_text_ctx=12, n_text_state=32, n_text_head=4, n_text_layer=1)).eval()
    randomize(model)
    half = {name: tensor.half() for name, tensor in model.state_dict().items()}
    torch.save({"dims": model.dims.__dict__, "model_state_dict": half}, FOLDER / "tiny.pt")
    model.load_state_dict(half)
    write_ggml(FOLDER / "tiny.bin", model, tokens)
    frames = torch.randn(20, 80, generator=torch.Generator().manual_seed(6))
    ids = torch.tensor([[(7 * i + 3) % n_vocab for i in range(N_TOKENS)]])
    with torch.no_grad():
        logits = model(frames.T[None], ids)[0]
    numpy.save(FOLDER / "frames.npy", frames.numpy())
    numpy.save(FOLDER / "logits.npy", logits.numpy())
    never = {*spoken.non_speech_tokens, spoken.sot, spoken.translate, spoken.transcribe, spoken.sot_lm, spoken.sot_prev,
             spoken.no_speech}
    expected = {"texts": {text: spoken.encode(text) for text in TEXTS}, "suppress_tokens": sorted(never),
                "begin_suppress_tokens": sorted([*spoken.encode(" "), spoken.eot]),
                "lang_to_id": {f"<|{code}|>": spoken.to_language_token(code) for code in ("en", "zh", "de")},
                "timestamp_begin": spoken.timestamp_begin, "no_timestamps_token_id": spoken.no_timestamps}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()

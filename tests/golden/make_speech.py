#!/usr/bin/env python3
"""Makes the small speech models of tests/golden/speech with what transformers computes of them.

    make_speech.py             the golden ones
    make_speech.py FOLDER N    N of random shapes, there: the suite compares those in FOVEA_SPEECH_FOLDERS too

Needs torch, transformers 5 and tokenizers. Everything is seeded, and computed in float64 from the weights as they are saved. Each
folder is a Hugging Face folder plus

    frames.npy                [n_frames, n_mels]           the whole stretch that the model was made for
    expected_rows.npy         [n_frames / 2, d_model]      the encoder's
    expected_logits.npy       [n_tokens, vocab_size]       for tokens (7·i + 3) mod vocab_size beside those
    expected_short_rows.npy   [14, d_model]                of the first 27 frames alone, an odd number
    expected_short_logits.npy                              for the same tokens beside those
    expected_filters.npy      [n_mels, n_bins]             the feature extractor's, in float32
"""
import json
import pathlib
import random
import shutil
import sys

import numpy
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

FOLDER = pathlib.Path(__file__).resolve().parent / "speech"
N_TOKENS, N_SHORT = 12, 27
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "t"), ("Ġt", "h"), ("Ġth", "e"), ("o", "n"), ("l", "a"), ("la", "m"), ("lam", "p")]
STEERING = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|haw|>", "<|translate|>", "<|transcribe|>",
            "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]


def tokenizer(n_positions):
    """Byte-level BPE, the tokens that steer, and a time for every position of 20 ms."""
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet()) + [a + b for a, b in MERGES]
    made = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=MERGES))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in STEERING])
    made.add_tokens([AddedToken(f"<|{0.02 * i:.2f}|>", normalized=False) for i in range(n_positions + 1)])
    return made


def randomize(model, seed):
    """Weights large enough that attention is far from uniform and every bias and norm matters."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if "layer_norm" in name:
            parameter.data = noise * 0.2 + (0.0 if name.endswith("bias") else 1.0)
        elif parameter.dim() > 1:
            parameter.data = noise * (1.4 / parameter[0].numel()**0.5)
        else:
            parameter.data = noise * 0.3
    model.tie_weights()


def short_rows(encoder, frames):
    """The encoder's own parts over fewer frames than it takes."""
    x = torch.nn.functional.gelu(encoder.conv1(frames))
    x = torch.nn.functional.gelu(encoder.conv2(x)).permute(0, 2, 1)
    x = x + encoder.embed_positions.weight[:x.shape[1]]
    for layer in encoder.layers:
        x = layer(x, None)
        x = x[0] if isinstance(x, tuple) else x
    return encoder.layer_norm(x)


def save(folder, seed, dtype, bare, **fields):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = tokenizer(fields["max_source_positions"])
    words.save(str(folder / "tokenizer.json"))
    id_of = words.token_to_id
    end = id_of("<|endoftext|>")
    config = WhisperConfig(vocab_size=words.get_vocab_size(), decoder_start_token_id=id_of("<|startoftranscript|>"),
                           eos_token_id=end, bos_token_id=end, pad_token_id=end, suppress_tokens=None,
                           begin_suppress_tokens=[id_of("Ġ"), end], attn_implementation="eager", **fields)
    model = WhisperForConditionalGeneration(config).eval()
    randomize(model, seed)
    model.to(dtype)
    (model.model if bare else model).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if not bare:
        (folder / "generation_config.json").write_text(json.dumps({
            "begin_suppress_tokens": [id_of("Ġ"), end], "suppress_tokens": [id_of("!"), id_of("#")],
            "decoder_start_token_id": id_of("<|startoftranscript|>"), "eos_token_id": end, "is_multilingual": True,
            "lang_to_id": {name: id_of(name) for name in ("<|en|>", "<|de|>", "<|haw|>")},
            "max_initial_timestamp_index": 20, "no_timestamps_token_id": id_of("<|notimestamps|>"),
            "prev_sot_token_id": id_of("<|startofprev|>"), "max_length": 20, "return_timestamps": False,
            "task_to_id": {task: id_of(f"<|{task}|>") for task in ("transcribe", "translate")}}, indent=1) + "\n")
    extractor = WhisperFeatureExtractor(feature_size=config.num_mel_bins)
    if not bare:
        extractor.save_pretrained(folder)
    numpy.save(folder / "expected_filters.npy", extractor.mel_filters.T.astype(numpy.float32))

    model = model.double()
    generator = torch.Generator().manual_seed(seed + 1)
    frames = torch.randn(2 * config.max_source_positions, config.num_mel_bins, generator=generator)
    numpy.save(folder / "frames.npy", frames.numpy())
    tokens = torch.tensor([[(7 * i + 3) % config.vocab_size for i in range(N_TOKENS)]])
    features = frames.double().T[None]
    with torch.no_grad():
        rows = model.model.encoder(features).last_hidden_state
        short = short_rows(model.model.encoder, features[:, :, :N_SHORT])
        whole = short_rows(model.model.encoder, features)
        assert torch.allclose(rows, whole, atol=1e-12)
        for kind, memory in (("", rows), ("short_", short)):
            logits = model(encoder_outputs=BaseModelOutput(last_hidden_state=memory), decoder_input_ids=tokens).logits
            numpy.save(folder / f"expected_{kind}rows.npy", memory[0].float().numpy())
            numpy.save(folder / f"expected_{kind}logits.npy", logits[0].float().numpy())


def random_shape(rng):
    n_heads, more_heads, unit = rng.choice([1, 2, 3, 5]), rng.choice([1, 2, 4]), rng.choice([4, 6, 10, 14])
    return dict(d_model=n_heads * more_heads * unit, encoder_layers=rng.choice([1, 2, 3]),
                encoder_attention_heads=n_heads, encoder_ffn_dim=rng.choice([5, 24, 33, 64, 130]),
                decoder_layers=rng.choice([1, 2, 3]), decoder_attention_heads=more_heads,
                decoder_ffn_dim=rng.choice([5, 24, 33, 64]), num_mel_bins=rng.choice([1, 7, 16, 80, 128]),
                max_source_positions=rng.choice([14, 20, 37, 110]), max_target_positions=rng.choice([12, 40]),
                activation_function=rng.choice(["gelu", "relu", "gelu_new"]))


def main():
    if len(sys.argv) > 1:
        rng = random.Random(7)
        for i in range(int(sys.argv[2])):
            save(pathlib.Path(sys.argv[1]) / str(i), 10 + i, rng.choice([torch.float32, torch.float16, torch.bfloat16]),
                 rng.choice([True, False]), **random_shape(rng))
        return
    save(FOLDER / "whisper_narrow", 1, torch.float32, False, d_model=48, encoder_layers=2, encoder_attention_heads=3,
         encoder_ffn_dim=100, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=84, num_mel_bins=80,
         max_source_positions=30, max_target_positions=40)
    save(FOLDER / "whisper_bare", 2, torch.float16, True, d_model=40, encoder_layers=1, encoder_attention_heads=5,
         encoder_ffn_dim=64, decoder_layers=3, decoder_attention_heads=2, decoder_ffn_dim=50, num_mel_bins=128,
         max_source_positions=50, max_target_positions=24)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes the small encoders of tests/golden/encoders with what transformers computes from them.

Needs torch and transformers 5. Everything is seeded. Each folder is a Hugging Face or sentence-transformers folder plus
expected_rows.npy (the last layer's rows for tokens (7·i + 3) mod vocab_size), and where it has a
tokenizer texts.txt, expected_text_ids.json and expected_texts.npy (a pooled, normalized vector for each line).
"""
import json
import pathlib
import shutil

import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertModel, BertTokenizer

FOLDER = pathlib.Path(__file__).resolve().parent / "encoders"
N_TOKENS = 24
TEXTS = ["The lamp is on.", "Lamps, lamp; LÁMPED!", "a", "Δοκιμή 你好 lamp", "the " * 9 + "kitchen", "unthinkable"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,;!?", "##s", "##ed", "##ing",
              "##kable", "the", "lamp", "is", "on", "kit", "##chen", "un", "##thin", "你", "好", "δ", "##ο", "##κ",
              "##ι", "##μ", "##η", "off", "##a", "##e", "##n"]


def randomize(model, seed):
    """Weights large enough that attention is far from uniform and every bias and norm matters."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 2:
            parameter.data = noise * (1.4 / parameter.shape[1]**0.5)
        elif "LayerNorm" in name:
            parameter.data = noise * 0.2 + (0.0 if name.endswith("bias") else 1.0)
        else:
            parameter.data = noise * 0.3


def save(name, model, dtype=torch.float32):
    """Saves the rounded weights and computes with those, in float64."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder)
    model = model.double()
    encoder = getattr(model, "bert", model)
    tokens = torch.tensor([[(7 * i + 3) % model.config.vocab_size for i in range(N_TOKENS)]])
    with torch.no_grad():
        rows = encoder(tokens).last_hidden_state[0]
    numpy.save(folder / "expected_rows.npy", rows.float().numpy())
    return folder, encoder


def config(**fields):
    return BertConfig(hidden_size=36, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=40,
                      attn_implementation="eager", **fields)


def sentence():
    model = BertModel(config(vocab_size=len(VOCABULARY), intermediate_size=52)).eval()
    randomize(model, 1)
    folder, encoder = save("bert_sentence", model)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}\n')
    kinds = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling"), ("2", "2_Normalize", "Normalize")]
    (folder / "modules.json").write_text(json.dumps([
        {"idx": int(n), "name": n, "path": path, "type": "sentence_transformers.models." + kind}
        for n, path, kind in kinds], indent=1) + "\n")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": 36, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}) + "\n")
    tokenizer = BertTokenizer(vocab={token: i for i, token in enumerate(VOCABULARY)})
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    ids, vectors = [], []
    for text in TEXTS:
        ids.append(tokenizer(text).input_ids)
        with torch.no_grad():
            mean = encoder(torch.tensor([ids[-1]])).last_hidden_state[0].mean(0)
        vectors.append((mean / mean.norm()).float().numpy())
    (folder / "expected_text_ids.json").write_text(json.dumps(ids) + "\n")
    numpy.save(folder / "expected_texts.npy", numpy.stack(vectors))


def masked():
    """A masked language model in float16 whose norms are named as the first checkpoints name them."""
    model = BertForMaskedLM(config(vocab_size=50, intermediate_size=40, hidden_act="gelu_new", layer_norm_eps=1e-3,
                                   type_vocab_size=3)).eval()
    randomize(model, 2)
    folder, _ = save("bert_masked", model, torch.float16)
    path = folder / "model.safetensors"
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {}
    for name, tensor in load_file(path).items():
        for now, then in older.items():
            name = name.replace(now, then)
        tensors[name] = tensor
    save_file(tensors, path, metadata={"format": "pt"})
    (folder / "generation_config.json").unlink(missing_ok=True)


def main():
    sentence()
    masked()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Stacks of PyTorch between embeddings and an output map, as folders that `fovea convert` reads, and what they compute.

Makes tests/golden/torch_text anew: of each case config.json, model.safetensors, ids.npy, for a memory memory.npy (vectors)
or source.npy (ids), and expected.npy, computed in float64. Needs torch (2.13 made the kept ones) and numpy.
"""
import json
import math
import pathlib
import shutil

import numpy as np
import torch
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent / "torch_text"
torch.backends.mha.set_fastpath_enabled(False)  # the layers as their documentation has them


def sinusoids(n_positions, d_model):
    pos, even = torch.arange(n_positions).double()[:, None], torch.arange(0, d_model, 2).double()
    angles = pos * torch.exp(-math.log(10000.0) * even / d_model)
    table = torch.zeros(n_positions, d_model, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = torch.sin(angles), torch.cos(angles)[:, :d_model // 2]
    return table


def later(n):
    return torch.triu(torch.ones(n, n, dtype=torch.bool), 1)


class Text(nn.Module):
    """ids -> scaled embedding + positions -> layers -> output map."""

    def __init__(self, config, d_model, layers, vocab_size, n_out, scale, positions, bias):
        super().__init__()
        self.embed, self.scale, self.config = nn.Embedding(vocab_size, d_model), scale, config
        if positions == "learned":
            self.place = nn.Embedding(40, d_model)
        elif positions == "buffer":  # with an axis for the batch, as the tutorials have it
            self.register_buffer("table", sinusoids(40, d_model)[:, None, :])
        elif positions == "sinusoidal":
            self.sines = sinusoids(40, d_model)
        self.body = layers
        self.out = nn.Linear(d_model, n_out, bias=bias)

    def embedded(self, ids, embed=None):
        x = (embed or self.embed)(ids) * self.scale
        n = ids.shape[1]
        if hasattr(self, "place"):
            return x + self.place.weight[:n]
        if hasattr(self, "table"):
            return x + self.table[:n, 0]
        return x + self.sines[:n] if hasattr(self, "sines") else x


def shake(module, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(*parameter.shape, generator=generator)
            if parameter.dim() == 2:
                parameter.copy_(noise * 1.2 / parameter.shape[1]**0.5)
            else:
                parameter.copy_(noise * 0.3 + (1.0 if "norm" in name and name.endswith("weight") else 0.0))
    return module.float().double().eval()


def save(name, module, config, arrays):
    folder = FOLDER / name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    header, data = {}, b""
    for key, tensor in module.state_dict().items():
        piece = tensor.float().contiguous().numpy().tobytes()
        header[key] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    for key, array in arrays.items():
        np.save(folder / (key + ".npy"), array.numpy().astype(np.float32 if array.is_floating_point() else np.int64))


def layer_options(d_model, n_heads, norm_first=False):
    options = {"d_model": d_model, "nhead": n_heads, "dim_feedforward": 2 * d_model + 3, "activation": "gelu",
               "norm_first": norm_first}
    return options, dict(options, dropout=0.0, batch_first=True)


def language_model():
    d_model, vocab_size, ids = 20, 31, torch.arange(17)[None] * 7 % 31
    options, layer = layer_options(d_model, 4, True)
    body = nn.TransformerEncoder(nn.TransformerEncoderLayer(**layer), 2, nn.LayerNorm(d_model), enable_nested_tensor=False)
    module = shake(Text(None, d_model, body, vocab_size, vocab_size, math.sqrt(d_model), "sinusoidal", True), 1)
    logits = module.out(module.body(module.embedded(ids), mask=later(17)))
    config = dict(options, model_type="torch.nn.TransformerEncoder", num_layers=2, final_norm=True, prefix="body.",
                  vocab_size=vocab_size, token_embedding="embed.weight", embedding_scale="sqrt", positions="sinusoidal",
                  max_positions=40, causal=True, output="out.weight", output_bias="out.bias")
    save("language_model", module, config, {"ids": ids[0], "expected": logits[0].detach()})


def classifier():
    d_model, vocab_size, ids = 18, 25, torch.arange(11)[None] * 4 % 25
    options, layer = layer_options(d_model, 3)
    body = nn.TransformerEncoder(nn.TransformerEncoderLayer(**layer), 1, enable_nested_tensor=False)
    module = shake(Text(None, d_model, body, vocab_size, 5, 1.0, "learned", True), 2)
    classes = module.out(module.body(module.embedded(ids)).mean(1))
    config = dict(options, model_type="torch.nn.TransformerEncoder", num_layers=1, prefix="body.", vocab_size=vocab_size,
                  token_embedding="embed.weight", position_embedding="place.weight", max_positions=40, pooling="mean",
                  num_labels=5, output="out.weight", output_bias="out.bias")
    save("classifier", module, config, {"ids": ids[0], "expected": classes.detach()})


def captions():
    d_model, vocab_size, ids = 24, 29, torch.arange(9)[None] * 5 % 29
    options, layer = layer_options(d_model, 2)
    body = nn.TransformerDecoder(nn.TransformerDecoderLayer(**layer), 2)
    module = shake(Text(None, d_model, body, vocab_size, vocab_size, 3.5, "buffer", False), 3)
    memory = torch.randn(1, 13, d_model, generator=torch.Generator().manual_seed(4)).double()
    memory = memory.float().double()
    with torch.no_grad():
        module.out.weight.copy_(module.embed.weight)
    module.out.weight = module.embed.weight
    logits = module.out(module.body(module.embedded(ids), memory, tgt_mask=later(9)))
    del module.out
    config = dict(options, model_type="torch.nn.TransformerDecoder", num_layers=2, prefix="body.", vocab_size=vocab_size,
                  token_embedding="embed.weight", embedding_scale=3.5, position_embedding="table", max_positions=40,
                  output="embed.weight")
    save("captions", module, config, {"ids": ids[0], "memory": memory[0], "expected": logits[0].detach()})


class Translation(Text):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.read = nn.Embedding(19, self.out.in_features)


def translation():
    d_model, vocab_size, ids, source = 16, 23, torch.arange(8)[None] * 3 % 23, torch.arange(14)[None] * 5 % 19
    options, layer = layer_options(d_model, 4, True)
    body = nn.Transformer(num_encoder_layers=2, num_decoder_layers=1, **layer)
    module = shake(Translation(None, d_model, body, vocab_size, vocab_size, 1.0, "sinusoidal", True), 5)
    logits = module.out(module.body(module.embedded(source, module.read), module.embedded(ids), tgt_mask=later(8)))
    side = {"positions": "sinusoidal", "max_positions": 40}
    config = dict(options, model_type="torch.nn.Transformer", num_encoder_layers=2, num_decoder_layers=1, prefix="body.",
                  source=dict(side, vocab_size=19, token_embedding="read.weight"),
                  target=dict(side, vocab_size=vocab_size, token_embedding="embed.weight"),
                  output="out.weight", output_bias="out.bias")
    save("translation", module, config, {"ids": ids[0], "source": source[0], "expected": logits[0].detach()})


def main():
    torch.set_num_threads(1)
    shutil.rmtree(FOLDER, ignore_errors=True)
    for make in (language_model, classifier, captions, translation):
        make()


if __name__ == "__main__":
    main()

"""Jina's second embedding model from its paper (Günther et al. 2023) and Press et al. 2022: transformers has it not."""
import json
import math
import types

import torch
from safetensors.torch import save_file


class JinaBert(torch.nn.Module):
    """Weights by the names of its files."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        width, inner = config.hidden_size, config.intermediate_size
        shapes = {f"embeddings.{name}.weight": (rows, width) for name, rows in (
            ("word_embeddings", config.vocab_size), ("token_type_embeddings", config.type_vocab_size))}
        norms = ["embeddings.LayerNorm"]
        for i in range(config.num_hidden_layers):
            layer = f"encoder.layer.{i}."
            norms += [layer + "attention.output.LayerNorm", layer + "mlp.layernorm"]
            for name in ("self.query", "self.key", "self.value", "output.dense"):
                shapes |= {f"{layer}attention.{name}.weight": (width, width), f"{layer}attention.{name}.bias": (width,)}
            shapes |= {layer + "mlp.gated_layers.weight": (2 * inner, width), layer + "mlp.wo.weight": (width, inner),
                       layer + "mlp.wo.bias": (width,)}
        shapes |= {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}
        self.p = {name: torch.nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()}

    def named_parameters(self, *_, **__):
        return self.p.items()

    def tie_weights(self):
        pass

    def double(self):
        for parameter in self.p.values():
            parameter.data = parameter.data.double()
        return self

    def save_pretrained(self, folder):
        save_file({name: p.data.contiguous() for name, p in self.p.items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(self.config.to_dict(), indent=1) + "\n")

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.p[name + ".weight"], self.p.get(name + ".bias"))

    def norm(self, name, x):
        weight, bias = self.p[name + ".weight"], self.p[name + ".bias"]
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, self.config.layer_norm_eps)

    def slopes(self, n):
        """Powers of 2^(-8/n) for a power of two; for others those of the one below, then every other one of that above."""
        below = 2**math.floor(math.log2(n))
        of = lambda m: [2**(-8 * (i + 1) / m) for i in range(m)]
        return torch.tensor(of(below) + of(2 * below)[::2][:n - below])

    def forward(self, input_ids, token_type_ids, **_):
        c, n = self.config, input_ids.shape[1]
        x = self.p["embeddings.word_embeddings.weight"][input_ids[0]]
        x = self.norm("embeddings.LayerNorm", x + self.p["embeddings.token_type_embeddings.weight"][token_type_ids[0]])
        distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()
        added = -self.slopes(c.num_attention_heads).to(x.dtype)[:, None, None] * distance
        gate = torch.nn.functional.gelu if c.feed_forward_type == "geglu" else torch.relu
        attentions = []
        for i in range(c.num_hidden_layers):
            layer = f"encoder.layer.{i}."
            q, k, v = (self.linear(f"{layer}attention.self.{part}", x).unflatten(-1, (c.num_attention_heads, -1))
                       .transpose(0, 1) for part in ("query", "key", "value"))
            weights = (q @ k.transpose(1, 2) / q.shape[-1]**0.5 + added).softmax(-1)
            attentions.append(weights[None])
            merged = (weights @ v).transpose(0, 1).flatten(1)
            x = self.norm(layer + "attention.output.LayerNorm", x + self.linear(layer + "attention.output.dense", merged))
            first, second = self.linear(layer + "mlp.gated_layers", x).chunk(2, -1)
            x = self.norm(layer + "mlp.layernorm", x + self.linear(layer + "mlp.wo", gate(first) * second))
        return types.SimpleNamespace(last_hidden_state=x[None], attentions=attentions)

"""GTE's encoder as its paper (Zhang et al. 2024, section 3) and its configuration describe it: transformers has it not."""
import types

import torch

from jina_bert import JinaBert


class Config(types.SimpleNamespace):
    """A config.json's fields as they are: transformers' own classes would change those of positions."""

    def to_dict(self):
        return vars(self)


class Gte(JinaBert):
    """Weights by the names of its files; with labels those of a classifier."""

    def __init__(self, config, n_labels=0):
        torch.nn.Module.__init__(self)
        self.config, self.n_labels = config, n_labels
        width, inner = config.hidden_size, config.intermediate_size
        of = "new." if n_labels else ""
        shapes = {of + "embeddings.word_embeddings.weight": (config.vocab_size, width)}
        if config.type_vocab_size:
            shapes[of + "embeddings.token_type_embeddings.weight"] = (config.type_vocab_size, width)
        norms = [of + "embeddings.LayerNorm"]
        for i in range(config.num_hidden_layers):
            layer = f"{of}encoder.layer.{i}."
            norms += [layer + "attn_ln", layer + "mlp_ln"]
            shapes |= {layer + "attention.qkv_proj.weight": (3 * width, width), layer + "attention.qkv_proj.bias": (3 * width,),
                       layer + "attention.o_proj.weight": (width, width), layer + "attention.o_proj.bias": (width,),
                       layer + "mlp.up_gate_proj.weight": (2 * inner, width), layer + "mlp.down_proj.weight": (width, inner),
                       layer + "mlp.down_proj.bias": (width,)}
        if n_labels:
            shapes |= {"new.pooler.dense.weight": (width, width), "new.pooler.dense.bias": (width,),
                       "classifier.weight": (n_labels, width), "classifier.bias": (n_labels,)}
        shapes |= {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}
        self.of, self.p = of, {name: torch.nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()}

    def frequencies(self, dim):
        c = self.config
        base, scaling = c.rope_theta, c.rope_scaling
        if scaling is None:
            return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        factor = scaling["factor"]  # fixed NTK scaling
        return (base * factor) ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim) / factor ** (2 / dim)

    def turned(self, x):
        """The first half of a head turns with the second."""
        angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * self.frequencies(x.shape[2])
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def forward(self, input_ids, token_type_ids=None, **_):
        c = self.config
        x = self.p[self.of + "embeddings.word_embeddings.weight"][input_ids[0]]
        if c.type_vocab_size:
            kinds = torch.zeros_like(input_ids[0]) if token_type_ids is None else token_type_ids[0]
            x = x + self.p[self.of + "embeddings.token_type_embeddings.weight"][kinds]
        x = self.norm(self.of + "embeddings.LayerNorm", x)
        attentions = []
        act = {"gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}[c.hidden_act]
        for i in range(c.num_hidden_layers):
            layer = f"{self.of}encoder.layer.{i}."
            q, k, v = (part.unflatten(-1, (c.num_attention_heads, -1)).transpose(0, 1)
                       for part in self.linear(layer + "attention.qkv_proj", x).chunk(3, -1))
            weights = (self.turned(q) @ self.turned(k).transpose(1, 2) / q.shape[-1]**0.5).softmax(-1)
            attentions.append(weights[None])
            merged = (weights @ v).transpose(0, 1).flatten(1)
            x = self.norm(layer + "attn_ln", x + self.linear(layer + "attention.o_proj", merged))
            up, gate = self.linear(layer + "mlp.up_gate_proj", x).chunk(2, -1)
            x = self.norm(layer + "mlp_ln", x + self.linear(layer + "mlp.down_proj", act(gate) * up))
        if not self.n_labels:
            return types.SimpleNamespace(last_hidden_state=x[None], attentions=attentions)
        pooled = torch.tanh(self.linear("new.pooler.dense", x[:1]))
        return types.SimpleNamespace(logits=self.linear("classifier", pooled), attentions=attentions)

"""Nomic's second embedding model by its paper (Nussbaum and Duderstadt 2025) and configuration: transformers has no experts there."""
import types

import torch

from gte import Config, Gte  # noqa: F401


class NomicMoe(Gte):
    """Weights by the names of its files."""

    def __init__(self, config):
        torch.nn.Module.__init__(self)
        self.config = config
        width, inner, n = config.n_embd, config.n_inner, config.num_experts
        shapes = {"embeddings.word_embeddings.weight": (config.vocab_size, width),
                  "embeddings.token_type_embeddings.weight": (config.type_vocab_size, width)}
        norms = ["emb_ln"]
        for i in range(config.n_layer):
            layer = f"encoder.layers.{i}."
            norms += [layer + "norm1", layer + "norm2"]
            maps = {"attn.Wqkv": (3 * width, width), "attn.out_proj": (width, width)}
            if self.is_sparse(i):
                shapes |= {layer + "mlp.router.layer.weight": (n, width), layer + "mlp.experts.mlp.w1": (n * inner, width),
                           layer + "mlp.experts.mlp.w2": (n * inner, width), layer + "mlp.experts.bias": (width,)}
            else:
                maps |= {"mlp.fc1": (inner, width), "mlp.fc2": (width, inner)}
            for name, shape in maps.items():
                shapes |= {f"{layer}{name}.weight": shape, f"{layer}{name}.bias": shape[:1]}
        shapes |= {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}
        self.p = {name: torch.nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()}

    def norm(self, name, x):
        weight, bias = self.p[name + ".weight"], self.p[name + ".bias"]
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, self.config.layer_norm_epsilon)

    def frequencies(self, dim):
        return self.config.rotary_emb_base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)

    def is_sparse(self, layer):
        return layer % self.config.moe_every_n_layers == 1

    def experts(self, of, x):
        """Each row's likeliest experts, weighed by their probabilities as they are, and one bias."""
        c = self.config
        w1, w2 = (self.p[f"{of}experts.mlp.{name}"].unflatten(0, (c.num_experts, c.n_inner)) for name in ("w1", "w2"))
        weights, chosen = self.linear(of + "router.layer", x).softmax(-1).topk(c.moe_top_k)
        rows = []
        for row, of_row, experts in zip(x, weights, chosen):
            parts = [w * (torch.nn.functional.gelu(w1[e] @ row) @ w2[e]) for w, e in zip(of_row, experts)]
            rows.append(sum(parts) + self.p[of + "experts.bias"])
        return torch.stack(rows)

    def forward(self, input_ids, token_type_ids=None, **_):
        c = self.config
        x = self.p["embeddings.word_embeddings.weight"][input_ids[0]]
        kinds = torch.zeros_like(input_ids[0]) if token_type_ids is None else token_type_ids[0]
        x = self.norm("emb_ln", x + self.p["embeddings.token_type_embeddings.weight"][kinds])
        attentions = []
        for i in range(c.n_layer):
            layer = f"encoder.layers.{i}."
            q, k, v = (part.unflatten(-1, (c.n_head, -1)).transpose(0, 1)
                       for part in self.linear(layer + "attn.Wqkv", x).chunk(3, -1))
            weights = (self.turned(q) @ self.turned(k).transpose(1, 2) / q.shape[-1]**0.5).softmax(-1)
            attentions.append(weights[None])
            merged = (weights @ v).transpose(0, 1).flatten(1)
            x = self.norm(layer + "norm1", x + self.linear(layer + "attn.out_proj", merged))
            if self.is_sparse(i):
                inner = self.experts(layer + "mlp.", x)
            else:
                inner = self.linear(layer + "mlp.fc2", torch.nn.functional.gelu(self.linear(layer + "mlp.fc1", x)))
            x = self.norm(layer + "norm2", x + inner)
        return types.SimpleNamespace(last_hidden_state=x[None], attentions=attentions)

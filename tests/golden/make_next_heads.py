#!/usr/bin/env python3
"""Makes tests/golden/next_heads: random models with a next-token head (multi-token prediction), and what the head makes of a text.

The head is that of DeepSeek-AI 2024, section 2.2, eq. 21 to 23, computed here by torch. Its block is a layer of transformers' class,
which itself runs no such head. As published models have been trained, the model's vectors are those behind its final norm.

head_logits.npy: row i is behind token i + 1, which the head reads with the model's vector of token i. chain.json: tokens that the
head says of the whole text, each read with the head's own vector of the one before. model.gguf is the same as a GGUF file, whose layer behind the last is the head. Needs torch, safetensors, gguf and transformers.
"""
import json
import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
import gguf_models  # noqa: E402
import gguf_shapes  # noqa: E402
import shapes  # noqa: E402

FOLDER = HERE / "next_heads"
N_CHAIN = 4
# The names of the head's own tensors: a layer's, the map, the norms of embeddings and of vectors, the final norm.
DEEPSEEK = ("model.layers.{n}.", "eh_proj", "enorm", "hnorm", "shared_head.norm")
QWEN = ("mtp.", "fc", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
MODELS = {  # which shape of gguf_shapes.py, whose names, a prefix of the layer's, fields of a model of that layer alone
    "deepseek_v3": (1, DEEPSEEK, "", {"first_k_dense_replace": 0}),
    "glm4_moe": (0, DEEPSEEK, "", {"first_k_dense_replace": 0}),
    "qwen3_5_text": (3, QWEN, "layers.0.", {"layer_types": ["full_attention"]}),
}


def rounded(model):
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16().float()
    return model


def make(name, shape, names, layer_prefix, of_layer, seed):
    fields, folder = gguf_shapes.SHAPES[name][shape], FOLDER / name
    tokens, _ = shapes.write_model(name, fields, folder, seed, torch.bfloat16)
    main = rounded(shapes.model_of(name, fields, seed)[0])
    head = rounded(shapes.model_of(name, fields | of_layer | {"num_hidden_layers": 1}, seed + 1)[0]).model
    d_model = fields["hidden_size"]
    generator = torch.Generator().manual_seed(seed + 2)
    norms = [type(main.model.norm)(d_model, eps=main.config.rms_norm_eps) for _ in range(2)]
    with torch.no_grad():
        for norm in norms:
            norm.weight.copy_((norm.weight + 0.3 * torch.randn(d_model, generator=generator)).bfloat16().float())
        joint = (torch.randn(d_model, 2 * d_model, generator=generator) / d_model**0.5).bfloat16().float()

        def read(ids, vectors):
            """The head's own vectors."""
            both = torch.cat([norms[0](main.model.embed_tokens(ids)), norms[1](vectors)], -1)
            return head(inputs_embeds=(both @ joint.T)[None], use_cache=False).last_hidden_state[0]

        ids = torch.tensor(tokens)
        vectors = main.model(ids[None], use_cache=False).last_hidden_state[0][:-1]
        own, chain = read(ids[1:], vectors), []
        np.save(folder / "head_logits.npy", main.lm_head(own).numpy())
        ids = ids[1:]
        for _ in range(N_CHAIN):
            chain.append(main.lm_head(own[-1]).argmax().item())
            ids, vectors = torch.cat([ids, torch.tensor(chain[-1:])]), torch.cat([vectors, own[-1:]])
            own = read(ids, vectors)
    (folder / "chain.json").write_text(json.dumps({"tokens": tokens, "chain": chain}) + "\n")
    prefix = names[0].format(n=fields["num_hidden_layers"])
    added = {prefix + names[1]: joint, prefix + names[2]: norms[0].weight, prefix + names[3]: norms[1].weight,
             prefix + names[4]: head.norm.weight}
    added |= {prefix + layer_prefix + key: value.data for key, value in head.layers[0].named_parameters()}
    if names is DEEPSEEK:  # which has the shared tensors twice
        added |= {prefix + "embed_tokens": main.model.embed_tokens.weight, prefix + "shared_head.head": main.lm_head.weight}
        added |= {prefix + key: value for key, value in head.layers[0].named_buffers() if "bias" in key}
    ends = (".weight", ".bias", "_bias", "gate_up_proj", "down_proj")
    added = {key if key.endswith(ends) else key + ".weight": value.data.bfloat16().contiguous().clone()
             for key, value in added.items()}
    save_file(load_file(folder / "model.safetensors") | added, folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    gguf_models.write_gguf(folder, folder / "model.gguf", narrow=True)


shutil.rmtree(FOLDER, ignore_errors=True)
for i, (name, how) in enumerate(MODELS.items()):
    make(name, *how, seed=40 + 3 * i)

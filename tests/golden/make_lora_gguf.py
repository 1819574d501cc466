#!/usr/bin/env python3
"""Low-rank adapters as GGUF files, as llama.cpp's convert_lora_to_gguf.py writes them: tests/golden/lora_gguf/NAME.gguf.

NAME is a model of tests/golden/gguf; NAME_logits.npy, float32 [n_tokens, vocab_size], are PEFT's of it with the adapter, for
tokens (7·i + 3) mod vocab_size. transformers reads the model from its GGUF file. Rows of a Llama's queries and keys lie in the
file's order, in which the dims that turn together are neighbours. Needs gguf, torch, transformers, peft and numpy.
"""
import pathlib
import re

import gguf
import numpy
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
BASES, FOLDER = HERE / "gguf", HERE / "lora_gguf"
N_TOKENS = 24
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}


def in_pairs(rows, n_heads):
    """Rows of halves as rows of neighbours."""
    return rows.reshape(n_heads, 2, rows.shape[0] // n_heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)  # which the file says by divisors, and transformers does not read


def make(name, architecture, seed, rotary=None, **settings):
    known = numpy.load(BASES / (name + "_logits.npy"))
    config = AutoConfig.from_pretrained(BASES, gguf_file=name + ".gguf")
    config.vocab_size = known.shape[1]  # which the file says by its tensors alone
    config.rope_parameters = rotary or config.rope_parameters
    model = AutoModelForCausalLM.from_pretrained(BASES, gguf_file=name + ".gguf", config=config, dtype=torch.float32)
    tokens = torch.tensor([[(7 * i + 3) % config.vocab_size for i in range(N_TOKENS)]])
    with torch.no_grad():
        plain = model(tokens).logits[0].numpy()
    assert numpy.abs(plain - known).max() < 1e-4 * numpy.abs(known).max(), name
    adapted = get_peft_model(model, LoraConfig(**settings)).eval()
    generator = torch.Generator().manual_seed(seed)
    writer = gguf.GGUFWriter(FOLDER / (name + ".gguf"), architecture)
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, float(settings["lora_alpha"]))
    for parameter_name, parameter in adapted.named_parameters():
        if not parameter.requires_grad:
            continue
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.4
        layer, module, factor = re.search(r"layers\.(\d+)\.(.*)\.lora_([AB])\.", parameter_name).groups()
        rows = parameter.detach().numpy()
        if factor == "B" and architecture == "llama" and module.endswith(("q_proj", "k_proj")):
            n_heads = config.num_attention_heads if "q_proj" in module else config.num_key_value_heads
            rows = in_pairs(rows, n_heads)
        writer.add_tensor(f"blk.{layer}.{NAMES[module]}.weight.lora_{factor.lower()}", numpy.ascontiguousarray(rows))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with torch.no_grad():
        numpy.save(FOLDER / (name + "_logits.npy"), adapted(tokens).logits[0].numpy())


FOLDER.mkdir(exist_ok=True)
make("llama_q8_0", "llama", 1, LLAMA3, r=3, lora_alpha=5, target_modules=["q_proj", "k_proj", "up_proj", "o_proj"])
make("qwen2_q4_0", "qwen2", 2, r=2, lora_alpha=4, target_modules=["q_proj", "v_proj", "gate_proj", "down_proj"])

#!/usr/bin/env python3
"""Makes the small models of tests/golden/models with the logits that transformers computes from them.

Needs torch and transformers 5. Everything is seeded; run it again only to add a model. Each folder is an ordinary
Hugging Face folder plus expected_logits.npy, float32 [n_tokens, vocab_size], for tokens (7·i + 3) mod vocab_size.
"""
import copy
import json
import pathlib
import shutil

import numpy
import torch
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig,
                          MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

FOLDER = pathlib.Path(__file__).resolve().parent / "models"
N_TOKENS = 24


def randomize(model, seed):
    """Weights large enough that attention is far from uniform and every bias and norm matters."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 2:
            fan_in = parameter.shape[0] if "c_" in name else parameter.shape[1]
            parameter.data = noise * (1.4 / fan_in**0.5)
        elif "norm" in name or "ln_" in name:
            parameter.data = noise * 0.2 + (0.0 if name.endswith("bias") else 1.0)
        else:
            parameter.data = noise * 0.3


def older_spelling(config):
    """How transformers before 5 wrote rotary settings."""
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters.pop("rope_theta")
    config["rope_scaling"] = None if parameters["rope_type"] == "default" else parameters
    if config["rope_scaling"] and parameters["rope_type"] == "linear":
        parameters["type"] = parameters.pop("rope_type")


def make(name, model_class, config, seed, dtype=torch.float32, shards=None, edit=None, positions=N_TOKENS):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    randomize(model, seed)
    copy.deepcopy(model).to(dtype).save_pretrained(folder, **({"max_shard_size": shards} if shards else {}))
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    model = model.double()  # the rounded weights in exact enough arithmetic; rotary frequencies are not rounded
    tokens = torch.tensor([[(7 * i + 3) % config.vocab_size for i in range(positions)]])
    with torch.no_grad():
        logits = model(tokens, use_cache=False).logits[0]
    numpy.save(folder / "expected_logits.npy", logits.float().numpy())
    path = folder / "config.json"
    written = json.loads(path.read_text())
    if edit:
        edit(written)
    path.write_text(json.dumps(written, indent=1) + "\n")
    (folder / "generation_config.json").unlink(missing_ok=True)


def llama(**fields):
    settings = dict(vocab_size=61, hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=True,
                    bos_token_id=1, eos_token_id=2)
    settings.update(fields)
    return LlamaConfig(**settings)


def rope(kind, theta=10000.0, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


def main():
    make("llama_tied", LlamaForCausalLM, llama(), 1, edit=older_spelling)
    make("llama_wide_heads", LlamaForCausalLM,
         llama(head_dim=80, hidden_size=24, num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False,
               attention_bias=True, mlp_bias=True, hidden_act="gelu"), 2, shards="40KB")
    make("mistral_window", MistralForCausalLM,
         MistralConfig(vocab_size=61, hidden_size=40, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
                       num_key_value_heads=1, head_dim=20, max_position_embeddings=64, sliding_window=5,
                       tie_word_embeddings=False), 3, dtype=torch.float16)
    make("qwen2_window", Qwen2ForCausalLM,
         Qwen2Config(vocab_size=61, hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
                     num_key_value_heads=2, max_position_embeddings=64, use_sliding_window=True, sliding_window=4,
                     max_window_layers=1, tie_word_embeddings=True, rope_parameters=rope("default", 1e6)), 4,
         dtype=torch.bfloat16)
    make("qwen3", Qwen3ForCausalLM,
         Qwen3Config(vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, head_dim=16, max_position_embeddings=64, tie_word_embeddings=False,
                     rope_parameters=rope("default", 1e6)), 5)
    make("llama_linear", LlamaForCausalLM, llama(rope_parameters=rope("linear", factor=2.5)), 6, edit=older_spelling)
    make("llama_dynamic", LlamaForCausalLM, llama(rope_parameters=rope("dynamic", factor=4.0)), 7)
    make("llama_yarn", LlamaForCausalLM,
         llama(head_dim=16, max_position_embeddings=4096,
               rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=1024)), 9)
    make("llama_llama3", LlamaForCausalLM,
         llama(head_dim=16, rope_parameters=rope("llama3", 500.0, factor=8.0, low_freq_factor=1.0,
                                                 high_freq_factor=4.0, original_max_position_embeddings=16)), 10)
    make("llama_proportional", LlamaForCausalLM,
         llama(head_dim=16, rope_parameters=rope("proportional", 100.0, factor=2.0, partial_rotary_factor=0.7)), 13)
    make("gpt2_tied", GPT2LMHeadModel,
         GPT2Config(vocab_size=61, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0), 11)
    make("gpt2_untied", GPT2LMHeadModel,
         GPT2Config(vocab_size=61, n_positions=24, n_embd=20, n_layer=3, n_head=2, n_inner=36,
                    activation_function="relu", scale_attn_by_inverse_layer_idx=True, layer_norm_epsilon=1e-6,
                    tie_word_embeddings=False, bos_token_id=0, eos_token_id=0), 12)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Low-rank adapters of small models that tests/golden has, as PEFT's folders, and the logits that they make of them.

Makes the cases of tests/golden/lora that are named, or all: adapter_config.json, adapter_model.safetensors (or .bin, as torch.save writes it),
base.txt (the model's folder) and expected_logits.npy, float32 [n_tokens, vocab_size] for tokens (7·i + 3) mod vocab_size.
The products are added here, in float64, by their definition (Hu et al. 2021, section 4.1); transformers computes the
logits. tied_* but tied_embedding, and gemma3, are PEFT's own: folders by its names, and its logits, of adapters of a tied
table or head and of a model of pictures, whose base lies beside. Needs torch, transformers, peft and numpy. With --check PEFT
must make the same logits of the others.
"""
import json
import pathlib
import re
import shutil
import sys

import numpy as np
import torch
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS = 16


def load(base):
    model = AutoModelForCausalLM.from_pretrained(HERE / base, dtype=torch.float32, attn_implementation="eager")
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # others want widths of whole vectors
    return model


def save_safetensors(path, tensors):
    kinds = {torch.float32: ("F32", torch.int32), torch.bfloat16: ("BF16", torch.int16), torch.float16: ("F16", torch.int16)}
    header, data = {}, b""
    for key, tensor in tensors.items():
        name, bits = kinds[tensor.dtype]
        piece = tensor.contiguous().view(bits).numpy().tobytes()
        header[key] = {"dtype": name, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def numbered(config, module, name, patterns):
    for key, value in config.get(patterns, {}).items():
        if re.match(rf"(.*\.)?({key})$", module):
            return value
    return config[name]


def factors(model, config, generator, dtype):
    """Random ones for every module that target_modules names, and each module's difference."""
    tensors, differences = {}, {}
    for name, module in model.named_modules():
        if not any(name == target or name.endswith("." + target) for target in config["target_modules"]):
            continue
        rank, alpha = (numbered(config, name, *pair) for pair in (("r", "rank_pattern"), ("lora_alpha", "alpha_pattern")))
        scale = alpha / (rank**0.5 if config.get("use_rslora") else rank)
        n_rows, n_cols = module.weight.shape
        turned = type(module).__name__ == "Conv1D"
        if turned:
            n_rows, n_cols = n_cols, n_rows
        outer = "base_model.model." + name
        if isinstance(module, torch.nn.Embedding):
            a, b = outer + ".lora_embedding_A", outer + ".lora_embedding_B"
            n_rows, n_cols = n_cols, n_rows
        else:
            a, b = outer + ".lora_A.weight", outer + ".lora_B.weight"
        tensors[a] = (torch.randn(rank, n_cols, generator=generator) / n_cols**0.5).to(dtype)
        tensors[b] = (torch.randn(n_rows, rank, generator=generator) / rank).to(dtype)
        product = scale * (tensors[b].double() @ tensors[a].double())
        differences[name] = product.T if turned or isinstance(module, torch.nn.Embedding) else product
    return tensors, differences


def new_folder(name):
    """Where that case is made; none where others are asked for."""
    asked = [word for word in sys.argv[1:] if not word.startswith("--")]
    if asked and name not in asked:
        return None
    folder = HERE / "lora" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def make(name, base, seed, dtype=torch.float32, pickled=False, replaced=(), **config):
    folder = new_folder(name)
    if folder is None:
        return
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base, "bias": "none", **config}
    model = load(base)
    generator = torch.Generator().manual_seed(seed)
    tensors, differences = factors(model, config, generator, dtype)
    if "tied" in name:  # products of the table are of what is looked up alone
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for module, difference in differences.items():
            weight = parameters[module + ".weight"]
            weight.copy_((weight.double() + difference).float())
        for parameter, key in replaced:
            noise = torch.randn(parameters[parameter].shape, generator=generator) * 0.5
            parameters[parameter].copy_(noise)
            tensors[key] = noise
        ids = torch.tensor([[(7 * i + 3) % model.config.vocab_size for i in range(N_TOKENS)]])
        logits = model(ids, use_cache=False).logits[0].float()
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    if pickled:
        torch.save(tensors, folder / "adapter_model.bin")
    else:
        save_safetensors(folder / "adapter_model.safetensors", tensors)
    (folder / "base.txt").write_text(base + "\n")
    np.save(folder / "expected_logits.npy", logits.numpy())
    if "--check" in sys.argv:
        check(folder, base, ids, logits)


def make_by_peft(name, base, seed, model=None, **settings):
    """A case that PEFT writes and computes, of the model in the folder `base` or of that model, which is written beside."""
    folder = new_folder(name)
    if folder is None:
        return
    from peft import LoraConfig, get_peft_model
    if model is not None:
        model.save_pretrained(folder / "base")
        wholes.leave_out_most(folder / "base")
        (folder / "base" / "generation_config.json").unlink(missing_ok=True)
    adapted = get_peft_model(load(base) if model is None else model, LoraConfig(**settings)).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
        vocab_size = adapted.config.get_text_config().vocab_size
        ids = torch.tensor([[(7 * i + 3) % vocab_size for i in range(N_TOKENS)]])
        logits = adapted(ids, use_cache=False).logits[0].float()
    adapted.save_pretrained(folder)
    (folder / "README.md").unlink()
    path = folder / "adapter_config.json"
    path.write_text(path.read_text().replace(str(HERE) + "/", ""))
    (folder / "base.txt").write_text((base or f"lora/{name}/base") + "\n")
    np.save(folder / "expected_logits.npy", logits.numpy())


def check(folder, base, ids, logits):
    from peft import PeftModel
    model = load(base)
    model = PeftModel.from_pretrained(model, folder)
    with torch.no_grad():
        theirs = model(ids, use_cache=False).logits[0].float()
    print(f"{folder.name}: PEFT's logits differ by {float((theirs - logits).abs().max()):.2g} of {float(logits.abs().max()):.2g}")
    assert float((theirs - logits).abs().max()) < 1e-4 * float(logits.abs().max())


sys.path.append(str(HERE.parent / "families"))
import shapes  # noqa: E402
import wholes  # noqa: E402

make("llama", "models/llama_tied", 1, r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "gate_proj", "down_proj"],
     rank_pattern={"layers.1.self_attn.q_proj": 3}, alpha_pattern={"v_proj": 5})
make("gpt2", "models/gpt2_tied", 2, r=2, lora_alpha=3, use_rslora=True, fan_in_fan_out=True, pickled=True,
     target_modules=["c_attn", "c_fc", "mlp.c_proj"], bias="lora_only",
     replaced=[("transformer.h.0.attn.c_attn.bias", "base_model.model.transformer.h.0.attn.c_attn.base_layer.bias")])
make("gpt_neox", "families/gpt_neox", 3, torch.bfloat16, r=3, lora_alpha=6, target_modules=["query_key_value", "dense_4h_to_h"])
make("phi3", "families/phi3", 4, torch.float16, r=2, lora_alpha=2, target_modules=["qkv_proj", "gate_up_proj", "o_proj"])
make("embedding", "models/llama_wide_heads", 5, r=2, lora_alpha=4, target_modules=["embed_tokens", "k_proj"],
     modules_to_save=["lm_head"], replaced=[("lm_head.weight", "base_model.model.lm_head.weight")])
make("tied_embedding", "models/llama_tied", 8, r=2, lora_alpha=4, target_modules=["embed_tokens"])
make("deepseek_v2", "families/deepseek_v2", 6, torch.bfloat16, r=3, lora_alpha=6, rank_pattern={"kv_b_proj": 2},
     target_modules=["q_proj", "q_a_proj", "q_b_proj", "kv_b_proj"])
make("deepseek_v3", "families/deepseek_v3", 7, r=3, lora_alpha=5,
     target_modules=["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"])
TIED = "models/llama_tied"
make_by_peft("tied_table_saved", TIED, 9, r=2, target_modules=["q_proj"], modules_to_save=["embed_tokens"])
make_by_peft("tied_head_saved", TIED, 10, r=2, target_modules=["q_proj"], modules_to_save=["lm_head"])
make_by_peft("tied_head", TIED, 11, r=2, target_modules=["lm_head", "o_proj"])
make_by_peft("tied_both_saved", TIED, 12, r=2, target_modules=["q_proj"], modules_to_save=["embed_tokens"],
             ensure_weight_tying=True)
make_by_peft("gemma3", None, 13, shapes.model_of("gemma3", wholes.SHAPES["gemma3"][0], 14)[0], r=2,
             target_modules="all-linear")

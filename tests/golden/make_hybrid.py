#!/usr/bin/env python3
"""Makes tests/golden/hybrid: a chat model with recurrent layers, random weights, and tokenizer_qwen2.json's vocabulary, in bfloat16.

Needs torch and transformers. Whoever converts it puts that tokenizer beside it.
"""
import json
import pathlib
import shutil
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
import shapes  # noqa: E402
from recurrent_shapes import delta, llama_like, partly  # noqa: E402

tokenizer = json.loads((HERE / "tokenizer_qwen2.json").read_text())
vocab_size = 1 + max([*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])])
fields = llama_like(hidden=16, heads=2, kv_heads=1, head_dim=8, d_ff=20, layers=2, vocab=vocab_size,
                    full_attention_interval=2, rope_parameters=partly(0.5), tie_word_embeddings=True,
                    **delta(1, 2, 8, 8)) | {"max_position_embeddings": 2048}
folder = HERE / "hybrid"
shutil.rmtree(folder, ignore_errors=True)
shapes.write_model("qwen3_5_text", fields, folder, seed=3, dtype=torch.bfloat16)
(folder / "model.safetensors").chmod(0o644)
(folder / "tokenizer_config.json").write_text(json.dumps({
    "chat_template": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                     "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
    "eos_token": "<|im_end|>"}, indent=1) + "\n")

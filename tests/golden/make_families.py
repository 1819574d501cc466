#!/usr/bin/env python3
"""Makes tests/golden/families and families_gguf: the smallest models of tests/families/shapes.py and gguf_shapes.py, in
bfloat16.

    make_families.py [MODEL_TYPE...]     all that are missing, or those

Needs torch, transformers and gguf. Each folder is an ordinary Hugging Face folder. In families/ it has expected_logits.npy
too, float32 [n_tokens, vocab_size], what transformers computes for tokens (7·i + 3) mod vocab_size; in families_gguf/ the
same model as model.gguf.
"""
import pathlib
import shutil
import sys

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
import gguf_models  # noqa: E402
import gguf_shapes  # noqa: E402
import shapes  # noqa: E402
import wholes  # noqa: E402

N_TOKENS = 16
PLAIN = "gpt2", "qwen2", "qwen3"  # make_models.py has made these


def make(parent, name, fields, more, model_type=None):
    folder = HERE / parent / name
    if folder.exists() and name not in sys.argv[1:]:
        return
    shutil.rmtree(folder, ignore_errors=True)
    _, logits = shapes.write_model(model_type or name, fields, folder, seed=1, dtype=torch.bfloat16, n_tokens=N_TOKENS)
    more(folder, logits)
    (folder / "model.safetensors").chmod(0o644)


ALL = [name for name in shapes.SHAPES | gguf_shapes.TWINS if name not in PLAIN and name not in wholes.ALONE]

for name in sys.argv[1:] or ALL:
    if name in shapes.SHAPES:
        make("families", name, shapes.SHAPES[name][0],
             lambda folder, logits: numpy.save(folder / "expected_logits.npy", logits))
    if name in gguf_shapes.SHAPES:
        twin = gguf_shapes.TWINS.get(name)
        make("families_gguf", name, gguf_shapes.SHAPES[name][0],
             lambda folder, _: gguf_models.write_gguf(folder, folder / "model.gguf", narrow=True,
                                                      architecture=name if twin else None), twin)
    if name == "mixtral":  # as the first files with experts were
        folder = HERE / "families_gguf" / name
        gguf_models.write_gguf(folder, folder / "alone.gguf", narrow=True, alone=True)

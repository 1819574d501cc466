#!/usr/bin/env python3
"""Makes tests/golden/rows: what transformers computes of rows of vectors, of models in tests/golden/families.

Needs torch and transformers. Each folder has rows.npy, float32 [n, d_model], `inputs_embeds` of a text around an image,
and expected_logits.npy, [n, vocab_size]. Qwen-VL's have positions.npy too, float32 [n, 3]: a text, an image of 3 x 4, a
text, two frames of 2 x 2, a text. Gemma 3's rows 4 to 14 are an image, which see each other.
"""
import pathlib

import numpy
import torch
import transformers
from safetensors.torch import load_file
from transformers.models.gemma3.modeling_gemma3 import create_masks_for_vision_model, get_block_sequence_ids_for_mask

HERE = pathlib.Path(__file__).resolve().parent
IMAGE = 4, 15


def grid(start, frames, height, width):
    """Time, height and width of an image's rows, the first at `start`."""
    return [[start + t, start + y, start + x] for t in range(frames) for y in range(height) for x in range(width)]


def text(start, n):
    return [[start + i] * 3 for i in range(n)]


POSITIONS = text(0, 3) + grid(3, 1, 3, 4) + text(7, 2) + grid(9, 2, 2, 2) + text(11, 4)


def load(name, make):
    """The model of that folder in float32, its vision left as it is made."""
    folder = HERE / "families" / name
    config = transformers.AutoConfig.from_pretrained(folder)
    config.dtype = torch.float32
    model = make._from_config(config, attn_implementation="eager").float().eval()
    weights = {key: tensor.float() for key, tensor in load_file(folder / "model.safetensors").items()}
    own = model.state_dict()
    renamed = {key.replace("model.", "model.language_model.", 1) if key not in own else key: tensor
               for key, tensor in weights.items() if "visual" not in key}
    known = {key: tensor for key, tensor in renamed.items() if key in own}
    missing = model.load_state_dict(known, strict=False).missing_keys
    assert not [key for key in missing if "visual" not in key and key != "lm_head.weight"], missing
    model.tie_weights()
    return model


def save(name, **arrays):
    folder = HERE / "rows" / name
    folder.mkdir(parents=True, exist_ok=True)
    for key, array in arrays.items():
        numpy.save(folder / f"{key}.npy", numpy.asarray(array, numpy.float32))


def rows_of(n, width, seed):
    return torch.randn(1, n, width, generator=torch.Generator().manual_seed(seed)) * 0.5


for seed, (name, make) in enumerate({"qwen2_vl_text": transformers.Qwen2VLForConditionalGeneration,
                                     "qwen3_vl_text": transformers.Qwen3VLForConditionalGeneration}.items()):
    model = load(name, make)
    rows = rows_of(len(POSITIONS), model.config.text_config.hidden_size, seed)
    positions = torch.tensor(POSITIONS).T[:, None]
    with torch.no_grad():
        out = model.model.language_model(inputs_embeds=rows, position_ids=positions, use_cache=False)
        save(name, rows=rows[0], positions=POSITIONS, expected_logits=model.lm_head(out.last_hidden_state)[0])

model = load("gemma3_text", transformers.Gemma3ForCausalLM)
rows = rows_of(20, model.config.hidden_size, 2)
types = torch.tensor([[int(IMAGE[0] <= i < IMAGE[1]) for i in range(20)]])
images = get_block_sequence_ids_for_mask(types)
masks = create_masks_for_vision_model(model.config, rows, None, None, torch.arange(20)[None], images)
with torch.no_grad():
    logits = model(inputs_embeds=rows, attention_mask=masks, use_cache=False).logits
    save("gemma3_text", rows=rows[0], expected_logits=logits[0])

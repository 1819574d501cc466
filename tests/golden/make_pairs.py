#!/usr/bin/env python3
"""Makes tests/golden/pairs: the smallest models of tests/families/pair_shapes.py, in bfloat16, and their results.

    make_pairs.py                 all that are missing
    make_pairs.py MODEL_TYPE...   those
    make_pairs.py --into FOLDER   every shape, in float32, there: the suite compares those in FOVEA_PAIR_FOLDERS too

Needs torch and transformers. Each folder is an ordinary Hugging Face folder plus what transformers makes of it:
expected.json, the ids of a source and of a target, and those that greedy `generate` writes of the source; and
expected_logits.npy, float32 [n_target, vocab_size].
"""
import json
import pathlib
import sys

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
import pair_shapes  # noqa: E402


N_DIFFERENT = 4  # tokens that a text should have, for one that repeats itself would hide a mistake


def make(model_type, shape, folder, seed, dtype):
    for attempt in range(4):
        made = pair_shapes.write_model(model_type, shape, folder, seed + 100 * attempt, dtype)
        source, target, logits, written = made
        if len(set(written[1:])) > N_DIFFERENT:
            break
    config, generation = (pair_shapes.read_json(folder / name) for name in ("config.json", "generation_config.json"))
    numpy.save(folder / "expected_logits.npy", logits)
    (folder / "expected.json").write_text(json.dumps(
        {"source": source, "target": target, "written": pair_shapes.text_of(written, config, generation)}) + "\n")
    (folder / "model.safetensors").chmod(0o644)


def main():
    torch.set_num_threads(1)  # the models are too small for more
    if "--into" in sys.argv:
        into = pathlib.Path(sys.argv[sys.argv.index("--into") + 1])
        for model_type, shapes in pair_shapes.SHAPES.items():
            for number, shape in enumerate(shapes):
                make(model_type, shape, into / f"{model_type}_{number}", 10 + number, torch.float32)
        return
    for model_type in sys.argv[1:] or pair_shapes.SHAPES:
        folder = HERE / "pairs" / model_type
        if not folder.exists() or sys.argv[1:]:
            make(model_type, pair_shapes.SHAPES[model_type][0], folder, 1, torch.bfloat16)


if __name__ == "__main__":
    main()

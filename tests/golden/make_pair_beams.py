#!/usr/bin/env python3
"""Makes expected_beams.json in folders of tests/golden/pairs: what transformers' beam search writes, with its scores.

    make_pair_beams.py                 of all that have none
    make_pair_beams.py MODEL_TYPE...   of those
    make_pair_beams.py --sweep N       N more settings each, in folders that are given after it

Needs torch and transformers. Each case is a generation_config.json with settings of its own, the text that `generate`
makes by it (start and end left out) and its score. Models are computed in float64, so that rounding decides nothing.
"""
import json
import pathlib
import random
import sys

import torch
from transformers import AutoModelForSeq2SeqLM, GenerationConfig

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
import pair_shapes  # noqa: E402

# The golden ones: others differ in their models, not in how they are searched.
FAMILIES = ["bart", "marian", "mbart", "t5"]

# Each is joined with the model's own settings.
CASES = [
    dict(num_beams=2),
    dict(num_beams=4, early_stopping=True, length_penalty=0.9),
    dict(num_beams=5, early_stopping=False, length_penalty=2.0),
    dict(num_beams=3, early_stopping="never", length_penalty=1.5),
    dict(num_beams=6, early_stopping="never", length_penalty=-1.0),
    dict(num_beams=4, early_stopping=False, length_penalty=0.0),
    dict(num_beams=3, early_stopping=True, length_penalty=-0.7, min_length=8),
    dict(num_beams=4, renormalize_logits=True, no_repeat_ngram_size=2),
    dict(num_beams=5, suppress_tokens=[5, 11, 22], begin_suppress_tokens=[3, 7], bad_words_ids=[[4], [8, 6]]),
    dict(num_beams=2, min_new_tokens=6, encoder_no_repeat_ngram_size=2, max_new_tokens=9),
    dict(num_beams=4, eos_token_id=[2, 5, 11, 13], early_stopping=False),
    dict(num_beams=3, eos_token_id=[1, 6, 7, 12, 14, 20], early_stopping="never", length_penalty=0.5),
    dict(num_beams=4, forced_bos_token_id=6, forced_eos_token_id=2, max_length=7, early_stopping=True),
    dict(num_beams=3, no_repeat_ngram_size=1, max_length=20),
    dict(num_beams=4, min_length=12, min_new_tokens=2, length_penalty=-1.0),  # of two the second counts
    dict(num_beams=2, forced_bos_token_id=None, bad_words_ids=[[2, 9], [28, 5], [0, 17]]),  # behind the start, too
    dict(num_beams=12, eos_token_id=[2, 3, 4], max_length=12),  # of 29 tokens: at first fewer than are kept
]
LEFT_OUT = ("length_penalty", "early_stopping", "transformers_version")


def random_case(choose):
    vocab = [i for i in range(29) if i not in (0, 6, 9, 17)]  # what some models must write first can be no end
    penalties = [-2.0, -0.5, 0.0, 0.3, 0.6, 1.0, 1.4, 2.0, 3.0]
    case = dict(num_beams=choose.randint(2, 8), length_penalty=choose.choice(penalties),
                early_stopping=choose.choice([True, False, "never"]), max_length=choose.randint(4, 28))
    extras = [
        ("no_repeat_ngram_size", choose.randint(1, 3)),
        ("encoder_no_repeat_ngram_size", choose.randint(1, 3)),
        ("min_length", choose.randint(2, 12)), ("min_new_tokens", choose.randint(2, 9)),
        ("suppress_tokens", choose.sample(vocab, 4)), ("begin_suppress_tokens", choose.sample(vocab, 3)),
        ("bad_words_ids", [choose.sample(vocab, choose.randint(1, 2)) for _ in range(3)]),
        ("eos_token_id", choose.sample(vocab, choose.randint(2, 6))),
        ("renormalize_logits", True),
        ("forced_eos_token_id", choose.choice(vocab)),
    ]
    return case | dict(choose.sample(extras, choose.randint(0, 4)))


def written(model, source, own, case):
    """The settings, of which a text's forced end is one of its ends, and the text of them with its score."""
    settings = {name: value for name, value in (own | case).items() if value is not None}
    if "max_new_tokens" in case:
        settings.pop("max_length", None)
    ends = settings["eos_token_id"]
    ends = ends if isinstance(ends, list) else [ends]
    allowed = [end for end in ends if end not in settings.get("suppress_tokens", [])]
    if settings.pop("forced_eos_token_id", None) is not None and allowed:
        settings["forced_eos_token_id"] = allowed[0]
    settings.setdefault("early_stopping", False)
    model.generation_config = GenerationConfig(**settings)
    with torch.no_grad():
        made = model.generate(torch.tensor([source]), do_sample=False, return_dict_in_generate=True, output_scores=True)
    ids = made.sequences[0].tolist()[2 if settings.get("forced_bos_token_id") is not None else 1:]
    n = next((i for i, token in enumerate(ids) if token in ends), len(ids))
    return {"settings": settings, "written": ids[:n], "score": made.sequences_scores[0].item()}


def make(folder, cases):
    model = pair_shapes.in_double(AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval())
    own = pair_shapes.read_json(folder / "generation_config.json")
    own = {name: value for name, value in own.items() if name not in LEFT_OUT}
    if "max_length" not in own and "max_new_tokens" not in own:
        own["max_length"] = 24
    source = pair_shapes.read_json(folder / "expected.json")["source"]
    made = [written(model, source, own, case) for case in cases]
    (folder / "expected_beams.json").write_text("\n".join(["[", ",\n".join(map(json.dumps, made)), "]", ""]))
    lengths = [len(case["written"]) for case in made]
    n_texts = len({tuple(case["written"]) for case in made})
    print(f"{folder.name}: {n_texts} texts of {min(lengths)} to {max(lengths)} tokens")


def main():
    torch.set_num_threads(1)  # the models are too small for more
    if "--sweep" in sys.argv:
        at = sys.argv.index("--sweep")
        for number, folder in enumerate(map(pathlib.Path, sys.argv[at + 2:])):
            choose = random.Random(number)
            make(folder, [random_case(choose) for _ in range(int(sys.argv[at + 1]))])
        return
    for family in sys.argv[1:] or FAMILIES:
        folder = HERE / "pairs" / family
        if not (folder / "expected_beams.json").exists() or sys.argv[1:]:
            make(folder, CASES)


if __name__ == "__main__":
    main()

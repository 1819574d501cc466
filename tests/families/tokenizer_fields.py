"""Changes of tokenizer_config.json beside a decoder's tokenizer.json, for fields.py: the ids that transformers makes of texts."""
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy
import transformers as T

import shapes
from changing import changes_of, each_change, judge

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
COMMON = {"clean_up_tokenization_spaces": False, "model_max_length": 1000}
MARKS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
ADDED = dict(lstrip=False, normalized=False, rstrip=False, single_word=False, special=True)
# tokenizer_NAME.json of the golden ones: {name: what is said beside it}. Classes that make their steps anew, whatever the file has
# (Llama's does), are not compared.
CHOSEN = {"tokenizer_class"}
FAST = "PreTrainedTokenizerFast"
FILES = {
    "llama2": {"tokenizer_class": FAST, "legacy": False, **MARKS},
    "mistral": {"tokenizer_class": FAST, "add_prefix_space": True, **MARKS, "added_tokens_decoder": {
        str(i): {"content": name, **ADDED} for i, name in enumerate(("<unk>", "<s>", "</s>"))}},
    "llama3": {"tokenizer_class": FAST, "bos_token": "<s>", "eos_token": "<|end|>", "model_input_names": ["input_ids", "attention_mask"]},
    "qwen2": {"tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": False, "eos_token": "<|end|>", "pad_token": "<|end|>",
              "bos_token": None, "unk_token": None, "split_special_tokens": False, "errors": "replace"},
    "gpt2": {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, "bos_token": "<|end|>", "eos_token": "<|end|>"}}
FOREIGN = {"add_bos_token": True, "add_eos_token": True, "do_lower_case": True,
           "split_special_tokens": True, "padding_side": "left", "truncation_side": "left", "legacy": True, "from_slow": True,
           "use_default_system_prompt": True, "add_special_tokens": False, "sp_model_kwargs": {"nbest_size": -1},
           "trim_offsets": False, "normalization": True, "spaces_between_special_tokens": True, "pad_token": "[PAD]",
           "additional_special_tokens": ["the"], "mask_token": {"__type": "AddedToken", "content": "of", "lstrip": True, "rstrip": True},
           "added_tokens_decoder": {"7": {"content": "end", "single_word": True, "normalized": True}}, "add_prefix_space": True}
TEXTS = ["the toolbox of  the Box", " It's 12,345 <s> of them</s>", "", "a<|end|>b \u00e9t\u00e9\n\n x", "THE end ."]


def changes(name):
    written = COMMON | FILES[name]
    added = json.loads((GOLDEN / f"tokenizer_{name}.json").read_text())["added_tokens"]
    special = [token["content"] for token in added if token["special"]]
    all_changes = list(changes_of(written, texts=special, skip=CHOSEN))
    is_plain = written["tokenizer_class"] != "Qwen2Tokenizer"  # which adds tokens of roles anew, without their flags
    all_changes += [((field,), value) for field, value in FOREIGN.items()
                    if written.get(field, ...) != value and (is_plain or field != "mask_token")]
    with tempfile.TemporaryDirectory() as scratch:
        base = pathlib.Path(scratch) / "base"
        shapes.write_model("llama", shapes.SHAPES["llama"][0] | {"vocab_size": 1400}, base, seed=7)
        shutil.copy(GOLDEN / f"tokenizer_{name}.json", base / "tokenizer.json")
        yield from each_change("", written, all_changes, lambda fovea, fields, work: compare(fovea, base, fields, work))


def compare(fovea, base, fields, work):
    folder = work / "model"
    shutil.copytree(base, folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(fields))
    try:
        tokenizer = T.AutoTokenizer.from_pretrained(folder)
        expected = joined(tokenizer(text)["input_ids"] for text in TEXTS)
    except Exception:  # refusals of many kinds
        return "skipped"
    if expected.max() >= 1400:  # a token that no model of this size has
        return "skipped"

    made = subprocess.run([fovea, "convert", folder, "-o", work / "m.fovea"], capture_output=True, text=True)
    if "counts more than tokenizer_config.json, whose add_prefix_space" in made.stderr:
        return "refused: add_prefix_space"

    def got():
        (work / "texts").write_text("".join(json.dumps(text) + "\n" for text in TEXTS))
        made.check_returncode()
        special = [] if fields.get("split_special_tokens") else ["--special"]
        lines = subprocess.run([fovea, "tokenize", work / "m.fovea", *special, "--jsonl", work / "texts"], check=True,
                               capture_output=True, text=True).stdout.split("\n")[:-1]
        return joined(map(int, line.split()) for line in lines)

    return judge(expected, got, work, limit=1e-9)


def joined(texts):
    """One array of all, with an end behind each."""
    return numpy.array([id for ids in texts for id in [*ids, -1]], float)

#!/usr/bin/env python3
"""Prompts of a sentence-transformers folder, and what sentence-transformers makes of texts with each.

Makes tests/golden/prompts anew, beside encoders/bert_sentence, whose weights it uses: config_sentence_transformers.json, and
expected.json with the ids that reach the encoder and the vectors that come out, for each text, prompt by name, none given
("default") and none at all ("nothing"); settings.json with the vectors behind the prompt "query" after changes of the folder's
files. Needs sentence-transformers.
"""
import json
import pathlib
import shutil
import tempfile

from sentence_transformers import SentenceTransformer

HERE = pathlib.Path(__file__).resolve().parent
BASE, FOLDER = HERE / "encoders/bert_sentence", HERE / "prompts"
PROMPTS = {"query": "the lamp is on; query: ", "document": "title: none | text: ", "Instruct": "un\nthe lampLÁMP", "empty": ""}


POOLING, OF_MODEL, TOKENIZER = "1_Pooling/config.json", "config_sentence_transformers.json", "tokenizer_config.json"
MODES = ["mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens"]
SHORT = {"sentence_bert_config.json": {"max_seq_length": 6, "do_lower_case": False}}
SETTINGS = [{POOLING: {"word_embedding_dimension": 36, "pooling_mode": mode, "include_prompt": False}} for mode in MODES]
SETTINGS += [{OF_MODEL: {"truncate_dim": 7}}, {OF_MODEL: {"truncate_dim": 36}},
             SHORT | {TOKENIZER: {"truncation_side": "left"}}, SHORT | {TOKENIZER: {"truncation_side": "right"}}]


def with_settings(changes, texts):
    """The vectors of a copy of the folder in which those files have those fields too."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(BASE, scratch, dirs_exist_ok=True)
        shutil.copy(FOLDER / OF_MODEL, scratch)
        for name, fields in changes.items():
            path = pathlib.Path(scratch) / name
            old = json.loads(path.read_text()) if path.exists() and name != POOLING else {}
            path.write_text(json.dumps(old | fields))
        model = SentenceTransformer(scratch, device="cpu")
        vectors = [model.encode([text], prompt_name="query")[0] for text in texts]
    return {"files": changes, "vectors": [[float(f"{x:.7g}") for x in vector] for vector in vectors]}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    fields = {"prompts": PROMPTS, "default_prompt_name": "document", "similarity_fn_name": "cosine"}
    (FOLDER / "config_sentence_transformers.json").write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n")
    texts = (BASE / "texts.txt").read_text().splitlines()
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(BASE, scratch, dirs_exist_ok=True)
        shutil.copy(FOLDER / "config_sentence_transformers.json", scratch)
        model = SentenceTransformer(scratch, device="cpu")
    seen = []
    model[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]["input_ids"][0].tolist()))
    ways = {name: {"prompt_name": name} for name in PROMPTS} | {"default": {}, "nothing": {"prompt": ""}}
    expected = {}
    for way, arguments in ways.items():
        seen.clear()
        vectors = [model.encode([text], **arguments)[0] for text in texts]
        expected[way] = {"ids": list(seen), "vectors": [[float(f"{x:.7g}") for x in vector] for vector in vectors]}
    settings = [with_settings(changes, texts) for changes in SETTINGS]
    (FOLDER / "settings.json").write_text(json.dumps(settings, separators=(",", ":")) + "\n")
    (FOLDER / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Prompts of a sentence-transformers folder, and what sentence-transformers makes of texts with each.

Makes tests/golden/prompts anew, beside encoders/bert_sentence, whose weights it uses: config_sentence_transformers.json, and
expected.json with the ids that reach the encoder and the vectors that come out, for each text, prompt by name, none given
("default") and none at all ("nothing"). Needs sentence-transformers.
"""
import json
import pathlib
import shutil
import tempfile

from sentence_transformers import SentenceTransformer

HERE = pathlib.Path(__file__).resolve().parent
BASE, FOLDER = HERE / "encoders/bert_sentence", HERE / "prompts"
PROMPTS = {"query": "the lamp is on; query: ", "document": "title: none | text: ", "Instruct": "un\nthe lampLÁMP", "empty": ""}


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
    (FOLDER / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

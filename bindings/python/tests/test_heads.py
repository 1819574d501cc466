"""What heads say of texts, pairs, words, answers and masks, equal to the command line's; vectors behind heads."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from conftest import GOLDEN

import fovea

ENCODERS = GOLDEN / "encoders"
TASKS = {
    "distilbert_sequenceclassification": "classes",
    "roberta_sequenceclassification": "classes",
    "modernbert_sequenceclassification": "classes",
    "bert_sequenceclassification": "classes",
    "albert_tokenclassification": "words",
    "xlm_roberta_questionanswering": "answer",
    "electra_maskedlm": "masks",
    "mpnet_maskedlm": "masks",
}


def read(name):
    lines = [json.loads(line) for line in (ENCODERS / name / "texts.jsonl").read_text().splitlines()]
    return [(line["text"], line.get("pair")) for line in lines]


def as_json(task, result):
    """One text's result as `fovea classify --json` has it."""
    if task == "answer":
        return {"answer": result.text, "score": result.score, "tokens": [result.begin, result.end]}
    if task == "words":
        return {"words": [word._asdict() for word in result]}
    if task == "masks":
        return {"masks": [[label._asdict() for label in mask] for mask in result]}
    return {"labels": [label._asdict() for label in result]}


@pytest.mark.parametrize("name", TASKS)
def test_heads_say_what_the_command_line_says(name, command_line):
    model, task = fovea.Model(ENCODERS / name, n_threads=1), TASKS[name]
    for text, pair in read(name):
        if task == "answer" and pair is None:
            continue
        if task == "masks" and "[MASK]" not in text and "<mask>" not in text:
            continue
        command = [command_line, "classify", model._path, "-p", text, "--json", *(["--pair", pair] if pair else [])]
        expected = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        said = as_json(task, model.classify(text, pair))
        for key, value in said.items():
            assert value == expected[key]
        assert as_json(task, model.classify([text], [pair] if pair else None)[0]) == said
        assert as_json(task, model.classify([text] * 3, pair)[1]) == said  # a pair for all


@pytest.mark.parametrize("name", ["distilbert_sequenceclassification", "bert_sequenceclassification"])
def test_logits_are_those_of_transformers(name):
    model = fovea.Model(ENCODERS / name)
    for number, (text, pair) in enumerate(read(name)):
        expected = np.load(ENCODERS / name / f"expected_{number}.npy").ravel()
        got = sorted(label.logit for label in model.classify(text, pair))
        np.testing.assert_allclose(got, np.sort(expected), rtol=0, atol=1e-4 * np.abs(expected).max())


def test_a_text_says_the_same_beside_any_others():
    model = fovea.Model(ENCODERS / "bert_sequenceclassification")
    words = list("abcdefghijklmnopqrstuvwxyz")
    texts = [" ".join(words[: 1 + i % 20]) for i in range(3000)]
    pairs = [words[i % 7] for i in range(3000)]
    together = model.classify(texts, iter(pairs), batch_size=7)
    assert len(together) == 3000
    for i in range(0, 3000, 211):
        assert together[i] == model.classify(texts[i], pairs[i])
    assert model.classify([]) == []


def test_what_is_refused(demo, bert):
    classes = fovea.Model(ENCODERS / "bert_sequenceclassification")
    answers = fovea.Model(ENCODERS / "xlm_roberta_questionanswering")
    masks = fovea.Model(ENCODERS / "electra_maskedlm")
    for call, error, words in [
        (lambda: demo.classify("x"), ValueError, "head"),
        (lambda: bert.classify("x"), ValueError, "head"),
        (lambda: classes.classify(["x"], ["a", "b"]), ValueError, "got 2"),
        (lambda: classes.classify("x", ["a"]), TypeError, "pairs"),
        (lambda: classes.classify([3]), TypeError, "texts"),
        (lambda: classes.classify(["x"], [None]), TypeError, "pairs"),
        (lambda: classes.classify("\ud800"), ValueError, "surrogate"),
        (lambda: answers.classify("who"), ValueError, "pairs"),
        (lambda: answers.classify("who", ""), ValueError, "without tokens"),
        (lambda: masks.classify("none here"), ValueError, "MASK"),
        (lambda: masks.classify("a [MASK]", top=-1), ValueError, "top"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_vectors_of_a_model_for_classes_are_the_command_lines(command_line, tmp_path):
    model = fovea.Model(ENCODERS / "bert_sequenceclassification")
    texts = [text for text, _ in read("bert_sequenceclassification")]
    (tmp_path / "texts").write_text("\n".join(texts) + "\n")
    command = [command_line, "encode", model._path, "--texts", tmp_path / "texts", "-o", tmp_path / "v.npy"]
    subprocess.run(command, check=True, capture_output=True)
    assert model.encode(texts).tobytes() == np.load(tmp_path / "v.npy").tobytes()


def test_a_folder_says_how_long_texts_may_be(bert, command_line, tmp_path):
    folder = tmp_path / "short"
    shutil.copytree(bert._path, folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 6}))
    short, text = fovea.Model(folder), "a b c d e f g h i j k"
    assert short.encode(text).tobytes() == bert.encode(text, max_length=6).tobytes()
    assert short.encode(text, max_length=9).tobytes() == bert.encode(text, max_length=9).tobytes()
    assert short.encode(text).tobytes() != bert.encode(text).tobytes()


@pytest.mark.parametrize("name", ["distilbert_sequenceclassification", "modernbert_sequenceclassification"])
def test_a_model_with_a_head_shows_its_attention(name):
    model = fovea.Model(ENCODERS / name, n_threads=1)
    ids = list(range(3, 12))
    pattern = model.attention(ids)
    assert pattern.layers == tuple(i for i, n in enumerate(model.config["encoder"]["heads_of_layers"]) if n)
    np.testing.assert_allclose(np.asarray(pattern).sum(axis=-1), 1, atol=1e-5)
    with pytest.raises(ValueError, match="those that attend"):
        model.attention(ids, layers=[model.n_layers])
    for layer in set(range(model.n_layers)) - set(pattern.layers):
        with pytest.raises(ValueError, match="those that attend"):
            model.attention(ids, layers=[layer])

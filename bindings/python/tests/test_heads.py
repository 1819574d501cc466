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
        return {
            "answer": result.text,
            "score": result.score,
            "tokens": [result.begin, result.end],
            "characters": list(result.characters),
            "no_answer": result.no_answer,
        }
    if task == "words":
        words = [word._asdict() for word in result]
        return {"words": [{key: list(v) if key == "characters" else v for key, v in w.items() if v} for w in words]}
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


@pytest.mark.parametrize("name", sorted(path.parent.name for path in ENCODERS.glob("*/expected_0.npy")))
def test_rows_are_those_of_transformers(name):
    """Logits of heads and, where there is none, vectors of tokens."""
    model = fovea.Model(ENCODERS / name)
    for number, (text, pair) in enumerate(read(name)):
        expected = np.load(ENCODERS / name / f"expected_{number}.npy")
        if model.config["task"]:
            got = model.head_logits(text, pair)
        elif pair is None:
            got = model.encode(text) if model.config["encoder"]["pools"] else model.encode_tokens(text)
        else:
            continue
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_vectors_of_tokens_are_what_pooling_reads():
    model = fovea.Model(ENCODERS / "bert_sentence", n_threads=1)
    texts = ["The lamp is on.", "a"]
    rows = model.encode_tokens(texts)
    assert [len(of_text) for of_text in rows] == [len(model.tokenize(text)) for text in texts]
    means = np.stack([of_text.mean(axis=0) for of_text in rows])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(means, model.encode(texts), rtol=0, atol=1e-6)


def test_a_checkpoint_that_pools_nothing_gives_the_mean_of_its_rows():
    model = fovea.Model(ENCODERS / "electra_maskedlm", n_threads=1)
    mean = model.encode_tokens("a b c").mean(axis=0)
    np.testing.assert_allclose(model.encode("a b c"), mean, rtol=0, atol=1e-6 * np.abs(mean).max())


def test_words_and_answers_say_where_they_lie():
    words = fovea.Model(ENCODERS / "albert_tokenclassification", n_threads=1)
    text = "a  Z\u00fcrich b\u00e9 \u6f22 c"
    for word in words.classify(text):
        assert text[slice(*word.characters)].lower() == word.word.lower()
    assert [text[slice(*word.characters)] for word in words.classify(text)][1] == "Z\u00fcrich"
    answers = fovea.Model(ENCODERS / "xlm_roberta_questionanswering", n_threads=1)
    for second in ("\u00c9 \u00fc A b", "dogs ab cd \u6f22 e"):
        for answer in answers.classify("a b", second, top=3):
            assert second[slice(*answer.characters)] == answer.text


def test_answers_may_be_several_or_none(tmp_path):
    folder = ENCODERS / "xlm_roberta_questionanswering"
    model = fovea.Model(folder, n_threads=1)
    best = model.classify("a b", "c d e f")
    several = model.classify("a b", "c d e f", top=4)
    assert several[0] == best
    assert len(several) == 4
    assert [answer.score for answer in several] == sorted((answer.score for answer in several), reverse=True)
    logits = model.head_logits("a b", "c d e f").astype(np.float64)
    shares = [np.exp(side - side.max()) for side in (np.r_[logits[0, k], logits[-5:-1, k]] for k in (0, 1))]
    shares = [share / share.sum() for share in shares]
    assert best.no_answer == pytest.approx(shares[0][0] * shares[1][0], rel=1e-6)
    with_none = model.classify("a b", "c d e f", top=20, no_answer=True)
    assert sum(answer.text == "" for answer in with_none) == 1
    assert with_none == sorted(with_none, key=lambda answer: -answer.score)


def test_labels_in_the_order_of_their_ids_and_documents_by_their_scores():
    words = fovea.Model(ENCODERS / "albert_tokenclassification")
    assert words.labels == [f"LABEL_{i}" for i in range(17)]
    model = fovea.Model(ENCODERS / "bert_sequenceclassification", n_threads=1)
    documents = ["a b c", "d", "e f", "g h i j"]
    ranked = model.rank("s z y", documents)
    scores = [labels[0].score for labels in model.classify(["s z y"] * 4, documents)]
    assert [(one.number, one.document) for one in ranked] == sorted(
        enumerate(documents), key=lambda pair: -scores[pair[0]]
    )
    assert model.rank("s z y", documents, top=2) == ranked[:2]
    with pytest.raises(ValueError, match="expected a reranker"):
        words.rank("a", ["b"])
    with pytest.raises(TypeError, match="see rank"):
        model.classify("s z y", documents)


def test_a_causal_reranker_scores_as_its_model_card_does(recwarn):
    cases = json.loads((GOLDEN / "rerankers/causal/expected.json").read_text())
    model = fovea.Model(GOLDEN / "rerankers/causal", n_threads=1)
    for case in cases:
        best = model.rank(case["query"], [case["document"]])[0]
        assert best.score == pytest.approx(1 / (1 + np.exp(-case["logit"])), abs=1e-4)


def test_sparse_vectors_are_ids_and_weights(recwarn):
    cases = json.loads((GOLDEN / "sparse/splade/expected.json").read_text())
    model = fovea.Model(GOLDEN / "sparse/splade", n_threads=1)
    for prompt in ("", "query"):
        mine = [case for case in cases if case["prompt"] == prompt]
        vectors = model.encode_sparse([case["text"] for case in mine], prompt_name=prompt or None)
        for weights, case in zip(vectors, mine):
            assert {str(token): weight for token, weight in weights.items()} == pytest.approx(case["weights"], abs=3e-4)
    assert model.encode_sparse(cases[0]["text"]) == model.encode_sparse([cases[0]["text"]])[0]
    with pytest.raises(ValueError, match="expected one that makes sparse vectors"):
        fovea.Model(ENCODERS / "bert_sequenceclassification").encode_sparse("a")


def test_late_interaction_gives_vectors_of_tokens_and_ranks(recwarn):
    for name in ("native", "pylate", "stanford"):
        want = json.loads((GOLDEN / f"late/{name}/expected.json").read_text())
        model = fovea.Model(GOLDEN / f"late/{name}", n_threads=1)
        for as_query, texts, vectors in ((True, "queries", "query_vectors"), (False, "documents", "document_vectors")):
            for got, rows in zip(model.encode_late(want[texts], as_query=as_query), want[vectors], strict=True):
                np.testing.assert_allclose(got, rows, atol=3e-4)
        for query, scores in zip(want["queries"], want["scores"], strict=True):
            ranked = model.rank(query, want["documents"])
            assert [one.score for one in ranked] == pytest.approx(sorted(scores, reverse=True), abs=3e-3)
        assert model.encode_late("a b").shape[1] == 8
    with pytest.raises(ValueError, match="expected one of late interaction"):
        fovea.Model(ENCODERS / "bert_sequenceclassification").encode_late("a")


def test_what_is_cut_is_said():
    model = fovea.Model(ENCODERS / "bert_sequenceclassification", n_threads=1)
    assert model.max_seq_length == 40
    with pytest.warns(UserWarning, match="the text has more than 40 tokens"):
        model.classify("a " * 50, "b")
    with pytest.warns(UserWarning, match="2 of 3 texts have more than 40 tokens"):
        model.encode(["a " * 50, "b", "a " * 60])


def test_special_tokens_in_texts_by_a_switch():
    model = fovea.Model(ENCODERS / "bert_sequenceclassification", n_threads=1)
    sep = model.tokenize("")[-1]
    assert len(model.encode_tokens("a [SEP] b", parse_special=True)) == 5
    assert len(model.encode_tokens("a [SEP] b")) > 5
    assert model.tokenize("a [SEP] b", parse_special=True)[2] == sep
    assert model.head_logits("a [SEP] b", parse_special=True) != model.head_logits("a [SEP] b")
    assert model.classify("a [SEP] b", parse_special=True) != model.classify("a [SEP] b")
    assert np.any(model.encode("a [SEP] b", parse_special=True) != model.encode("a [SEP] b"))


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


@pytest.mark.filterwarnings("ignore:the text has more than")
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

"""Prompts of sentence-transformers' folders, by name or as they are."""

import json
import shutil
import warnings

import numpy as np
import pytest
from conftest import GOLDEN

import fovea


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The golden encoder with prompts."""
    folder = tmp_path_factory.mktemp("prompts") / "m"
    shutil.copytree(GOLDEN / "encoders" / "bert_sentence", folder)
    shutil.copy(GOLDEN / "prompts" / "config_sentence_transformers.json", folder)
    return fovea.Model(folder, n_threads=1)


def test_vectors_are_those_of_sentence_transformers(model):
    expected = json.loads((GOLDEN / "prompts" / "expected.json").read_text())
    texts = (GOLDEN / "encoders" / "bert_sentence" / "texts.txt").read_text().splitlines()
    for way, want in expected.items():
        named = {} if way == "default" else {"prompt": ""} if way == "nothing" else {"prompt_name": way}
        assert np.abs(model.encode(texts, **named) - np.array(want["vectors"])).max() < 1e-5, way
        assert np.abs(model.encode(texts[0], **named) - np.array(want["vectors"][0])).max() < 1e-5, way
    prompt = model.prompts["query"]
    assert np.array_equal(model.encode(texts, prompt=prompt), model.encode(texts, prompt_name="query"))


def test_names(model, bert):
    assert list(model.prompts) == ["Instruct", "document", "empty", "query"]
    assert model.default_prompt_name == "document"
    with pytest.raises(ValueError, match="expected one of Instruct, document, empty, query, got 'nobody'"):
        model.encode("a", prompt_name="nobody")
    assert bert.prompts == {}
    assert bert.default_prompt_name is None
    with pytest.raises(ValueError, match="the model has no prompts"):
        bert.encode("a", prompt_name="query")


def test_queries_and_documents_have_their_prompts(model, bert):
    texts = ["a text", "another"]
    assert np.array_equal(model.encode_query(texts), model.encode(texts, prompt_name="query"))
    assert np.array_equal(model.encode_document(texts), model.encode(texts, prompt_name="document"))
    assert np.array_equal(model.encode_query(texts, prompt=""), model.encode(texts, prompt=""))
    assert np.array_equal(
        model.encode_query(texts, prompt_name="Instruct"), model.encode(texts, prompt_name="Instruct")
    )
    assert np.array_equal(bert.encode_query("a"), bert.encode("a"))


def test_a_query_without_a_prompt_of_its_own_has_none(model, monkeypatch):
    monkeypatch.setattr(type(model), "prompts", {"query": "q: "})
    monkeypatch.setattr(type(model), "default_prompt_name", "query")
    assert np.array_equal(model.encode_document("a text"), model.encode("a text", prompt=""))


def test_settings_of_a_folder_give_sentence_transformers_vectors(tmp_path):
    texts = (GOLDEN / "encoders" / "bert_sentence" / "texts.txt").read_text().splitlines()
    for number, case in enumerate(json.loads((GOLDEN / "prompts" / "settings.json").read_text())):
        folder = tmp_path / str(number)
        shutil.copytree(GOLDEN / "encoders" / "bert_sentence", folder)
        shutil.copy(GOLDEN / "prompts" / "config_sentence_transformers.json", folder)
        for name, fields in case["files"].items():
            path = folder / name
            old = json.loads(path.read_text()) if path.exists() and not name.startswith("1_") else {}
            path.write_text(json.dumps(old | fields))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is cut
            got = fovea.Model(folder, n_threads=1).encode(texts, prompt_name="query")
        assert got.shape == np.shape(case["vectors"])
        assert np.abs(got - np.array(case["vectors"])).max() < 1e-5, case["files"]


@pytest.mark.parametrize("function", ["dot", "euclidean", "manhattan"])
def test_similarity_is_what_the_folder_says(tmp_path, function):
    folder = tmp_path / "m"
    shutil.copytree(GOLDEN / "encoders" / "bert_sentence", folder)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"similarity_fn_name": function}))
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 5)).astype(np.float32), rng.normal(size=(4, 5)).astype(np.float32)
    apart = a[:, None] - b[None]
    wanted = {"dot": a @ b.T, "euclidean": -np.sqrt((apart**2).sum(-1)), "manhattan": -np.abs(apart).sum(-1)}
    np.testing.assert_allclose(fovea.Model(folder).similarity(a, b), wanted[function], rtol=1e-5)


def test_similarity_is_the_cosine(model):
    first, second = model.encode_query(["a text", "another", "one more"]), model.encode_document(["a text", "else"])
    want = [[a @ b / np.sqrt((a @ a) * (b @ b)) for b in second.astype(float)] for a in first.astype(float)]
    got = model.similarity(first, second)
    assert (got.shape, got.dtype) == ((3, 2), np.float32)
    assert np.abs(got - np.array(want)).max() < 1e-6
    # numpy's product: one row may be summed in another order than three
    assert np.abs(model.similarity(first[0], second.tolist()) - got[:1]).max() < 1e-6
    assert np.array_equal(model.similarity(np.zeros((1, 4), np.float32), np.ones((2, 4), np.float32)), [[0, 0]])
    with pytest.raises(ValueError, match="second: expected vectors of width 2, got 3"):
        model.similarity([[1, 2]], [[1, 2, 3]])
    with pytest.raises(ValueError, match=r"first: expected vectors \[n, width\], got \[1, 1, 1\]"):
        model.similarity([[[1]]], [[1]])
    with pytest.raises(TypeError, match=r"second: expected vectors \[n, width\], got list"):
        model.similarity([[1]], ["a"])

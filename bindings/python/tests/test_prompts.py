"""Prompts of sentence-transformers' folders, by name or as they are."""

import json
import shutil

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

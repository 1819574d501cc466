"""Texts from texts: as transformers and the command line write them; languages, beams, refusals."""

import json
import shutil
import subprocess

import pytest
from conftest import GOLDEN

import fovea

PIECES = {"marian": ("spm_unigram.model", "source.spm"), "m2m_100": ("spm_bpe.model", "sentencepiece.bpe.model")}
OPTIONS = {"--from": "from_language", "--to": "to_language", "--beams": "num_beams", "-n": "max_new_tokens"}


@pytest.fixture(scope="module", params=PIECES)
def translator(request, tmp_path_factory):
    """A small model with a tokenizer that writes one text from another, and what transformers writes with it."""
    folder = tmp_path_factory.mktemp("translator") / request.param
    shutil.copytree(GOLDEN / "numbered_pieces" / request.param, folder)
    given, name = PIECES[request.param]
    shutil.copyfile(GOLDEN / given, folder / name)
    return fovea.Model(folder, n_threads=1), json.loads((folder / "expected.json").read_text())["written"]


def arguments(words):
    """The text and the keywords that a command line's options are."""
    named = dict(zip(words[::2], words[1::2]))
    text = named.pop("-p")
    return text, {OPTIONS[name]: int(v) if v.isdigit() else v for name, v in named.items()}


def test_texts_are_those_of_transformers(translator):
    model, expected = translator
    assert len(expected) == 6
    for words, written in expected:
        text, named = arguments(words)
        assert model.translate(text, **named).text.strip() == written


def test_texts_are_those_of_the_command_line(translator, command_line):
    model, expected = translator
    for words, _ in expected:
        command = [command_line, "run", model._path, *words, "--json"]
        said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout.decode(errors="replace"))
        text, named = arguments(words)
        made = model.translate(text, **named)
        assert (made.text, list(made.tokens), made.finish_reason) == (said["text"], said["tokens"], said["finish"])
        assert made.score == pytest.approx(said["score"], abs=0) if "score" in said else made.score is None


@pytest.mark.parametrize("family", ["bart", "marian", "t5"])
def test_ids_by_beams_are_those_of_transformers(family, tmp_path):
    folder = tmp_path / family
    shutil.copytree(GOLDEN / "pairs" / family, folder)
    source = json.loads((folder / "expected.json").read_text())["source"]
    for case in json.loads((folder / "expected_beams.json").read_text()):
        (folder / "generation_config.json").write_text(json.dumps(case["settings"]))
        fovea.convert(folder, tmp_path / "m.fovea", type="f32")
        made = fovea.Model(tmp_path / "m.fovea", n_threads=1).translate(source)
        assert made.text is None
        assert list(made.tokens) == case["written"]
        assert made.score == pytest.approx(case["score"], rel=1e-6)


def test_what_is_too_long_is_read_in_parts(translator):
    model, _ = translator
    text = "The lamp in the hall is on. " * 20
    made = model.translate(text, num_beams=1)
    assert made.n_parts > 1
    assert made.tokens
    assert model.translate("The lamp.").n_parts == 1
    with pytest.raises(ValueError, match="prompt: expected at most"):
        model.translate(model.tokenize(text))


def test_one_model_writes_by_any_number_of_beams(translator):
    model, _ = translator
    first = model.translate("The lamp is on.")
    assert first.score is not None
    assert model.translate("The lamp is on.", num_beams=1).score is None
    assert model.translate("The lamp is on.") == first
    short = model.translate("The lamp is on.", num_beams=1, max_new_tokens=2)
    assert (len(short.tokens), short.finish_reason) == (2, "length")


def test_what_is_refused(translator, demo, bert):
    model, _ = translator
    with pytest.raises(ValueError, match="to_language: expected"):
        model.translate("a", to_language="xx")
    with pytest.raises(ValueError, match="num_beams: expected at most 64, got 65"):
        model.translate("a", num_beams=65)
    with pytest.raises(ValueError, match="to_language: expected"):
        model.translate("a", to_language="\ud800")
    with pytest.raises(TypeError, match="from_language: expected a str, got int"):
        model.translate("a", from_language=3)
    with pytest.raises(ValueError, match="expected one that continues its prompt, got one that translates"):
        model.generate("a")
    for other in (demo, bert):
        with pytest.raises(ValueError, match="expected one that writes a text from another, got another kind"):
            other.translate("a")
    without = fovea.Model(GOLDEN / "pairs" / "marian", n_threads=1)
    with pytest.raises(ValueError, match="expected one with a tokenizer"):
        without.translate([3, 10, 0], to_language="de")
    with pytest.raises(ValueError, match="expected at most 28, got 9999"):
        without.translate([3, 9999, 0])

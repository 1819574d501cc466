"""Where tokens lie in their texts, beside the tokenizers package where it is installed."""

import pytest
from conftest import GOLDEN

import fovea

TEXTS = ["The lamp is on.", " Lamps,  lamp; LÁMPED! ", "naïve café, e\u0301", "快速 ½ 👍🏽", "", "a [SEP] b"]


def test_every_token_is_a_part_of_the_text(demo):
    for text in TEXTS:
        ids, offsets = demo.tokenize(text, add_special=False, return_offsets=True)
        assert ids == demo.tokenize(text, add_special=False)
        assert len(offsets) == len(ids)
        assert all(0 <= begin <= end <= len(text) for begin, end in offsets)
        assert [begin for begin, _ in offsets] == sorted(begin for begin, _ in offsets)
        assert sum(end - begin for begin, end in offsets) >= len(text.replace(" ", ""))


def test_special_tokens_have_no_place_or_their_own():
    model = fovea.Model(GOLDEN / "encoders" / "bert_sentence")
    ids, offsets = model.tokenize("The lamp", return_offsets=True)
    assert offsets[0] == offsets[-1] == (0, 0)
    assert model.tokenize("a [SEP] b", add_special=False, parse_special=True, return_offsets=True)[1][1] == (2, 7)
    assert ids[-1] not in model.tokenize("a [SEP] b", add_special=False)
    with pytest.raises(TypeError, match="text: expected a str"):
        model.tokenize(b"bytes", return_offsets=True)


def test_offsets_are_those_of_tokenizers():
    tokenizers = pytest.importorskip("tokenizers")
    folder = GOLDEN / "encoders" / "bert_sentence"
    theirs = tokenizers.BertWordPieceTokenizer(str(folder / "vocab.txt"))
    model = fovea.Model(folder)
    for text in TEXTS[:-1]:
        ids, offsets = model.tokenize(text, return_offsets=True)
        expected = theirs.encode(text)
        assert (ids, offsets) == (expected.ids, expected.offsets)

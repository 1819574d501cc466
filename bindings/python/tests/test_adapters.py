"""Adapters beside a model: what they compute, exact plans, and refusals by a file's name."""

import json
import pickle

import numpy as np
import pytest
from conftest import GOLDEN, bert_arrays, write_bert, write_safetensors

import fovea

BASE = GOLDEN / "models" / "llama_tied"
FOLDER = GOLDEN / "lora" / "llama"
IDS = [(7 * i + 3) % 61 for i in range(16)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model's file and its adapter's."""
    folder = tmp_path_factory.mktemp("adapters")
    fovea.convert(BASE, folder / "m.fovea", type="f32")
    fovea.convert_adapter(FOLDER, folder / "a.fovea", base=BASE)
    return folder / "m.fovea", folder / "a.fovea"


def same_bits(a, b):
    return np.array_equal(a.view(np.uint32), b.view(np.uint32))


def test_logits_are_those_of_the_sums(files):
    model, adapter = files
    expected = np.load(FOLDER / "expected_logits.npy")
    plain = fovea.Model(model).logits(IDS)
    assert np.abs(plain - expected).max() > 0.1
    for adapters in ([adapter], [str(adapter)], [(adapter, 1)], [(adapter, 0.25), (adapter, 0.75)]):
        assert np.abs(fovea.Model(model, adapters=adapters).logits(IDS) - expected).max() < 1e-4
    assert same_bits(fovea.Model(model, adapters=[(adapter, 0.0)]).logits(IDS), plain)
    of_bytes = fovea.Model.from_bytes(model.read_bytes(), adapters=[adapter])
    whole = fovea.Model(model, adapters=[adapter])
    assert same_bits(of_bytes.logits(IDS), whole.logits(IDS))
    again = pickle.loads(pickle.dumps(fovea.Model(model, adapters=[(adapter, 0.5)])))
    assert same_bits(again.logits(IDS), fovea.Model(model, adapters=[(adapter, 0.5)]).logits(IDS))


def test_a_pickle_finds_adapters_from_another_folder(files, monkeypatch):
    model, adapter = files
    monkeypatch.chdir(model.parent)
    opened = fovea.Model(model.name, adapters=[adapter.name])
    monkeypatch.chdir("/")
    assert same_bits(pickle.loads(pickle.dumps(opened)).logits(IDS), fovea.Model(model, adapters=[adapter]).logits(IDS))


def test_sessions_and_workspaces_have_them(files):
    model = fovea.Model(files[0], adapters=[files[1]])
    plain = fovea.Model(files[0])
    session = model.session(max_kv_len=32)
    assert session.arena_bytes == model.plan(max_kv_len=32).arena_bytes > plain.plan(max_kv_len=32).arena_bytes
    want = model.logits(IDS)
    assert same_bits(session.forward(IDS), want[-1])
    workspace, pool = fovea.Workspace(model, max_sequences=2), fovea.CachePool(model, max_sequences=2)
    out = [np.empty((len(IDS), 61), np.float32), np.empty((5, 61), np.float32)]
    workspace.forward([fovea.Step(pool.cache(), IDS, out[0]), fovea.Step(pool.cache(), IDS[:5], out[1])])
    assert same_bits(out[0], want)
    assert same_bits(out[1], want[:5])


def test_saved_sessions_belong_to_their_adapters(files):
    model = fovea.Model(files[0], adapters=[files[1]])
    session = model.session(max_kv_len=32)
    session.append(IDS[:8])
    saved = session.save()
    assert same_bits(session.fork().forward(IDS[8:]), model.logits(IDS)[-1])
    other = fovea.Model(files[0], adapters=[files[1]]).session(max_kv_len=32)
    other.restore(saved)
    assert same_bits(other.forward(IDS[8:]), model.logits(IDS)[-1])
    for adapters in ([], [(files[1], 0.5)]):
        with pytest.raises(ValueError, match="of the same adapters"):
            fovea.Model(files[0], adapters=adapters).session(max_kv_len=32).restore(saved)


def test_an_encoder_has_them(tmp_path):
    folder = write_bert(tmp_path)
    vocab_size = json.loads((folder / "config.json").read_text())["vocab_size"]
    arrays, rng, products = bert_arrays(vocab_size), np.random.default_rng(9), {}
    for layer, name in ((0, "attention.self.query"), (1, "attention.self.value"), (1, "intermediate.dense")):
        module = f"encoder.layer.{layer}.{name}"
        n_rows, n_cols = arrays[module + ".weight"].shape
        a = rng.normal(0, 0.3, (3, n_cols)).astype(np.float32)
        b = rng.normal(0, 0.3, (n_rows, 3)).astype(np.float32)
        products[f"base_model.model.{module}.lora_A.weight"] = a
        products[f"base_model.model.{module}.lora_B.weight"] = b
        arrays[module + ".weight"] = arrays[module + ".weight"] + 2 * (b @ a)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    fields = {"peft_type": "LORA", "r": 3, "lora_alpha": 6, "target_modules": ["query", "value", "dense"]}
    (adapter / "adapter_config.json").write_text(json.dumps(fields))
    write_safetensors(adapter / "adapter_model.safetensors", products)
    fovea.convert_adapter(adapter, tmp_path / "a.fovea", base=folder)
    beside = fovea.Model(folder, adapters=[tmp_path / "a.fovea"])
    plain = fovea.Model(folder)
    write_safetensors(folder / "model.safetensors", arrays)
    fovea.convert(folder, tmp_path / "merged.fovea")
    merged = fovea.Model(tmp_path / "merged.fovea")
    texts = ["one small text", "another, a little longer than that one"]
    assert np.abs(beside.encode(texts) - merged.encode(texts)).max() < 1e-5
    assert np.abs(beside.encode(texts) - plain.encode(texts)).max() > 0.01


def test_refusals_name_the_file(files, tmp_path):
    model, adapter = files
    with pytest.raises(ValueError, match=r"m\.fovea: expected an adapter's file, got a model"):
        fovea.Model(model, adapters=[model])
    with pytest.raises(FileNotFoundError, match="none"):
        fovea.Model(model, adapters=[tmp_path / "none"])
    with pytest.raises(TypeError, match="adapters: expected a list"):
        fovea.Model(model, adapters=str(adapter))
    with pytest.raises(ValueError, match="finite"):
        fovea.Model(model, adapters=[(adapter, float("nan"))])
    cut = tmp_path / "cut.fovea"
    cut.write_bytes(adapter.read_bytes()[:-1000])
    with pytest.raises(ValueError, match=r"cut\.fovea"):
        fovea.Model(model, adapters=[cut])
    fovea.convert_adapter(GOLDEN / "lora" / "gpt_neox", tmp_path / "b.fovea", base=GOLDEN / "families" / "gpt_neox")
    with pytest.raises(ValueError, match=r"b\.fovea"):
        fovea.Model(model, adapters=[adapter, tmp_path / "b.fovea"])
    with pytest.raises(ValueError, match=r"a\.fovea"):
        fovea.Model(adapter).logits([1])
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        fovea.convert_adapter(FOLDER, tmp_path / "c.fovea", base=FOLDER)

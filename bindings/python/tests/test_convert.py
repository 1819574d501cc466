"""Modules, dicts of arrays and files as Fovea files."""

import json

import numpy as np
import pytest
from conftest import GOLDEN, bert_arrays, write_bert, write_safetensors

import fovea

ATTENTION = {"model_type": "torch.nn.MultiheadAttention", "embed_dim": 8, "num_heads": 2}


def attention_arrays(dtype=np.float32):
    rng = np.random.default_rng(3)
    shapes = {"in_proj_weight": (24, 8), "in_proj_bias": (24,), "out_proj.weight": (8, 8), "out_proj.bias": (8,)}
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def test_arrays_give_the_bytes_that_a_folder_gives(tmp_path):
    arrays = attention_arrays()
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text(json.dumps(ATTENTION))
    write_safetensors(tmp_path / "m" / "model.safetensors", arrays)
    fovea.convert(tmp_path / "m", tmp_path / "folder.fovea")
    fovea.convert(arrays, tmp_path / "arrays.fovea", config=ATTENTION)
    fovea.convert(arrays, tmp_path / "path.fovea", config=tmp_path / "m" / "config.json")
    expected = (tmp_path / "folder.fovea").read_bytes()
    assert (tmp_path / "arrays.fovea").read_bytes() == expected
    assert (tmp_path / "path.fovea").read_bytes() == expected
    strided = {name: np.repeat(array, 2, axis=-1)[..., ::2] for name, array in arrays.items()}
    fovea.convert(strided, tmp_path / "strided.fovea", config=ATTENTION)
    assert (tmp_path / "strided.fovea").read_bytes() == expected


def test_halves_are_not_widened(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype, type_name in ((np.float16, "f16"), (ml_dtypes.bfloat16, "bf16")):
        arrays = attention_arrays(dtype)
        fovea.convert(arrays, tmp_path / "half.fovea", config=ATTENTION)
        widened = {name: array.astype(np.float32) for name, array in arrays.items()}
        fovea.convert(widened, tmp_path / "asked.fovea", config=ATTENTION, type=type_name)
        fovea.convert(widened, tmp_path / "wide.fovea", config=ATTENTION)
        half, wide = (tmp_path / "half.fovea").read_bytes(), (tmp_path / "wide.fovea").read_bytes()
        assert len(half) < len(wide)

        def weights(data):  # the metadata names the source's type, and its checksum follows
            return data[data.index(b"\0" * 64) :][-600:]

        assert weights(half) == weights((tmp_path / "asked.fovea").read_bytes())


@pytest.mark.parametrize("type_name", ["f32", "f16", "bf16", "q8", "q4"])
def test_types(tmp_path, type_name):
    rng = np.random.default_rng(3)
    width = 64
    shapes = {"in_proj_weight": (3 * width, width), "in_proj_bias": (3 * width,),
              "out_proj.weight": (width, width), "out_proj.bias": (width,)}  # fmt: skip
    arrays = {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    exact = fovea.MultiheadAttention(width, 4, state_dict=arrays, batch_first=True)
    smaller = fovea.MultiheadAttention(width, 4, state_dict=arrays, batch_first=True, type=type_name)
    x = rng.normal(size=(1, 5, width)).astype(np.float32)
    error = np.abs(smaller(x, x, x)[0] - exact(x, x, x)[0]).max()
    assert error <= {"f32": 0, "f16": 1e-3, "bf16": 1e-2, "q8": 2e-2, "q4": 0.2}[type_name]


def test_a_model_in_memory(tmp_path):
    folder = write_bert(tmp_path)
    from_folder = fovea.Model(folder)
    config = json.loads((folder / "config.json").read_text())
    arrays = bert_arrays(config["vocab_size"])
    model = fovea.convert(arrays, config=config, tokenizer=folder / "tokenizer.json")
    assert model.tokenize("some words") == from_folder.tokenize("some words")
    vectors = model._native  # it does not pool: that is in the folder's modules.json
    assert vectors.facts()["encoder"]["pools"] is False
    mean = model.encode_tokens("x").mean(axis=0)
    np.testing.assert_allclose(model.encode("x"), mean, rtol=0, atol=1e-6 * np.abs(mean).max())


def test_a_failed_conversion_leaves_no_file(tmp_path):
    arrays = attention_arrays()
    arrays["stray"] = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="stray"):
        fovea.convert(arrays, tmp_path / "never.fovea", config=ATTENTION)
    assert not list(tmp_path.iterdir())


def test_encoders_and_decoders_are_pytorchs():
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    options = {"d_model": 16, "nhead": 4, "dim_feedforward": 24, "batch_first": True, "dropout": 0.0}
    source, target = torch.randn(2, 7, 16), torch.randn(2, 5, 16)
    with torch.no_grad():
        layer = torch.nn.TransformerEncoderLayer(**options, norm_first=True, activation="gelu")
        encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
        got = fovea.convert(encoder).encode_arrays(source)
        np.testing.assert_allclose(got, encoder(source).numpy(), atol=1e-4)

        decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(**options), 2).eval()
        got = fovea.convert(decoder).encode_arrays(target=target, memory=source, causal=True)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
        np.testing.assert_allclose(got, decoder(target, source, tgt_mask=mask).numpy(), atol=1e-4)

        both = torch.nn.Transformer(num_encoder_layers=2, num_decoder_layers=1, **options).eval()
        model = fovea.convert(both)
        padding = torch.zeros(2, 7, dtype=torch.bool)
        padding[1, 4:] = True
        got, weights = model.encode_arrays(source, target=target, source_padding_mask=padding,
                                           memory_padding_mask=padding, weights_of=("memory", 0))  # fmt: skip
        expected = both(source, target, src_key_padding_mask=padding, memory_key_padding_mask=padding)
        np.testing.assert_allclose(got, expected.numpy(), atol=1e-4)
        assert weights.shape == (2, 4, 5, 7)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert not weights[1, :, :, 4:].any()


def test_bfloat16_tensors_go_in_as_they_are(tmp_path):
    torch = pytest.importorskip("torch")
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    half = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    half.load_state_dict(module.state_dict())
    half = half.to(torch.bfloat16)
    fovea.convert(half, tmp_path / "half.fovea")
    x = torch.randn(1, 5, 8)
    with torch.no_grad():
        rounded = half.float()(x, x, x)[0].numpy()
    got = fovea.MultiheadAttention.from_torch(half)(x, x, x)[0]
    np.testing.assert_allclose(got, rounded, atol=1e-5)


def test_transformers_models_convert_without_a_folder():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(2)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    reference = transformers.LlamaForCausalLM(config).eval()
    ids = [3, 14, 15, 92, 65, 35]
    with torch.no_grad():
        expected = reference(torch.tensor([ids])).logits[0].numpy()
    got = fovea.convert(reference).logits(ids)
    assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()


def test_a_source_that_is_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        fovea.convert(tmp_path / "nothing", tmp_path / "out.fovea")
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        fovea.convert(tmp_path, tmp_path / "out.fovea")
    assert (GOLDEN / "models").exists()


def test_what_the_system_does_not_give_is_an_os_error(tmp_path, monkeypatch):
    arrays, folder, lost = attention_arrays(), GOLDEN / "models" / "qwen3", tmp_path / "none" / "m.fovea"
    for call, error, path in (
        (lambda: fovea.Model(tmp_path), FileNotFoundError, tmp_path / "config.json"),
        (lambda: fovea.convert(folder, lost), FileNotFoundError, lost),
        (lambda: fovea.convert(arrays, lost, config=ATTENTION), FileNotFoundError, lost),
        (lambda: fovea.convert(arrays, config=tmp_path / "none.json"), FileNotFoundError, tmp_path / "none.json"),
    ):
        with pytest.raises(error) as refused:
            call()
        assert refused.value.errno
        assert str(refused.value.filename).startswith(str(path))
        assert str(refused.value).count(str(path)) == 1
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(NotADirectoryError, match="cannot be made"):
        fovea.Model(folder)

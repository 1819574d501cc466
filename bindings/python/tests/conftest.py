"""What the tests share: models, made once, and the command line, where there is one."""

import importlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import fovea

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
DEMO = ROOT / "tools" / "demo" / "demo.fovea"


def wanted(name, **how):
    """The module of that name. A test without it is skipped, and fails where FOVEA_EXPECT_MODULES names the module."""
    if name.partition(".")[0] in os.environ.get("FOVEA_EXPECT_MODULES", "").split():
        return importlib.import_module(name)
    return pytest.importorskip(name, **how)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    """A cache folder of the tests' own."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    return folder / "fovea"


@pytest.fixture(scope="session")
def demo():
    """The command line's built-in model, a small decoder with a tokenizer."""
    return fovea.Model(DEMO, n_threads=1)


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """A small encoder that pools, with a tokenizer: random weights in a sentence-transformers folder."""
    return fovea.Model(write_bert(tmp_path_factory.mktemp("bert")), n_threads=1)


@pytest.fixture(scope="session")
def classes():
    """A small encoder with a head for classes of texts and pairs."""
    return fovea.Model(GOLDEN / "encoders" / "bert_sequenceclassification", n_threads=1)


@pytest.fixture(scope="session")
def talker(tmp_path_factory):
    """A small decoder with ChatML's tokens and a template of its own."""
    return fovea.Model(write_talker(tmp_path_factory.mktemp("talker")), n_threads=1)


@pytest.fixture(scope="session")
def command_line():
    """The path of `fovea`, from FOVEA_CLI, a build or the PATH."""
    found = os.environ.get("FOVEA_CLI") or shutil.which("fovea", path=f"{ROOT / 'build' / 'release'}")
    if not found or not os.access(found, os.X_OK):
        pytest.skip("no command line: set FOVEA_CLI or build the release preset")
    return found


def write_safetensors(path, arrays):
    """Arrays of float32 as a .safetensors file."""
    header, data = {}, b""
    for name, array in arrays.items():
        piece = np.ascontiguousarray(array, dtype=np.float32).tobytes()
        offsets = [len(data), len(data) + len(piece)]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": offsets}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def bert_arrays(vocab_size, *, d_model=32, d_ff=64, n_layers=2, n_positions=64):
    """A state dict as BertModel has it."""
    rng = np.random.default_rng(7)
    arrays = {
        "embeddings.word_embeddings.weight": (vocab_size, d_model),
        "embeddings.position_embeddings.weight": (n_positions, d_model),
        "embeddings.token_type_embeddings.weight": (2, d_model),
        "embeddings.LayerNorm.weight": (d_model,),
        "embeddings.LayerNorm.bias": (d_model,),
    }
    for layer in range(n_layers):
        at = f"encoder.layer.{layer}."
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            arrays[f"{at}{name}.weight"], arrays[f"{at}{name}.bias"] = (d_model, d_model), (d_model,)
        arrays[f"{at}intermediate.dense.weight"], arrays[f"{at}intermediate.dense.bias"] = (d_ff, d_model), (d_ff,)
        arrays[f"{at}output.dense.weight"], arrays[f"{at}output.dense.bias"] = (d_model, d_ff), (d_model,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            arrays[f"{at}{name}.weight"], arrays[f"{at}{name}.bias"] = (d_model,), (d_model,)
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in arrays.items()}


def write_bert(folder, *, d_model=32, n_ids=0):
    """A sentence-transformers folder; n_ids: embeddings at least, more than the tokenizer has."""
    shutil.copyfile(GOLDEN / "tokenizer_bert.json", folder / "tokenizer.json")
    vocab_size = 1 + max(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"].values())
    vocab_size = max(vocab_size, n_ids)
    config = {
        "model_type": "bert", "vocab_size": vocab_size, "hidden_size": d_model, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64, "type_vocab_size": 2,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": d_model, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    write_safetensors(folder / "model.safetensors", bert_arrays(vocab_size, d_model=d_model))
    return folder


TEMPLATE = (
    "{% if tools %}{{ '<|im_start|>tools\\n' + tools | tojson + '<|im_end|>\\n' }}{% endif %}"
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% if mood %}{{ mood }}{% endif %}{% endif %}"
)


def write_talker(folder):
    """A small Llama with ChatML's tokens and a template: random weights in a Hugging Face folder."""
    tokenizer = json.loads((GOLDEN / "tokenizer_smollm.json").read_text())
    n = len(tokenizer["model"]["vocab"])
    for content in ("<|im_start|>", "<|im_end|>"):
        tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": n, "content": content})
        n += 1
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    config = {
        "model_type": "llama", "vocab_size": n, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "intermediate_size": 64, "max_position_embeddings": 400, "hidden_act": "silu",
        "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "eos_token_id": 0,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": (n, 32), "model.norm.weight": (32,)}
    at = "model.layers.0."
    for name, shape in {"q_proj": (32, 32), "k_proj": (16, 32), "v_proj": (16, 32), "o_proj": (32, 32)}.items():
        shapes[f"{at}self_attn.{name}.weight"] = shape
    for name, shape in {"gate_proj": (64, 32), "up_proj": (64, 32), "down_proj": (32, 64)}.items():
        shapes[f"{at}mlp.{name}.weight"] = shape
    shapes[f"{at}input_layernorm.weight"] = shapes[f"{at}post_attention_layernorm.weight"] = (32,)
    rng = np.random.default_rng(3)
    arrays = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    write_safetensors(folder / "model.safetensors", arrays)
    return folder


def softmax(scores):
    """Rows of weights; zeros where a row sees nothing."""
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = np.nan_to_num(weights)
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny)

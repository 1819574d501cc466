"""Models of other formats, PyTorch modules and dicts of arrays as Fovea files."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _fovea
from ._arguments import json_text, whole
from ._torch import config_of_torch

if TYPE_CHECKING:
    from ._model import Model

Path = Union[str, "os.PathLike[str]"]
_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def convert(
    source: Path | Mapping[str, Any] | Any,
    output: Path | None = None,
    *,
    config: Mapping[str, Any] | Path | None = None,
    tokenizer: Path | None = None,
    type: str | None = None,
    n_threads: int = 0,
) -> Model:
    """Convert `source` and open what it becomes.

    source: a Hugging Face folder, a .safetensors, GGUF, llama2.c or Fovea file; a PyTorch module (of `torch.nn`:
        MultiheadAttention, TransformerEncoder, TransformerDecoder, Transformer; or one of transformers); or a dict of
        arrays by the names of a state dict, with its `config`. Arrays are float32, float16 or bfloat16 (ml_dtypes, or
        tensors), and are written in their type, without being widened.
    output: the file to write, replaced when the new one is whole. None: the model stays in memory; of a path it is the
        cache folder's.
    config: what config.json says, or its path; of a path or a module its own by default.
    tokenizer: a tokenizer.json, vocab.txt, vocab.json or tokenizer.bin; of a path the one beside it by default.
    type: of the weights, the source's by default: "f32", "f16", "bf16", "q8", "q6_k", "q5_k", "q4_k", "iq4_nl", "q4",
        "mxfp4", "q3_k", "q2_k", "iq4_xs", "tq2_0", "q8_128", "q5", "q4_1" or "q5_1".

    Ctrl-C ends it, and leaves no part of a file. ValueError says what of the source was expected and what it was.
    """
    from ._model import Model

    if isinstance(source, (str, os.PathLike)):
        if output is None:
            if config is not None:
                raise TypeError("config: expected an output beside it and a source that is a path, got none")
            return Model(source, type=type, tokenizer=tokenizer)
        options = _options(type, tokenizer, n_threads)
        options["source"], options["output"] = existing(source), os.fspath(output)
        if isinstance(config, (str, os.PathLike)):
            options["config"] = os.fspath(config)
        elif config is not None:
            raise TypeError("config: expected a path with a source that is a path, got a dict")
        _warn(_fovea.convert_file(options))
        return Model(output)
    if not isinstance(source, Mapping):
        config = config if config is not None else config_of_module(source)
        source = source.state_dict()
    if config is None:
        raise TypeError("config: expected what config.json says beside a dict of arrays, got None")
    native = model_of_arrays(source, config, type=type, tokenizer=tokenizer, output=output, n_threads=n_threads)
    return Model._of(native, None if output is None else os.path.abspath(os.fsdecode(output)))


def convert_adapter(source: Path, output: Path, *, base: Path, type: str | None = None, n_threads: int = 0) -> None:
    """Make a file of a low-rank adapter, for ``Model(path, adapters=[output])``.

    source: a folder as PEFT saves it, with adapter_config.json.
    output: the file to write, replaced when the new one is whole.
    base: the model's own Hugging Face folder, whose modules the adapter names.
    type: of the adapter's matrices: "f32", "f16" or "bf16"; the source's by default.
    """
    options = _options(type, None, n_threads)
    options["source"], options["output"], options["base"] = existing(source), os.fspath(output), existing(base)
    _warn(_fovea.convert_file(options))


def model_of_arrays(
    arrays: Mapping[str, Any],
    config: Mapping[str, Any] | Path,
    *,
    type: str | None = None,
    tokenizer: Path | None = None,
    output: Path | None = None,
    n_threads: int = 0,
) -> _fovea.Model:
    """Return the model of a state dict, in memory or, with `output`, of that file."""
    if not isinstance(arrays, Mapping):
        raise TypeError(f"state_dict: expected a dict of arrays, got {arrays.__class__.__name__}")
    entries = [_entry(name, array) for name, array in arrays.items()]
    options = _options(type, tokenizer, n_threads)
    with tempfile.TemporaryDirectory(prefix="fovea-") as folder:
        path = os.path.join(folder, "config.json")
        if isinstance(config, Mapping):
            text = json_text(dict(config), "config")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            shutil.copyfile(config, path)
        options["source"] = folder
        if output is not None:
            options["output"] = os.fspath(output)
        model, notes = _fovea.convert_arrays(options, entries)
    _warn(notes)
    return _fovea.Model(os.fspath(output)) if output is not None else _some(model)


def cached(path: Path, type: str | None, tokenizer: Path | None) -> str:
    """Return the Fovea file of `path`: itself, or what a source was once converted into, in the user's cache folder."""
    name = existing(path)
    if not _fovea.is_source(name) and type is None and tokenizer is None:
        return name
    options = _options(type, tokenizer, 0)
    options["source"] = name
    found, made = _fovea.cached(options)
    if made:
        print(f"note: {name} was converted into {found}, which is used from now on", file=sys.stderr)
    return found


def config_of_module(module: Any) -> dict[str, Any]:
    """Return what a config.json would say of a PyTorch module. TypeError for those that are not computed."""
    kind = module.__class__.__name__
    if hasattr(module, "config") and hasattr(module.config, "to_dict"):
        return dict(module.config.to_dict())
    if not hasattr(module, "state_dict"):
        raise TypeError(f"source: expected a path, a PyTorch module or a dict of arrays, got {kind}")
    return config_of_torch(module)


def _entry(name: str, array: Any) -> tuple[str, str, tuple[int, ...], Any]:
    """The name, type, shape and bytes of an array or tensor; a copy only where there are gaps between its elements."""
    if hasattr(array, "detach"):
        array = array.detach()
        type_name = str(array.dtype).rpartition(".")[2]
        if array.device.type != "cpu":
            raise TypeError(f"tensor {name}: expected one in the CPU's memory, got one on {array.device}")
        if type_name == "bfloat16":  # which NumPy has not
            import torch

            array = array.contiguous().view(torch.int16).numpy()
        else:
            array = array.numpy()
    else:
        array = np.asarray(array)
        type_name = str(array.dtype)
    if type_name not in _TYPES:
        raise TypeError(f"tensor {name}: expected float32, float16 or bfloat16, got {type_name}")
    shape = tuple(array.shape)
    return name, _TYPES[type_name], shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _options(type: str | None, tokenizer: Path | None, n_threads: int) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if type is not None:
        options["type"] = type
    if tokenizer is not None:
        options["tokenizer"] = existing(tokenizer)
    if n_threads:
        options["n_threads"] = whole(n_threads, "n_threads")
    return options


def existing(path: Path) -> str:
    """Return the path of what is there or in the hub's cache; else FileNotFoundError and its kin."""
    name = os.fsdecode(path)
    try:
        os.stat(name)
    except FileNotFoundError as error:
        owner, _, model = name.partition("/")
        if (found := _fovea.find_source(name)) != name:
            return found
        if not (owner and model and "/" not in model and owner[0] not in ".~") or os.path.exists(owner):
            raise
        words = f"No such file or folder; a model of the Hugging Face hub is downloaded first: hf download {name}"
        raise FileNotFoundError(error.errno, words, name) from None
    return name


def _some(model: _fovea.Model | None) -> _fovea.Model:
    if model is None:
        raise RuntimeError("model: expected one in memory, got none")
    return model


def _warn(notes: list[str]) -> None:
    for note in notes:
        warnings.warn(note, stacklevel=3)

"""The changes of a file's fields that fields.py tries, and what to say of a result."""
import contextlib
import copy
import subprocess

import numpy
from torch.nn.modules.module import register_module_parameter_registration_hook

LIMIT = 1e-3
MOST_PARAMETERS = 1 << 21
TEXTS = ["gelu", "gelu_new", "silu", "relu", "default", "linear", "full_attention"]
# Fields that all classes have, or that change no number.
COMMON = {"model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "id2label", "label2id", "problem_type",
          "return_dict", "output_hidden_states", "output_attentions", "chunk_size_feed_forward", "_name_or_path",
          "is_encoder_decoder", "use_cache", "initializer_range"}


@contextlib.contextmanager
def bounded():
    """No larger model is made within it: memory of a parameter is not touched before a module takes it."""
    n = 0

    def count(module, name, parameter):
        nonlocal n
        n += parameter.numel() if parameter is not None else 0
        if n > MOST_PARAMETERS:
            raise ValueError(f"{name}: more than {MOST_PARAMETERS} parameters")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def other_values(value, texts=TEXTS):
    """Values of the same kind, and null."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, 2 * value, 1, 0, None]
    if isinstance(value, float):
        return [2 * value + 0.25, value / 2, 0.0, None]
    if isinstance(value, str):
        return [text for text in texts if text != value] + [None]
    if isinstance(value, list):
        return [value[::-1], value[1:], [], None]
    if isinstance(value, dict):
        return [{}, None]
    return [True, 5, 0.5, "gelu"]


def changes_of(fields, prefix=(), texts=TEXTS, skip=COMMON):
    """(path of the field, its new value or nothing) of every change."""
    for name, value in fields.items():
        if not prefix and name in skip:
            continue
        path = (*prefix, name)
        yield path, ...
        for other in other_values(value, texts):
            yield path, other
        if isinstance(value, dict):
            yield from changes_of(value, path, texts)
        for inner in ("partial_rotary_factor", "factor", "attention_factor"):
            if name in ("rope_parameters", "rope_scaling") and isinstance(value, dict) and inner not in value:
                yield (*path, inner), 0.5


def changed(fields, path, value):
    result = copy.deepcopy(fields)
    inner = result
    for name in path[:-1]:
        inner = inner[name]
    if value is ...:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value
    return result


def judge(expected, compute, work, limit=LIMIT):
    """One word, and why, for what Fovea computes where that is expected."""
    try:
        got = compute()
    except subprocess.CalledProcessError as failed:
        return "refused: " + failed.stderr.strip().splitlines()[-1].removeprefix(str(work))
    if got.shape != expected.shape:
        return f"WRONG shape {got.shape}, expected {expected.shape}"
    error = float(numpy.abs(got - expected).max() / numpy.abs(expected).max())
    return "equal" if error < limit else f"WRONG by {error:.1e}"


def each_change(label, written, changes, compare_with):
    for path, value in changes:
        try:
            fields = changed(written, path, value)
        except (KeyError, TypeError):  # within an object that is not written
            continue
        yield label, path, value, lambda fovea, work, fields=fields: compare_with(fovea, fields, work)

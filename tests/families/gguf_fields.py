"""Changes of a GGUF file's keys, for fields.py: what llama.cpp makes of the file, by the library in the package xllamacpp.

It computes in a process of its own (tests/models/llama_library.py), for it aborts where it does not refuse.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy

import gguf_models
import gguf_shapes
import shapes
from changing import judge, other_values
from sweep import logits_of

LLAMA_CPP = pathlib.Path(__file__).parent.parent / "models/llama_library.py"
LIMIT = 0.02  # llama.cpp's keys and values are of float16
N_TOKENS = 24
HINTS = {"context_length", "vocab_size", "rope.scaling.finetuned", "rope.scaling.original_context_length"}
FOREIGN = {
    "FLOAT32": {"rope.scaling.factor": 2.0, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 2.0, "logit_scale": 0.5,
                "attention.scale": 0.3, "embedding_scale": 3.0, "residual_scale": 0.5, "rope.freq_base": 300.0,
                "attention.clamp_kqv": 0.3, "attention.max_alibi_bias": 8.0, "rope.freq_base_swa": 50.0,
                "expert_weights_scale": 2.0, "attention.layer_norm_epsilon": 0.1, "attention.layer_norm_rms_epsilon": 0.1,
                "rope.scaling.attn_factor": 2.0},
    "UINT32": {"attention.sliding_window": 5, "rope.dimension_count": 4, "attention.key_length": 6, "attention.value_length": 6,
               "expert_gating_func": 2, "attention.head_count_kv": 1, "leading_dense_block_count": 1,
               "no_rope_layer_interval": 2},
    "BOOL": {"attention.causal": False, "use_parallel_residual": True, "expert_weights_norm": True},
    "STRING": {"rope.scaling.type": "linear"}}


def find_library():
    """That of `./dev models`, or an installed one."""
    here = sorted((pathlib.Path(__file__).parent.parent.parent / "build/models/packages/xllamacpp").glob("xllamacpp*.so"))
    spec = None if here else importlib.util.find_spec("xllamacpp")
    return here[0] if here else next(pathlib.Path(spec.origin).parent.glob("xllamacpp*.so"), None) if spec else None


class Subject:
    """A random model as GGUF files whose keys are changed: a change is (key, its new value or nothing, the type of a new key)."""

    def __init__(self, name, library, work):
        self.twin = gguf_shapes.TWINS.get(name)
        self.name, self.library, self.folder = name, library, work / "model"
        self.tokens, self.logits = shapes.write_model(self.twin or name, gguf_shapes.SHAPES[name][0], self.folder, seed=7,
                                                      n_tokens=N_TOKENS)
        self.written = self.write(work / "plain.gguf")

    def write(self, path, change=None, for_llama_cpp=False):
        """Writes a file; returns its keys."""
        found = {}

        def more(writer, config):
            keys = writer.kv_data[0]
            if change:
                key, value, kind = change
                old = keys.pop(key, None)
                if value is not ...:
                    kept = old.type if old else gguf.GGUFValueType[kind]
                    keys[key] = gguf.gguf_writer.GGUFValue(value, kept, old.sub_type if old else None)
            if for_llama_cpp:
                writer.add_tokenizer_model("none")
                writer.add_vocab_size(config["vocab_size"])
            found.update({key: each.value for key, each in keys.items()})

        gguf_models.write_gguf(self.folder, path, architecture=self.name if self.twin else None, more=more)
        return found

    def expect(self, work, change=None):
        """llama.cpp's logits, none of what cannot be written or what it refuses."""
        try:
            self.write(work / "model.gguf", change, for_llama_cpp=True)
            command = [sys.executable, LLAMA_CPP, self.library, work / "model.gguf", json.dumps(self.tokens)]
            subprocess.run([*command, work / "expected.npy"], check=True, capture_output=True, timeout=60)
            expected = numpy.load(work / "expected.npy")
        except Exception:  # of many kinds
            return None
        return expected if numpy.isfinite(expected).all() else None

    def compare(self, fovea, work, change):
        expected, plain = self.expect(work, change), work / "plain.gguf"
        if expected is None:
            return "skipped"
        self.write(plain, change)
        return judge(expected, lambda: logits_of(fovea, plain, self.tokens, work), work, LIMIT)

    def changes(self):
        architecture = self.written["general.architecture"] + "."
        for key, value in self.written.items():
            if key.startswith(architecture) and key.removeprefix(architecture) not in HINTS:
                yield from ((key, each, None) for each in (..., *other_values(value)) if each is not None)
        for kind, values in FOREIGN.items():
            foreign = {architecture + short: value for short, value in values.items()}
            yield from ((key, value, kind) for key, value in foreign.items() if key not in self.written)


def changes(name):
    """(label, path, value, what compares it) of a shape's file; nothing where llama.cpp computes something else than
    transformers: it leaves some windows and epsilons out.
    """
    library = find_library()
    if not library:
        return print("xllamacpp is wanted (./dev models brings it): no GGUF file was compared")
    with tempfile.TemporaryDirectory() as scratch:
        subject = Subject(name, library, pathlib.Path(scratch))
        expected = subject.expect(pathlib.Path(scratch))
        if expected is None or judge(expected, lambda: subject.logits, pathlib.Path(scratch), LIMIT) != "equal":
            return
        for change in subject.changes():
            yield "", change[:1], change[1], lambda fovea, work, change=change: subject.compare(fovea, work, change)

#!/usr/bin/env python3
"""Writes docs/families.md: which models convert reads, from its sources and what it says of golden models.

    make_table.py FOVEA     FOVEA is the command line's path

Needs transformers and gguf, for the names that there are besides.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import gguf
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
HEAD = """# Families

`fovea convert` reads the models on this page. `tests/families/make_table.py` writes it from what the converter says of itself and of
the golden models: small models with known results in `tests/golden`.

`./dev families` compares random models of each family with Hugging Face's transformers:

- In f32 the logits differ by at most 1e-4 of the largest logit.
- In bf16 and q8 the measure is the distance between the two vectors of logits after a token, as a share of the vector's length.
  In every family its median over a model's tokens is below 4 % (bf16) and 13 % (q8). The largest median of any model is 3.6 % and
  12 %, the middle one 0.6 % and 2.3 %. Random weights are a hard case, since nothing in them is redundant.
- In models with experts, rounding may change which expert is chosen. No bound holds for the logits of such a token.

A checkpoint with something beyond its family is refused by the field's name: an option that changes what is computed, or a
quantization that [format.md](format.md#folders) does not list. The table shows the layers of golden models; numbers such as widths
are theirs. Where it says nothing of norms, each part has an RMS norm before it.

| model_type | a golden model's layer |
| --- | --- |
"""


def refused_name(fovea, source, field, name):
    """Whether converting a source that says nothing but that name is refused for it."""
    out = subprocess.run([fovea, "convert", source, "-o", source.parent / "out"], capture_output=True, text=True).stderr
    if not re.search(": expected .*, got", out):
        raise ValueError(f"{name}: expected a refusal, got {out}")
    return f": {field}: expected" in out


def written(name):
    return (ROOT / "convert" / name).read_text()


def model_types(fovea, work):
    """Those in the sources, in the families' order, each of which the converter must know."""
    found = {}
    for path in (ROOT / "convert" / "families").glob("*.cpp"):
        text = path.read_text()
        types = {name: re.findall(r'\{\s*"([\w-]+)"(?:,|\})', body)
                 for name, body in re.findall(r"ModelType (k\w+)\[\] = \{(.*?)\};", text, re.S)}
        for family, array in re.findall(r"const Family families::(\w+) =.*?\b(k[A-Z]\w*)", text, re.S):
            found[family] = types.get(array, [])
    names = [name for family in re.findall(r"FOVEA_FAMILY\((\w+)\)", written("families/families.inc")) for name in found[family]]
    (work / "model").mkdir()
    (work / "model" / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    for name in ["none", *names, "whisper"]:
        (work / "model" / "config.json").write_text(json.dumps({"model_type": name}))
        if refused_name(fovea, work / "model", "model_type", name) != (name == "none"):
            raise ValueError(f"{name}: expected a type that is read")
    return [*names, "whisper"]


def gguf_architectures(fovea, work):
    names = re.findall(r'\.architecture = "([^"]+)"', written("gguf/architectures.cpp"))
    for name in ["none", *names]:
        write_empty_gguf(work / "empty.gguf", name)
        if refused_name(fovea, work / "empty.gguf", "general.architecture", name) != (name == "none"):
            raise ValueError(f"{name}: expected an architecture that is read")
    return names


def write_empty_gguf(path, name):
    writer = gguf.GGUFWriter(path, name)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def layer_of(fovea, folder, work):
    """Attention, feed-forward and norm of the first kind of layer, in inspect's words."""
    subprocess.run([fovea, "convert", folder, "-o", work / "golden.fovea"], check=True, capture_output=True)
    text = subprocess.run([fovea, "inspect", work / "golden.fovea"], check=True, capture_output=True, text=True).stdout
    parts = [found.group(1) if (found := re.search(rf"^    {name:14}(.*)$", text, re.M)) else "none"
             for name in ("attention", "feed-forward", "norm")]
    attention = re.sub(r"^.* of \d+, ", "", parts[0])
    if recurrent := re.search(r"^    recurrent     (?!in place|beside|behind)([^,\n]*)", text, re.M):
        place = re.search(r"^    recurrent    ( (beside|behind) attention.*)$", text, re.M)
        attention = recurrent.group(1) + ("" if parts[0] == "none" else
                                          (place.group(1) if place else "; attention") + ": " + attention)
    if experts := re.search(r"^ +experts +(.*)$", text, re.M):
        attention += "; experts, " + re.sub(r"shared of [0-9,]+", "shared", experts.group(1))
    feed_forward = "" if parts[1] == "none" else "; " + re.sub(r"^[0-9,]+ wide, ", "", parts[1])
    norm = re.sub(r"^RMS norm before each part(, )?", "", re.sub(r", epsilon [^,]*", "", parts[2]))
    return f"{attention}{feed_forward}{norm and '; '}{norm}"


def main():
    fovea = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        types = model_types(fovea, work)
        architectures = gguf_architectures(fovea, work)
        text, rows = HEAD, {}  # families whose layers are described alike share a row
        for name in types:
            goldens = [GOLDEN / "families" / name, GOLDEN / "pairs" / name, GOLDEN / "models" / name, *sorted((GOLDEN / "models").glob(name + "_*"))]
            golden = next((g for g in goldens if g.exists()), None)
            both = "an encoder of sound, and a decoder with a memory; GELU, biases; layer norm before each part"
            layer = layer_of(fovea, golden, work) if golden else both if name == "whisper" else "an encoder"
            if golden and golden.parent.name == "pairs":
                layer = "an encoder, and a decoder with a memory; " + layer
            rows.setdefault(layer, []).append(name)
        text += "".join(f"| {', '.join(names)} | {layer} |\n" for layer, names in rows.items())
    # The list has no refusal of its own.
    source = (ROOT / "convert" / "sources" / "text_part.cpp").read_text()
    wholes = re.findall(r'"(\w+)"', re.search(r"kModelTypes\[\] = \{(.*?)\}", source, re.S).group(1))
    others = sorted(set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - set(types) - set(wholes))
    known = sorted(set(gguf.MODEL_ARCH_NAMES.values()) - set(architectures))
    text += f"""
These models also take images or sound. Only their text model is read; a note says that the rest is left out: {", ".join(wholes)}.

From GGUF files: {", ".join(architectures)}.

## What is refused

Language models of transformers that `convert` does not read: {", ".join(others)}.

Architectures of the `gguf` package that `convert` does not read: {", ".join(known)}.
"""
    (ROOT / "docs" / "families.md").write_text(text)


if __name__ == "__main__":
    main()

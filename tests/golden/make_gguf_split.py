#!/usr/bin/env python3
"""Makes tests/golden/gguf_split: files of gguf/ in several, of five tensors at most, as the `gguf` package splits models.

model-0000K-of-0000N.gguf is llama_linear.gguf; bare-0000K-of-0000N.gguf is qwen2_q4_0.gguf, the first part without a
tensor. Needs gguf.
"""
import pathlib
import shutil

import gguf

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "gguf_split"


def value(field):
    if field.types[0] != gguf.GGUFValueType.ARRAY:
        return field.contents(), field.types[0], None
    return field.contents(), gguf.GGUFValueType.ARRAY, field.types[1]


def split(source, name, small_first):
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field("general.architecture").contents()
    writer = gguf.GGUFWriter(FOLDER / (name + ".gguf"), architecture, split_max_tensors=5, small_first_shard=small_first)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        content, kind, element = value(field)
        writer.add_key_value(key, content, kind, element)
    for tensor in reader.tensors:
        shape = tensor.data.shape  # of bytes, where blocks are quantized
        writer.add_tensor(tensor.name, tensor.data, raw_shape=shape, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir()
split(HERE / "gguf/llama_linear.gguf", "model", False)
split(HERE / "gguf/qwen2_q4_0.gguf", "bare", True)

#!/usr/bin/env python3
"""Makes tests/golden/pickles: checkpoints as torch.save writes them, and files that look like one and are none.

`refused` is written byte by byte, with nothing but Python's own library. The rest needs torch, whose files differ from version to
version in nothing that is read: `weights.pt` has the tensors of encoders/bert_sentence, `turned_old.pt` the same as parameters
whose columns lie one after the other, written as before PyTorch 1.6.
"""
import io
import json
import pathlib
import struct
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "pickles"


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def number(n):
    return b"\x8a\x08" + struct.pack("<q", n)


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def storage(key="0", kind="FloatStorage", n=4, module="torch"):
    return b"(" + text("storage") + name(module, kind) + text(key) + text("cpu") + number(n) + b"tQ"


def sizes(*n):
    return b"(" + b"".join(number(i) for i in n) + b"t"


ORDERED = name("collections", "OrderedDict") + b")R"


def tensor(stored=None, offset=0, shape=(4,), strides=(1,), function=name("torch._utils", "_rebuild_tensor_v2")):
    return (function + b"(" + (stored or storage()) + number(offset) + sizes(*shape) + sizes(*strides) + b"\x89" + ORDERED +
            b"tR")


def state(*items):
    return b"\x80\x02}(" + b"".join(items) + b"u."


def archive(pickle, data=b"\0" * 16, method=zipfile.ZIP_STORED, extra=(), byteorder=b"little"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        z.writestr(zipfile.ZipInfo("archive/data.pkl"), pickle, method)
        z.writestr(zipfile.ZipInfo("archive/byteorder"), byteorder, method)
        z.writestr(zipfile.ZipInfo("archive/data/0"), data, method)
        for entry, content in extra:
            z.writestr(zipfile.ZipInfo(entry), content, method)
    return out.getvalue()


def patched(data, at, new):
    return data[:at] + new + data[at + len(new):]


OLD = (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + b"\x80\x02M\xe9\x03." + b"\x80\x02}" + text("little_endian") + b"\x88s.")


def attacks():
    """Name, the file, and words that its refusal must have."""
    good = state(text("w"), tensor())
    whole = archive(good)
    central = whole.index(b"PK\1\2")
    end = whole.rindex(b"PK\5\6")
    yield "system", archive(b"\x80\x02" + name("os", "system") + text("id") + b"\x85R."), "os.system"
    yield "posix_system", archive(b"\x80\x02" + name("posix", "system") + text("id") + b"\x85R."), "posix.system"
    yield "eval", archive(state(text("w"), name("builtins", "eval") + text("1") + b"\x85R")), "builtins.eval"
    yield "stack_global", archive(b"\x80\x04\x8c\x05posix\x8c\x06system\x93" + text("id") + b"\x85R."), "posix.system"
    yield "getattr_chain", archive(state(text("w"), name("builtins", "getattr"))), "builtins.getattr"
    yield "dotted_storage", archive(state(text("w"), name("torch", "hub.x.Storage"))), "torch.hub.x.Storage"
    yield ("parameter", archive(state(text("w"), tensor(function=name("torch._utils", "_rebuild_parameter")))),
           "a tensor as a parameter")
    yield "instance", archive(b"\x80\x02(" + text("id") + b"ios\nsystem\n."), "instructions that make tensors"
    yield "object", archive(b"\x80\x02(" + name("torch", "FloatStorage") + b"o."), "instructions that make tensors"
    yield "new_object", archive(b"\x80\x02" + name("torch", "FloatStorage") + b")\x81."), "instructions that make tensors"
    yield "extension", archive(b"\x80\x02\x82\x01."), "instructions that make tensors"
    yield "persistent_text", archive(b"\x80\x02Pid\n."), "instructions that make tensors"
    yield "persistent_other", archive(state(text("w"), b"(" + text("module") + text("x") + b"tQ")), "a storage as what is kept"
    yield "call_storage", archive(state(text("w"), name("torch", "FloatStorage") + b")R")), "a tensor or an empty OrderedDict"
    yield "build_tensor", archive(state(text("w"), tensor() + b"}b")), "attributes of a dictionary"
    yield "outside", archive(state(text("w"), tensor(storage("../../etc/passwd")))), "its storage"
    yield "huge_storage", archive(state(text("w"), tensor(storage(n=1 << 62)))), "a storage of"
    yield "huge_shape", archive(state(text("w"), tensor(shape=(1 << 40, 1 << 40), strides=(1 << 40, 1)))), "below 2^61"
    yield "far_offset", archive(state(text("w"), tensor(offset=3))), "within its storage"
    yield "negative_offset", archive(state(text("w"), tensor(offset=-1))), "an offset of tensor w"
    yield "negative_shape", archive(state(text("w"), tensor(shape=(-4,)))), "whole numbers"
    yield "far_strides", archive(state(text("w"), tensor(shape=(2, 2), strides=(1, 3)))), "within its storage"
    yield "huge_strides", archive(state(text("w"), tensor(shape=(2, 2), strides=(1, 1 << 62)))), "strides below 2^61"
    yield "zero_strides", archive(state(text("w"), tensor(shape=(1 << 20,), strides=(0,)))), "within its storage"
    yield "odd_type", archive(state(text("w"), tensor(storage(kind="QInt8Storage")))), "QInt8Storage"
    yield "unknown_memo", archive(b"\x80\x02h\x07."), "a value remembered before"
    yield "empty_stack", archive(b"\x80\x02R."), "a value on the stack"
    yield "no_mark", archive(b"\x80\x02}" + text("w") + tensor() + b"u."), "attributes"  # replaced below
    yield "odd_items", archive(b"\x80\x02}(" + text("w") + b"u."), "a value for each key"
    yield "long_text", archive(b"\x80\x02X\xff\xff\xff\xff."), "a pickle with an end"
    yield "no_end", archive(good[:-1]), "a pickle with an end"
    yield "number_name", archive(state(number(1), tensor())), "a text as a tensor's name"
    yield "not_a_tensor", archive(state(text("epoch"), number(3))), "a tensor named epoch"
    yield "same_name", archive(state(text("w"), tensor(), text("w"), tensor())), "got twice"
    yield "list", archive(b"\x80\x02]."), "a dictionary of tensors"
    yield "itself", archive(b"\x80\x02}q\x00" + text("w") + b"h\x00s."), "a tensor named w"
    yield "protocol", archive(b"\x80\x07}."), "protocol 2 to 5"
    yield "big_endian", archive(good, byteorder=b"big"), "byteorder"
    yield "compressed", archive(good, b"\0" * 4096, zipfile.ZIP_DEFLATED), "compressed"
    yield "encrypted", patched(whole, central + 8, b"\1\0"), "encrypted"
    yield "twice", archive(good, extra=[("archive/data/0", b"\1" * 16)]), "twice"
    yield "beyond", patched(whole, central + 42, struct.pack("<I", len(whole) - 4)), "beyond"
    yield "far_directory", patched(whole, end + 16, struct.pack("<I", 0xfffffff0)), "beyond its end"
    yield "many_entries", patched(whole, end + 10, b"\xff\xff"), "an entry of its directory"
    yield "no_directory", whole[:end], "a directory at its end"
    yield "no_pickle", archive(good).replace(b"data.pkl", b"data.pkx"), "an entry data.pkl"
    yield "pickle_alone", good, "another pickle"
    yield "old_cut", OLD + good + b"\x80\x02]" + text("0") + b"a." + struct.pack("<q", 4) + b"\0" * 15, "expected 4 elements"
    yield "old_other", OLD + good + b"\x80\x02]" + text("1") + b"a." + struct.pack("<q", 4), "a tensor of storage 1"
    yield "old_big_endian", OLD.replace(b"\x88", b"\x89"), "little_endian"
    yield "within", archive(state(text("w"), b"}q\x00" + text("v") + b"h\x00s")), "a tensor named w.v"
    yield "deep", archive(b"\x80\x02" + b"".join(b"}" + text("w") for _ in range(20)) + tensor() + b"s" * 20 + b"."), "w.w"
    yield "no_archive", b"\0" * 100, "a directory at its end"


def make_refused():
    folder = FOLDER / "refused"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    wanted = {}
    for what, data, words in attacks():
        if what == "no_mark":
            data, words = archive(b"\x80\x02" + text("w") + b"u."), "a mark on the stack"
        (folder / what).write_bytes(data)
        wanted[what] = words
    (FOLDER / "refused.json").write_text(json.dumps(wanted, indent=1) + "\n")


def make_weights():
    import torch
    from safetensors.torch import load_file
    plain = load_file(HERE / "encoders/bert_sentence/model.safetensors")
    turned = {name: torch.nn.Parameter(t.t().contiguous().t() if t.dim() == 2 else t) for name, t in plain.items()}
    nested = {"sizes": {"n": 3, "flag": True}, "state": {"w": torch.arange(4.0)}}
    torch.save(plain, FOLDER / "weights.pt")
    torch.save(turned, FOLDER / "turned_old.pt", _use_new_zipfile_serialization=False)
    torch.save(nested, FOLDER / "nested.pt")
    torch.save(nested, FOLDER / "nested_old.pt", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    make_refused()
    if "--refused" not in sys.argv:
        make_weights()

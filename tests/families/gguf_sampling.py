"""Changes of a GGUF file's keys general.sampling.*, for fields.py: the settings that llama.cpp's server says it samples with.

    gguf_sampling.py PACKAGES MODEL     prints them; PACKAGES has xllamacpp. In a process of its own, for it may abort.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

PLACE = "general.sampling."
WRITTEN = {"temp": 0.7, "top_k": 30, "top_p": 0.9, "min_p": 0.02, "penalty_last_n": 32, "penalty_repeat": 1.25,
           "xtc_probability": 0.25, "xtc_threshold": 0.125, "mirostat": 2, "mirostat_tau": 4.0, "mirostat_eta": 0.25}
FOREIGN = {"typical_p": 0.5, "seed": 3, "sequence": "k;p;t", "dry_multiplier": 0.5, "top_n_sigma": 1.0}
# As the server and Fovea's files say them.
SAID = {"temp": ("temperature", "temperature"), "penalty_last_n": ("repeat_last_n", "repeat_last_n"),
        "penalty_repeat": ("repeat_penalty", "repeat_penalty"), **{name: (name, name) for name in (
            "top_k", "top_p", "min_p", "xtc_probability", "xtc_threshold", "mirostat", "mirostat_tau", "mirostat_eta")}}


def settings_of(packages, path):
    """What a server of llama.cpp says of its own."""
    sys.path.insert(0, packages)
    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.warmup, params.endpoint_props = str(path), 32, False, True
    server = xllamacpp.Server(params)
    with urllib.request.urlopen(server.listening_address + "/props") as answer:
        return json.load(answer)["default_generation_settings"]["params"]


def changes(_):
    """(label, path, value, what compares it); the first changes nothing."""
    from changing import changes_of
    from gguf_fields import find_library
    library = find_library()
    if not library:
        return print("xllamacpp is wanted (./dev models brings it): no GGUF file was compared")
    with tempfile.TemporaryDirectory() as scratch:
        import shapes
        folder = pathlib.Path(scratch) / "model"
        shapes.write_model("llama", shapes.SHAPES["llama"][0], folder, seed=7)
        for path, value in [(("temp",), 0.7), *changes_of(WRITTEN), *(((name,), value) for name, value in FOREIGN.items())]:
            if value is not None:  # no file has a key of nothing
                yield "", path, value, lambda fovea, work, change=(path[0], value): compare(fovea, library, folder, change, work)


def write(folder, path, settings, for_llama_cpp):
    import gguf
    from gguf_models import write_gguf

    def more(writer, config):
        for name, value in settings.items():
            add = {str: writer.add_string, int: writer.add_int32, float: writer.add_float32, bool: writer.add_bool}[type(value)]
            add(PLACE + name, value)
        if for_llama_cpp:
            n = config["vocab_size"]
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre("default")
            writer.add_token_list([*(f"<{i}>" if i < 3 else chr(94 + i) for i in range(n - 1)), "ab"])
            writer.add_token_types([gguf.TokenType.CONTROL if i < 3 else gguf.TokenType.NORMAL for i in range(n)])
            writer.add_token_merges(["a b"])
            writer.add_bos_token_id(1)
            writer.add_eos_token_id(2)

    write_gguf(folder, path, more=more)


def compare(fovea, library, folder, change, work):
    """Kept as llama.cpp heeds them, or a note names what is not."""
    name, value = change
    settings = {key: each for key, each in (WRITTEN | {name: value}).items() if each is not ...}
    plain = work / "plain.gguf"
    try:
        write(folder, work / "model.gguf", settings, for_llama_cpp=True)
        said = json.loads(subprocess.run([sys.executable, __file__, library.parent.parent, work / "model.gguf"], check=True,
                                         capture_output=True, text=True, timeout=60).stdout.splitlines()[-1])
    except Exception:  # what it refuses, or where it aborts
        return "skipped"
    write(folder, plain, settings, for_llama_cpp=False)
    made = subprocess.run([fovea, "convert", plain, "-o", work / "m.fovea"], capture_output=True, text=True)
    if PLACE + name in made.stderr:
        return "refused: " + made.stderr.strip().splitlines()[-1].removeprefix(str(work))
    if made.returncode:
        return "WRONG words: " + made.stderr.strip()
    kept = json.loads(subprocess.run([fovea, "inspect", work / "m.fovea", "--json"], check=True, capture_output=True,
                                     text=True).stdout).get("sampling", {})
    for key in settings:
        ours, theirs = SAID.get(key, (key, None))
        if theirs is None:  # no key of llama.cpp's, which leaves such out
            kept.pop(ours, None)
            continue
        expected, got = said[theirs], kept.pop(ours, None)
        if got is None or abs(got - max(expected, 0) if key == "top_k" else got - expected) > 1e-6:
            return f"WRONG: {key} is {got}, llama.cpp's {expected}"
    return f"WRONG: {kept} more" if kept else "equal"


if __name__ == "__main__":
    print(json.dumps(settings_of(*sys.argv[1:3])), flush=True)
    import os
    os._exit(0)  # no thread of the server's is waited for

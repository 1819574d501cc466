"""What gguf_models.py writes of a layer that predicts the token behind the next: a layer behind the model's last."""
from safetensors import safe_open

QWEN = {"layers.0.": "", "fc.": "eh_proj.", "pre_fc_norm_embedding.": "enorm.", "pre_fc_norm_hidden.": "hnorm.",
        "norm.": "shared_head.norm."}
OWN = ("eh_proj", "enorm", "hnorm", "embed_tokens", "shared_head.norm", "shared_head.head")


def plain(name, n):
    """Qwen's names of such a layer as the others have them, behind the n of the model."""
    for start, instead in QWEN.items():
        if name.startswith("mtp." + start):
            return f"model.layers.{n}.{instead}{name.removeprefix('mtp.' + start)}"
    return name


def own(name, n):
    """The file's name of what such a layer has beside a block; None: it is none of those."""
    for part in OWN:
        if name == f"model.layers.{n}.{part}.weight":
            return f"blk.{n}.nextn.{part.replace('.', '_')}.weight"
    return None


def n_layers(folder, n):
    """How many such layers the folder has: one or none."""
    with safe_open(folder / "model.safetensors", "pt") as file:
        return int(any(plain(name, n) == f"model.layers.{n}.eh_proj.weight" for name in file.keys()))

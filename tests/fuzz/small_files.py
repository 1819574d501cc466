"""What the makers of small seeds share: where files go, and how JSON is written."""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"


out = HERE / "small"


def write(target, name, data):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

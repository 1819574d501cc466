"""Vectors of every line of a file, in parts that a later run goes on with: python bulk_embed.py MODEL FILE FOLDER.

ray_embed.py and spark_embed.py do the same with the workers of a cluster, whose machines share the file and the folder.
Part after part, as numbered, the vectors are those of one process, bit for bit.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fovea

PART_LINES = 4096


class Part(NamedTuple):
    """Bytes of the file that become one part."""

    number: int
    begin: int
    end: int


def missing_parts(model: str, source: str, folder: str) -> list[Part]:
    """Return the parts that the folder has not. ValueError where it has those of another model or file."""
    parts, crc, begin, n_lines = [], 0, 0, 0
    with open(source, "rb") as file:
        for line in file:
            crc, n_lines = zlib.crc32(line, crc), n_lines + 1
            if n_lines % PART_LINES == 0:
                parts.append(Part(len(parts), begin, file.tell()))
                begin = file.tell()
        if begin < file.tell():
            parts.append(Part(len(parts), begin, file.tell()))
    about = {"model": fovea.Model(model).config["fingerprint"], "crc": crc, "lines": n_lines, "part": PART_LINES}
    path = Path(folder, "about.json")
    if path.exists() and json.loads(path.read_text()) != about:
        raise ValueError(f"{folder}: expected parts of {model} and {source}, got those of others")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".json~")
        unfinished.write_text(json.dumps(about))
        unfinished.replace(path)  # whole or not there, whenever this is killed
    return [part for part in parts if not part_path(folder, part.number).exists()]


def part_path(folder: str, number: int) -> Path:
    """Return where a part is: an array [n_lines, width]."""
    return Path(folder, f"part-{number:06}.npy")


@lru_cache(maxsize=1)
def opened(model: str) -> fovea.Model:
    """Return this worker's model. Its bytes are mapped, so workers of one machine share them."""
    return fovea.Model(model, n_threads=1)


def write_part(model: str, source: str, folder: str, part: Any) -> int:
    """Embed a part's lines; the file appears when it is whole. Return how many lines there are."""
    with open(source, "rb") as file:
        file.seek(part.begin)
        text = file.read(part.end - part.begin).decode(errors="replace")
    lines = text.removesuffix("\n").split("\n")
    path = part_path(folder, part.number)
    unfinished = path.with_suffix(f".{os.getpid()}.npy~")
    with open(unfinished, "wb") as file:
        np.save(file, opened(model).encode(lines, normalize_embeddings=True))
    unfinished.replace(path)
    return len(lines)


if __name__ == "__main__":
    for part in missing_parts(*sys.argv[1:]):
        print(f"{write_part(*sys.argv[1:], part)} texts")

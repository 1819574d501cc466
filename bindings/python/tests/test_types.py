"""What a type checker knows of the package in other people's code."""

import subprocess
import sys

import pytest

# Each expression has a type: --disallow-any-expr refuses Any wherever it comes from.
KNOWN = """
import fovea

with fovea.Model("m.fovea", n_threads=2) as model:
    ids: list[int] = model.tokenize("a text", parse_special=True)
    text: str = model.generate("a text", max_new_tokens=8)
    for piece in model.stream("a text"):
        text += piece.upper()
    shape: tuple[int, ...] = model.encode(["a", "b"]).shape
    shape += model.logits(ids).shape + model.encode_query("a").shape + model.encode_document("a").shape
    rows: int = len(model.encode_tokens(["a"])[0]) + model.encode_tokens("a").ndim + model.head_logits("a").ndim
    best: fovea.Ranked = model.rank("query", ["a", "b"], top=1)[0]
    words: str = best.document + str(best.score + best.number)
    size: int = model.plan(max_kv_len=64).arena_bytes
    longest: int = model.max_seq_length
    session = model.session(max_kv_len=64)
    n: int = session.forward(ids).ndim + session.kv_len
print(text, shape, rows, words, size, longest, n)
"""


@pytest.mark.parametrize(
    ("before", "after", "wrong"), [("", "", ""), ("ids: list[int]", "ids: list[str]", "list[str]")]
)
def test_types_are_known(tmp_path, before, after, wrong):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(KNOWN.replace(before, after) if before else KNOWN)
    command = [sys.executable, "-m", "mypy", "--strict", "--disallow-any-expr", "--cache-dir", str(tmp_path), "user.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode != 0) == bool(wrong), ran.stdout
    assert wrong in ran.stdout

"""Bulk work on Ray and Spark: the vectors of one process bit for bit, and runs that go on where one was killed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DEMO, ROOT, write_bert

import fovea

EXAMPLES = ROOT / "examples" / "python"
N_TEXTS = int(os.environ.get("FOVEA_BULK_TEXTS", "9000"))


def run(script, *arguments, check=True):
    env = {**os.environ, "PYTHONPATH": str(Path(fovea.__file__).parents[1]), "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    command = [sys.executable, EXAMPLES / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check, env=env, timeout=560)


def vectors(folder):
    return np.concatenate([np.load(path) for path in sorted(folder.glob("part-*.npy"))])


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Lines of every length, some of them empty or no text at all."""
    rng = np.random.default_rng(5)
    words = ["a", "lamp", "the", "garden", "unaffable", "é", "東京", "x1", "?!"]
    lines = [" ".join(rng.choice(words, rng.integers(0, 40))).encode() for _ in range(N_TEXTS)]
    lines[7], lines[8] = b"\xff\xfe is no text", b"a\rb\x0bc"
    path = tmp_path_factory.mktemp("bulk") / "texts"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("bulk-bert"))


@pytest.fixture(scope="module")
def expected(source, texts):
    lines = texts.read_bytes().decode(errors="replace").split("\n")[:-1]
    return fovea.Model(source).encode(lines, normalize_embeddings=True)


def needs(script):
    if script == "ray_embed.py":
        pytest.importorskip("ray")
    elif script == "spark_embed.py":
        pytest.importorskip("pyspark")
        pytest.importorskip("pyarrow")
        if not shutil.which("java") and "JAVA_HOME" not in os.environ:
            pytest.skip("Spark wants Java: default-jre-headless")


@pytest.mark.parametrize("script", ["bulk_embed.py", "ray_embed.py", "spark_embed.py"])
def test_vectors_are_those_of_one_process_and_a_run_goes_on(script, source, texts, expected, tmp_path):
    needs(script)
    workers = [] if script == "bulk_embed.py" else ["2"]
    run(script, source, texts, tmp_path, *workers)
    assert vectors(tmp_path).tobytes() == expected.tobytes()
    parts = sorted(tmp_path.glob("part-*.npy"))
    assert len(parts) == -(-N_TEXTS // 4096)
    # As a run that was killed leaves it: one part whole, one unfinished, one not begun.
    (tmp_path / "part-000001.npy").rename(tmp_path / "part-000001.99.npy~")
    parts[-1].unlink()
    kept = parts[0].stat().st_mtime_ns
    run(script, source, texts, tmp_path, *workers)
    assert vectors(tmp_path).tobytes() == expected.tobytes()
    assert parts[0].stat().st_mtime_ns == kept


def test_parts_of_another_file_or_model_are_refused(source, texts, tmp_path):
    run("bulk_embed.py", source, texts, tmp_path / "out")
    other = tmp_path / "other"
    other.write_text("another file\n")
    for arguments in ((source, other, tmp_path / "out"), (DEMO, texts, tmp_path / "out")):
        refused = run("bulk_embed.py", *arguments, check=False)
        assert refused.returncode == 1
        assert "those of others" in refused.stderr
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    run("bulk_embed.py", source, empty, tmp_path / "none")
    assert not list((tmp_path / "none").glob("part-*"))

"""Bulk work on Ray and Spark: the vectors of one process bit for bit, and runs that go on where one was killed."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import DEMO, ROOT, wanted, write_bert

import fovea

EXAMPLES = ROOT / "examples" / "python"
# FOVEA_BULK_TEXTS=1000000 pytest -rP -k killed bindings/python/tests/test_bulk.py: a larger model too, and the figures.
N_TEXTS = int(os.environ.get("FOVEA_BULK_TEXTS", "9000"))
MANY = "FOVEA_BULK_TEXTS" in os.environ
PART_LINES = 4096
N_PARTS = -(-N_TEXTS // PART_LINES)


# Ray starts a dozen processes, which take half a minute of CPU time, and minutes on a machine that is busy. What it
# gives up by the clock is allowed an hour, where it may be set, and there is no other clock here.
PATIENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_server_request_timeout_seconds": "3600",
    "RAY_gcs_server_port_wait_time_s": "600",
    "RAY_worker_register_timeout_seconds": "3600",
}


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(fovea.__file__).parents[1]), **PATIENT}


def command_of(script, *arguments):
    return [sys.executable, EXAMPLES / script, *arguments]


def run(script, *arguments, check=True):
    ran = subprocess.run(command_of(script, *arguments), capture_output=True, text=True, env=environment())
    assert ran.returncode == 0 or not check, ran.stderr[-4000:]
    return ran


def run_cluster(script, *arguments):
    """Run it again where Ray has not started within the half minute that it allows itself, whatever is set."""
    for _ in range(5):
        ran = run(script, *arguments, check=False)
        if "timed out during startup" not in ran.stderr:
            break
    else:
        pytest.skip("Ray did not start: it allows itself 30 seconds, and other work took them five times")
    assert ran.returncode == 0, ran.stderr[-4000:]


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
    larger = {"d_model": 128, "n_ids": 30522} if MANY else {}
    return write_bert(tmp_path_factory.mktemp("bulk-bert"), **larger)


@pytest.fixture(scope="module")
def expected(source, texts):
    lines = texts.read_bytes().decode(errors="replace").split("\n")[:-1]
    return fovea.Model(source).encode(lines, normalize_embeddings=True)


def needs(script):
    if script == "ray_embed.py":
        wanted("ray")
    elif script == "spark_embed.py":
        wanted("pyspark")
        wanted("pyarrow")
        if not shutil.which("java") and "JAVA_HOME" not in os.environ:
            missing = pytest.fail if os.environ.get("CI") else pytest.skip
            missing("Spark wants Java: default-jre-headless")


def leave_as_killed(folder):
    """Leave of a whole run what one that was killed leaves: one part whole, one unfinished, one not begun."""
    parts = sorted(folder.glob("part-*.npy"))
    assert len(parts) == N_PARTS
    parts[1].rename(parts[1].with_suffix(".99.npy~"))
    parts[-1].unlink()
    return parts[0]


def test_vectors_are_those_of_one_process_and_a_run_goes_on(source, texts, expected, tmp_path):
    run("bulk_embed.py", source, texts, tmp_path)
    assert vectors(tmp_path).tobytes() == expected.tobytes()
    kept = leave_as_killed(tmp_path)
    written = kept.stat().st_mtime_ns
    run("bulk_embed.py", source, texts, tmp_path)
    assert vectors(tmp_path).tobytes() == expected.tobytes()
    assert kept.stat().st_mtime_ns == written


@pytest.mark.parametrize("script", ["ray_embed.py", "spark_embed.py"])
def test_workers_go_on_where_a_run_was_killed(script, source, texts, expected, tmp_path):
    """One start of Ray and of Spark each, for that is what takes time: two workers write what one process has not."""
    needs(script)
    run("bulk_embed.py", source, texts, tmp_path)
    kept = leave_as_killed(tmp_path)
    written = kept.stat().st_mtime_ns
    run_cluster(script, source, texts, tmp_path, "2")
    assert vectors(tmp_path).tobytes() == expected.tobytes()
    assert kept.stat().st_mtime_ns == written


def users_of(file):
    """Kilobytes of each other process that maps the file: all it has in memory, what is the file's of it, its share."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.name == str(os.getpid()) or file not in (folder / "maps").read_text():
                continue
            mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", (folder / "smaps").read_text(), flags=re.MULTILINE)
        except OSError:  # ended meanwhile, or somebody else's
            continue
        sizes = [
            (file in one, *(int(re.search(rf"^{name}: *(\d+)", one, re.MULTILINE)[1]) for name in ("Rss", "Pss")))
            for one in mappings
            if "Rss:" in one
        ]
        found[folder.name] = (
            sum(rss for _, rss, _ in sizes),
            sum(rss for its, rss, _ in sizes if its),
            sum(pss for its, _, pss in sizes if its),
        )
    return found


def killed_midway(script, arguments, folder, file):
    """Start it, end it by SIGKILL when half the parts are there, and wait for its workers. What they had in memory."""
    driver = subprocess.Popen(command_of(script, *arguments), stderr=subprocess.PIPE, text=True, env=environment())
    memory = []
    while driver.poll() is None and len(list(folder.glob("part-*.npy"))) < max(1, N_PARTS // 2):
        memory.append(users_of(file))
        time.sleep(0.5 if MANY else 0.01)
    ended = driver.poll()
    driver.kill()
    killed = time.monotonic()
    driver.communicate()
    while users_of(file):
        time.sleep(0.1)
    print(f"{script}: workers were gone {time.monotonic() - killed:.1f} s after their driver was killed")
    assert ended is None or not MANY
    return max(memory, key=lambda users: sum(kb for kb, _, _ in users.values()), default={})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc who maps the model")
@pytest.mark.parametrize("script", ["bulk_embed.py", "ray_embed.py", "spark_embed.py"])
def test_a_run_whose_driver_was_killed_goes_on(script, source, texts, expected, tmp_path):
    needs(script)
    if script != "bulk_embed.py" and not MANY:
        pytest.skip("starts a cluster twice: FOVEA_BULK_TEXTS=1000000 pytest -k killed")
    workers = [] if script == "bulk_embed.py" else ["2"]
    model = tmp_path / "model.fovea"
    fovea.convert(source, model)
    began = time.monotonic()
    users = killed_midway(script, (model, texts, tmp_path, *workers), tmp_path, str(model))
    print(f"{script}: kilobytes of each process, the model's of them, its share: {list(users.values())}")
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("part-*.npy")}
    (run_cluster if workers else run)(script, model, texts, tmp_path, *workers)
    print(f"{script}: {len(kept)} of {N_PARTS} parts before the kill, all after {time.monotonic() - began:.0f} s")
    assert {path.name for path in tmp_path.glob("*.npy")} == {f"part-{i:06}.npy" for i in range(N_PARTS)}
    assert vectors(tmp_path).tobytes() == expected.tobytes()
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


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

"""The command line that a wheel brings, and the logits that every way of installing gives."""

import importlib.metadata
import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import DEMO, GOLDEN

import fovea

TEXT = "turn on the garden dehumidifier\n"
HASHES = dict(line.split() for line in (GOLDEN / "logit_hashes.txt").read_text().splitlines())


def hash_bits(logits):
    """FNV-1a over words of 32 bits, as ``fovea certify`` has it."""
    value = 0xCBF29CE484222325
    for word in logits.view(np.uint32).ravel().tolist():
        value = (value ^ word) * 0x100000001B3 % 2**64
    return f"{value:016x}"


@pytest.fixture(scope="module")
def command():
    """``python -m fovea``, where the package was installed rather than put on the path."""
    try:
        importlib.metadata.distribution("fovea-engine")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed, so it has no command")
    return lambda *arguments: subprocess.check_output([sys.executable, "-m", "fovea", *arguments], text=True)


def test_the_command_has_the_packages_version(command):
    assert command("--version") == f"fovea {fovea.__version__}\n"


@pytest.mark.parametrize("kind", ["f32", "q8", "q4_k"])
def test_logits_are_the_committed_ones(kind, tmp_path):
    fovea.convert(DEMO, tmp_path / "model.fovea", type=kind)
    assert hash_bits(fovea.Model(tmp_path / "model.fovea").logits(TEXT)) == HASHES[kind]


def test_the_commands_logits_are_the_committed_ones(command, tmp_path):
    fovea.convert(DEMO, tmp_path / "model.fovea", type="q8")
    report = json.loads(command("certify", str(tmp_path / "model.fovea"), "-p", TEXT, "--threads", "1", "--json"))
    assert report["equal"]
    assert HASHES["q8"] in json.dumps(report)

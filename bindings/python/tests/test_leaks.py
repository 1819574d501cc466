"""Models opened and dropped by the thousand: no memory, object, mapping or file stays."""

import gc
import os
import subprocess
import sys
import sysconfig
import tracemalloc
from pathlib import Path

import pytest
from conftest import DEMO

import fovea

OPENED = 10_000
PROGRAM = """
import sys
import fovea
from fovea import _fovea

_fovea.set_leak_warnings(True)


def work(path, n):
    for _ in range(n):
        model = fovea.Model(path)
        session = model.session(max_kv_len=8, n_threads=1)
        session.forward([1])
        pool = fovea.CachePool(model, max_kv_len=8)
        pool.cache().fork() if pool.n_free_sequences > 1 else pool.cache()
"""
AT_END = """
work(sys.argv[1], int(sys.argv[2]))
if len(sys.argv) > 3:  # what a program that does leak would leave
    import ctypes
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(fovea.Model(sys.argv[1])._native))
    allocate = ctypes.CDLL(None).malloc
    allocate.restype = None
    allocate(54321)
"""


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def files():
    """How many files are open, and how often the model is mapped."""
    return len(os.listdir("/proc/self/fd")), Path("/proc/self/maps").read_text().count(str(DEMO))


def test_ten_thousand_models_leave_nothing_behind():
    names = {}
    exec(PROGRAM, names)
    work = names["work"]
    work(DEMO, 500)
    gc.collect()
    tracemalloc.start()
    before = resident_bytes(), tracemalloc.get_traced_memory()[0], files()
    work(DEMO, OPENED)
    gc.collect()
    after = resident_bytes(), tracemalloc.get_traced_memory()[0], files()
    tracemalloc.stop()
    assert after[0] - before[0] < 4 << 20  # 420 bytes a model would show
    assert after[1] - before[1] < 64 << 10
    assert after[2] == before[2]


def run_with_sanitizer(*arguments):
    """Run the program with LeakSanitizer in front of malloc; return its reports of what nobody points to at the end."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("a free-threaded Python keeps its objects where LeakSanitizer sees none of their pointers")
    try:
        command = ["gcc", "-print-file-name=liblsan.so"]
        library = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        library = ""
    if not os.path.isabs(library):
        pytest.skip("no LeakSanitizer: it comes with gcc on Linux")
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(fovea.__file__).parents[1]),
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": os.path.realpath(library),
        "LSAN_OPTIONS": "exitcode=0",  # Python's own start leaves some
    }
    command = [sys.executable, "-c", PROGRAM + AT_END, DEMO, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    if "LeakSanitizer has encountered a fatal error" in ran.stderr:
        pytest.skip("LeakSanitizer may not stop the process's threads here")
    return ran.stderr


def test_leak_sanitizer_finds_nothing_of_the_extensions():
    reports = run_with_sanitizer(str(OPENED)).split("\n\n")
    assert not [report for report in reports if "_fovea" in report]
    assert not [report for report in reports if "nanobind: leaked" in report]


def test_leak_sanitizer_finds_what_is_lost():
    reports = run_with_sanitizer("3", "lost")
    assert "leak of 54321 byte(s)" in reports
    assert "nanobind: leaked 1 instances" in reports

#!/usr/bin/env python3
"""Build parts of the tree from nothing and print the cost; fail above 1.15 times the table in docs/CONTRIBUTING.md.

    build_cost.py CHECKOUT [ROW...]     # demo, library, sets, tests, wheel, board; without a name all of them

Machines and compilers differ, so the table counts in units: the CPU time of one short program with a regular
expression, compiled on all cores at once before and after. Compilers' caches are left out. Instruction sets are AVX2's,
whatever this machine has. What is above the limit is measured once more, for a machine may be busy with other things.
A wheel's time has pip's in it.
"""

import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MOST = 1.15
ONE_SET = "FOVEA_ISAS=avx2"
LIBRARY = ["-DFOVEA_TOOLS=OFF", "-DFOVEA_HOST=OFF", "-DFOVEA_TESTS=OFF", "-DFOVEA_EXAMPLES=OFF"]
ROWS = {  # a preset and what else CMake is told, the target, what is made of it
    "demo": (["release", "-DFOVEA_TESTS=OFF", f"-D{ONE_SET}"], "fovea_cli", "fovea"),
    "library": (["release", *LIBRARY, f"-D{ONE_SET}"], "fovea", "libfovea.a"),
    "sets": (["release", *LIBRARY], "fovea", "libfovea.a"),
    "tests": (["release", "-DFOVEA_TESTS=ON", f"-D{ONE_SET}"], "all", "tests/fovea_tests"),
    "wheel": ([], None, "*.whl"),
    "board": (["cortex-m7"], "fovea", "libfovea.a"),
}
PROGRAM = "#include <regex>\nint main(int, char** v) { return std::regex_match(v[0], std::regex(v[1])); }\n"
CORES = os.cpu_count() or 1


def used_by(process):
    """Wait for a process; return the CPU seconds and the memory of its own and of all that it waited for."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{process.args}: expected status 0, got {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss


def unit_seconds():
    """Return the CPU seconds of the short program: the mean of three runs on every core, all cores busy."""
    compile_it = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-c", "-x", "c++", "-", "-o", os.devnull]
    seconds = 0
    for _ in range(3):
        running = [subprocess.Popen(compile_it, stdin=subprocess.PIPE, text=True) for _ in range(CORES)]
        for process in running:
            with process.stdin as source:
                source.write(PROGRAM)
        seconds += sum(used_by(process)[0] for process in running)
    return seconds / (3 * CORES)


def units(row, checkout, build):
    """Build a row in an empty folder, print what it takes, and return its units."""
    arguments, target, product = ROWS[row]
    make = ["ninja", "-C", build, target]
    if row == "wheel":
        make = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", build, str(checkout)]
        make += [f"--config-settings=build-dir={build}/build", f"--config-settings=cmake.define.{ONE_SET}"]
    else:
        configure = ["cmake", "-B", build, "--preset", *arguments]
        subprocess.run(configure, cwd=checkout, check=True, stdout=subprocess.DEVNULL)
    unit, begun = unit_seconds(), time.monotonic()
    cpu, memory = used_by(subprocess.Popen(make, stdout=subprocess.DEVNULL))
    wall = time.monotonic() - begun
    unit = (unit + unit_seconds()) / 2
    [made] = pathlib.Path(build).glob(product)
    print(
        f"{row}: {cpu:.0f} CPU s, {wall:.0f} s on {CORES} cores, {cpu / unit:.0f} units of {unit:.1f} CPU s; "
        f"a compiler's memory at most {memory / 1e3:.0f} MB, {made.name} {made.stat().st_size / 1e6:.2f} MB",
        flush=True,
    )
    return cpu / unit


def main():
    checkout = pathlib.Path(sys.argv[1]).resolve()
    page = (checkout / "docs" / "CONTRIBUTING.md").read_text()
    for name in ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"):
        os.environ.pop(name, None)
    over = []
    for row in sys.argv[2:] or ROWS:
        if row not in ROWS:
            sys.exit(f"build_cost: expected {', '.join(ROWS)}, got {row}")
        now = re.search(rf"^\| `{row}` \|.*\| (\d+) units \|$", page, re.MULTILINE)
        limit = MOST * int(now[1]) if now else math.inf
        for _ in range(2):
            with tempfile.TemporaryDirectory() as build:
                got = units(row, checkout, build)
            if got <= limit:
                break
        else:
            over.append(
                f"{row}: expected at most {limit:.0f} units ({MOST} times the table in docs/CONTRIBUTING.md), got {got:.0f}"
            )
    sys.exit("\n".join(over) or None)


if __name__ == "__main__":
    main()

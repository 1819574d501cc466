#!/usr/bin/env python3
"""Build parts of the tree from nothing and print the cost; fail above 1.15 times the table in docs/CONTRIBUTING.md.

    build_cost.py CHECKOUT [ROW...]     # demo, library, sets; without a name all of them

Machines and compilers differ, so the table counts in units: the CPU time of one short program with a regular
expression, compiled on all cores at once before and after. Compilers' caches are left out. Instruction sets are AVX2's,
whatever this machine has. What is above the limit is measured once more, for a machine may be busy with other things.
"""

import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

MOST = 1.15
LIBRARY = ["-DFOVEA_TOOLS=OFF", "-DFOVEA_HOST=OFF", "-DFOVEA_TESTS=OFF", "-DFOVEA_EXAMPLES=OFF"]
ROWS = {
    "demo": (["-DFOVEA_TESTS=OFF", "-DFOVEA_ISAS=avx2"], "fovea_cli", "fovea"),
    "library": ([*LIBRARY, "-DFOVEA_ISAS=avx2"], "fovea", "libfovea.a"),
    "sets": (LIBRARY, "fovea", "libfovea.a"),
}
PROGRAM = "#include <regex>\nint main(int, char** v) { return std::regex_match(v[0], std::regex(v[1])); }\n"
CORES = os.cpu_count() or 1


def children_seconds():
    """Return the CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def unit_seconds():
    """Return the CPU seconds of the short program: the mean of three runs on every core, all cores busy."""
    compile_it = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-c", "-x", "c++", "-", "-o", os.devnull]
    before = children_seconds()
    for _ in range(3):
        running = [subprocess.Popen(compile_it, stdin=subprocess.PIPE, text=True) for _ in range(CORES)]
        for process in running:
            process.communicate(PROGRAM)
    return (children_seconds() - before) / (3 * CORES)


def units(row, checkout, build):
    """Build a row in an empty folder, print what it takes, and return its units."""
    arguments, target, program = ROWS[row]
    subprocess.run(
        ["cmake", "--preset", "release", "-B", build, *arguments], cwd=checkout, check=True, stdout=subprocess.DEVNULL
    )
    unit, begun, before = unit_seconds(), time.monotonic(), children_seconds()
    subprocess.run(["ninja", "-C", build, target], check=True, stdout=subprocess.DEVNULL)
    wall, cpu = time.monotonic() - begun, children_seconds() - before
    unit = (unit + unit_seconds()) / 2
    print(
        f"{row}: {cpu:.0f} CPU s, {wall:.0f} s on {CORES} cores, {cpu / unit:.0f} units of {unit:.1f} CPU s; "
        f"a compiler's memory at most {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3:.0f} MB, "
        f"{program} {(pathlib.Path(build) / program).stat().st_size / 1e6:.2f} MB",
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
        limit = MOST * int(re.search(rf"^\| `{row}` \|.*\| (\d+) units \|$", page, re.MULTILINE)[1])
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

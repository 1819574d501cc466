#!/usr/bin/env python3
"""Build parts of the tree from nothing and print what it costs; fail above 1.15 times the table in docs/CONTRIBUTING.md.

    build_cost.py CHECKOUT [ROW...]     # demo, library, sets, tests; without a name all of them

Machines and compilers differ, so the table counts in units: the CPU time of one short program with a regular expression, which is
compiled before and after. Compilers' caches are left out. Instruction sets are AVX2's, whatever this machine has.
"""

import os
import pathlib
import re
import resource
import statistics
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
    "tests": (["-DFOVEA_TESTS=ON", "-DFOVEA_ISAS=avx2"], "all", "tests/fovea_tests"),
}
PROGRAM = "#include <regex>\nint main(int, char** v) { return std::regex_match(v[0], std::regex(v[1])); }\n"


def spent(command, **more):
    """Run a command; return its CPU seconds, those of its children among them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def unit():
    """Return the CPU seconds of the short program, the median of three."""
    compile_it = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-c", "-x", "c++", "-", "-o", os.devnull]
    return statistics.median(spent(compile_it, input=PROGRAM, text=True) for _ in range(3))


def main():
    checkout = pathlib.Path(sys.argv[1]).resolve()
    page = (checkout / "docs" / "CONTRIBUTING.md").read_text()
    for name in ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"):
        os.environ.pop(name, None)
    dear = False
    for row in sys.argv[2:] or ROWS:
        arguments, target, program = ROWS[row]
        with tempfile.TemporaryDirectory() as build:
            subprocess.run(["cmake", "--preset", "release", "-B", build, *arguments], cwd=checkout, check=True, stdout=subprocess.DEVNULL)
            first, start = unit(), time.monotonic()
            cpu = spent(["ninja", "-C", build, target])
            wall, units = time.monotonic() - start, 2 * cpu / (first + unit())
            most_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            size = (pathlib.Path(build) / program).stat().st_size
        written = re.search(rf"^\| `{row}` \|.*\| ([\d,]+) units \|", page, re.MULTILINE)
        table = float(written[1].replace(",", "")) if written else 0.0
        print(
            f"{row}: {cpu:.0f} CPU s, {wall:.0f} s with {os.cpu_count()} cores, {units:.0f} units (table: {table:.0f}), "
            f"most memory of a compiler {most_bytes / 1e6:.0f} MB, {program} {size / 1e6:.2f} MB"
        )
        dear = dear or units > MOST * table
    sys.exit("build_cost: expected at most 1.15 times the table in docs/CONTRIBUTING.md, got more" if dear else 0)


if __name__ == "__main__":
    main()

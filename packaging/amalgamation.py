#!/usr/bin/env python3
"""Writes the engine as one file, FOLDER/fovea.cpp, beside the public headers in FOLDER/fovea and Meson's files.

    amalgamation.py CHECKOUT FOLDER

Includes of our own become the text of what they name; a header comes once, a table (.inc) as often as it is included. The
file holds kernels of the instruction sets too: a compiler that is given -D FOVEA_ISA=NAME makes those of one set alone, with
flags that CMakeLists.txt names. Public headers stay includes.
"""

import pathlib
import re
import shutil
import sys

INCLUDE = re.compile(r'#include "((?:engine|platform|fovea)/[^"]+)"')
ROW = re.compile(r"^ +fovea_isa\((\w+) FLAGS (.*?)((?: FLOATS \w+)?)((?: QUANTS \w+)?)( TILES)?\)$", re.M)
PARTS = {"floats": 1, "quants": 2, "tiles": 4}

HEAD = """// Fovea {version}, an embeddable CPU inference engine for attention models: the whole engine in one file. Made by
// packaging/amalgamation.py from the sources, which is where changes belong.
//
//     c++ -std=c++20 -O2 -I . -c fovea.cpp
//
// This has the scalar kernels, which every CPU runs. Faster ones are of the same file, compiled once more for each set:
//
//     c++ -std=c++20 -O2 -ffp-contract=off -D FOVEA_UNCONTRACTED -I . {flags} -D FOVEA_ISA={isa} -D xsimd=xsimd_{isa} -c fovea.cpp -o {isa}.o
//     c++ -std=c++20 -O2 -I . -D 'FOVEA_TABLES=FOVEA_TABLE({isa})' -c fovea.cpp
//
// x86 sets want the headers of xsimd. FOVEA_TABLES lists sets, best first, and the engine takes the first that the CPU has. A set
// that takes kernels from another wants its object too:
//
{sets}
//
// A sum a·b + c must not become one operation. GCC is told so here; -ffp-contract=off with -D FOVEA_UNCONTRACTED makes faster code.
// -fno-exceptions lets a C compiler link it. -D FOVEA_THREADS=0 leaves threads out; with them, older C libraries want -lpthread.
"""
SETTINGS = """
#if defined(__FAST_MATH__)
#error "expected IEEE arithmetic, got -ffast-math: results would be others"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && defined(__FP_FAST_FMAF) && !defined(FOVEA_UNCONTRACTED)
#pragma GCC optimize("fp-contract=off")  // the same bits, in code that is larger than the option's
#endif
"""
THREADS = """
#if !defined(FOVEA_THREADS) && (defined(__unix__) || defined(__APPLE__) || defined(_WIN32))
#define FOVEA_THREADS 1
#elif defined(FOVEA_THREADS) && FOVEA_THREADS == 0
#undef FOVEA_THREADS
#endif
"""


def inlined(root, name, seen):
    """The text of a file, with that of what it includes in place of includes, but for headers `seen`, a set that grows. A header
    that only some branches of a condition include comes again in others, and after them."""
    if name in seen:
        return ""
    if not name.endswith(".inc"):
        seen.add(name)
    lines, depth, branch = [f"// ---- {name}"], 0, seen
    for line in (root / name).read_text().splitlines():
        if re.match(r"#\s*(if|elif|else|endif)", line):
            depth += bool(re.match(r"#\s*if", line)) - bool(re.match(r"#\s*endif", line))
            branch = set(seen) if depth else seen
        match = INCLUDE.match(line)
        if match and not match[1].startswith("fovea/"):
            line = inlined(root, match[1], branch)
        if line != "#pragma once":
            lines.append(line)
    text = "\n".join(lines)
    once = "FOVEA_ONCE_" + re.sub(r"\W", "_", name)
    return f"#ifndef {once}\n#define {once}\n{text}\n#endif" if name.endswith(".h") else text


def read_sets(cmake):
    """{name: (flags, parts that it makes, sets that it takes others from)}, from the rows of CMakeLists.txt."""
    variables = {}
    for name, value in re.findall(r"^ +set\((\w+_flags) (.*)\)$", cmake, re.M):
        value = re.sub(r"\$<.*?>(?=$| )", "", value)
        variables[name] = re.sub(r"\$\{(\w+)\}", lambda match: variables[match[1]], value).strip()
    sets = {}
    for name, flags, floats, quants, tiles in ROW.findall(cmake):
        flags = re.sub(r"\$\{(\w+)\}", lambda match: variables[match[1]], flags).strip()
        made = (0 if floats else PARTS["floats"]) | (0 if quants else PARTS["quants"]) | (PARTS["tiles"] if tiles else 0)
        # 32-bit ARM has a row of the same name, whose parts are the same.
        sets.setdefault(name, (flags, made, [word.split()[1] for word in (floats, quants) if word]))
    return sets


def write_meson(root, folder, version, sets):
    """Files by which Meson builds it."""
    meson = root / "packaging/meson"
    text = (meson / "meson.build.in").read_text().replace("@VERSION@", version)
    text = text.replace("@FLAGS@", "".join(f"  '{name}': {flags.split()},\n" for name, (flags, _, _) in sets.items()))
    text = text.replace("@NEEDS@", "".join(f"  '{name}': {others},\n" for name, (_, _, others) in sets.items()))
    (folder / "meson.build").write_text(text)
    shutil.copy(meson / "meson_options.txt", folder)


def main():
    root, folder = map(pathlib.Path, sys.argv[1:])
    version = re.search(r'FOVEA_VERSION "(.*)"', (root / "include/fovea/version.h").read_text())[1]
    sets = read_sets((root / "CMakeLists.txt").read_text())
    lines = [f"//   {name:12} {flags}" + "".join(f", and {other}" for other in others) for name, (flags, _, others) in sets.items()]
    isa = next(iter(sets))
    out = [HEAD.format(version=version, isa=isa, flags=sets[isa][0], sets="\n".join(lines)), SETTINGS, "#if defined(FOVEA_ISA)"]
    out += [f"#define FOVEA_PARTS_{name} {made}" for name, (_, made, _) in sets.items()]
    out += ["#define FOVEA_JOINED(a, b) a##b", "#define FOVEA_PARTS(isa) FOVEA_JOINED(FOVEA_PARTS_, isa)"]
    seen = set()
    out.append(inlined(root, "engine/kernels/isa/quants.h", seen))
    for part, bit in PARTS.items():
        out.append(f"#if FOVEA_PARTS(FOVEA_ISA) & {bit}")
        files = sorted((root / "engine/kernels/isa").glob(f"{part}*.cpp"))
        out += [inlined(root, file.relative_to(root).as_posix(), seen) for file in files]
        out.append("#endif")
    out += ["#else", THREADS]
    seen = set()
    files = [*root.glob("engine/*/*.cpp"), *root.glob("platform/*.cpp"), *root.glob("engine/kernels/scalar/*.cpp")]
    out += [inlined(root, file.relative_to(root).as_posix(), seen) for file in sorted(files)]
    out.append("#endif\n")
    folder.mkdir(parents=True, exist_ok=True)
    write_meson(root, folder, version, sets)
    (folder / "fovea.cpp").write_text("\n".join(out))
    shutil.rmtree(folder / "fovea", ignore_errors=True)
    shutil.copytree(root / "include/fovea", folder / "fovea", ignore=shutil.ignore_patterns("host", "fovea_host.h"))


if __name__ == "__main__":
    main()

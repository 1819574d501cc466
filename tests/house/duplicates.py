#!/usr/bin/env python3
"""Counts what the tree has in one place, and fails where there are more.

    duplicates.py CHECKOUT [--list]

Each kind is a pattern of source text, with the places that it may have. --list prints them all. Tests, examples and what bench
measures may do by hand what the library does for programs.
"""
import argparse, pathlib, re

TOPS = "include platform engine host convert serve ranks tools bindings".split()
SUFFIXES = (".h", ".cpp", ".inc", ".c")

HOSTS = "host convert serve tools bindings".split()
# what it is, how many places may have it, a pattern of a line, folders that it is counted in
KINDS = [
    ("allocations of aligned memory (fovea/host/arena.h, and the file's bytes)", 2,
     r"operator new ?\(|aligned_alloc\(|posix_memalign\(|_mm_malloc\(", TOPS),
    ("memory in large pages (host::take_arena)", 1, r"\bmadvise\(", HOSTS),
    ("sessions and workspaces made in an arena (host/model/runtime.cpp)", 2,
     r"\bmake_(?:session|workspace)\((?!const )[^;]*[aA]rena", HOSTS),
    ("room for a text's tokens (host::tokenize, and the server's, taken once)", 2, r"\btokenize_scratch_bytes\(", HOSTS),
    ("room for a token's text (host::detokenize)", 1, r"\bmax_piece_bytes\(", HOSTS),
    ("clocks in seconds and ticks (host/base/clock.h)", 2, r"\b(?:seconds|ticks)_now\(\) (?:noexcept )?\{", TOPS),
    ("how many tokens a form forces in a pass (fovea/host/generation.h)", 1, r"\bk(?:Most)?Forced ?=", TOPS),
    ("shapes in words (host/base/arrays.h)", 1, r"\bin_words\((?:const Shape&|std::span<const std::uint64_t>) \w+\) \{", TOPS),
    ("places of a mask's elements (host/base/arrays.h)", 1, r"\bhead_stride = shape", TOPS),
]
STRUCT = re.compile(r"^(?:struct|class) (\w+)[^;{]*\{\n(.*?)^\};", re.M | re.S)


def sources(root):
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file() and "/tests/" not in path.as_posix():
                yield path.relative_to(root).as_posix(), path.read_text(errors="replace")


def code(text):
    """The lines without comments, each in its place."""
    return [line.split("//")[0] for line in text.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    files = list(sources(given.checkout))
    found = []
    for what, most, pattern, tops in KINDS:
        places = [f"{name}:{number}: {line.strip()}" for name, text in files if name.split("/")[0] in tops
                  for number, line in enumerate(code(text), 1) if re.search(pattern, line)]
        found.append((what, most, places))
    holds = [re.compile(rf"^\s+{name} \w+[;{{]", re.M) for name in ("Mapping", "Model")]
    found.append(("structs of a mapping with its model (fovea/host/opened.h)", 1,
                  [f"{name}: {match[1]}" for name, text in files for match in STRUCT.finditer("\n".join(code(text)))
                   if all(one.search(match[2]) for one in holds)]))
    wrong = 0
    for what, most, places in found:
        if len(places) > most or given.list:
            print(f"{what}: {len(places)}, {most} at most")
            print("".join(f"    {place}\n" for place in places), end="")
        wrong += max(len(places) - most, 0)
    print(f"{len(files)} files, {len(found)} kinds: {wrong} too many")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

#!/usr/bin/env python3
"""Writes the engine for boards' package managers: one folder that is a Zephyr module, an ESP-IDF component, an Arduino and PlatformIO
library, a CMSIS pack and a CMake library for the Pico SDK, each with the demo; beside it a Buildroot package and a Yocto recipe.

    boards.py CHECKOUT FOLDER FOVEA

FOLDER/fovea is made of packaging/amalgamation.py's file and of packaging/boards, whose @WORDS@ are filled in. FOVEA is a command line
that runs here. It makes the demo's model.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

TYPE = "q4"  # of the demo's weights: the model and the program fit into 1 MB of flash
# 64 positions, passes of 4 tokens: a session of 203,008 bytes and a generator of 9,664, as `fovea plan` counts them.
DEMO = """#define BOARD_POSITIONS 64
#define BOARD_BATCH 4
#define BOARD_ARENA_BYTES 212672
#define BOARD_ARENA __attribute__((aligned(64)))
#define BOARD_MAIN run_demo
"""
BEFORE = """
#if __cplusplus < 202002L
#error "expected C++20, got an older standard: -std=gnu++20; in Arduino's platform.local.txt: compiler.cpp.extra_flags=-std=gnu++20"
#endif
"""
# Where files of packaging/boards lie in the package, if elsewhere than there.
PLACES = {
    "arduino/Fovea.h": "src/Fovea.h",
    "arduino": "examples/demo",
    "esp_idf": "examples/esp_idf",
    "pico": "examples/pico",
    "zephyr/sample": "examples/zephyr",
}


def read_parts(root):
    """{name: what it is for}, and the names that the Cortex-M presets leave out."""
    rows = re.findall(r"^    (\w+) = \d+, +// (.*)$", (root / "engine/format/parts.h").read_text(), re.M)
    presets = json.loads((root / "CMakePresets.json").read_text())["configurePresets"]
    without = next(
        preset["cacheVariables"]["FOVEA_WITHOUT"] for preset in presets if preset["name"] == "cortex-m"
    ).split(";")
    if not set(without) <= dict(rows).keys():
        sys.exit(f"boards.py: expected names of engine/format/parts.h, got {set(without) - dict(rows).keys()}")
    return dict(rows), without


def kconfig(parts, without):
    """Kconfig of ESP-IDF and Zephyr: a switch for each part."""
    lines = ["# Parts of the engine. A model or a call that needs one that is left out is refused by its name."]
    for name, purpose in parts.items():
        on = "n" if name in without else "y"
        lines += [
            f"config FOVEA_{name.upper()}",
            f'\tbool "Fovea: {name}"',
            f"\tdefault {on}",
            "\thelp",
            f"\t  {purpose[0].upper()}{purpose[1:]}.",
            "",
        ]
    return "\n".join(lines)


def place(name):
    for folder, there in PLACES.items():
        if name == folder or name.startswith(folder + "/"):
            return there + name[len(folder) :]
    return name


def write_library(root, folder, words):
    """fovea.cpp, which leaves out what boards do without, and the public headers."""
    made = folder / "amalgamation"
    subprocess.run([sys.executable, "-B", root / "packaging/amalgamation.py", root, made], check=True)
    without = ", ".join(f"Part::{name}" for name in words["WITHOUT"].split())
    text = (made / "fovea.cpp").read_text()
    start = text.index("\n#")
    settings = f"{BEFORE}#ifndef FOVEA_WITHOUT  // parts of the engine that are left out\n#define FOVEA_WITHOUT {without}\n#endif\n"
    threads = "#ifndef FOVEA_THREADS\n#define FOVEA_THREADS 0\n#endif\n"
    (folder / "src").mkdir()
    (folder / "src/fovea.cpp").write_text(text[:start] + settings + threads + text[start:])
    shutil.move(made / "fovea", folder / "src/fovea")
    shutil.rmtree(made)


def write_demo(root, folder, fovea):
    """examples/demo: the bare-metal example as a function, and the model."""
    demo, bare = folder / "examples/demo", root / "examples/bare_metal"
    demo.mkdir(parents=True, exist_ok=True)
    (demo / "demo.c").write_text(DEMO + (bare / "main.c").read_text())
    for name in (bare / "form.h", bare / "free.c", root / "packaging/cortex_m/start.h"):
        shutil.copy(name, demo)
    model = folder / "model.fovea"
    for command in (
        ["convert", root / "tools/demo/demo.fovea", "--type", TYPE, "-o", model],
        ["embed", model, "-o", demo / "model.S"],
    ):
        subprocess.run([fovea, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    model.unlink()


def main():
    root, out, fovea = (pathlib.Path(word).absolute() for word in sys.argv[1:])
    version = re.search(r'FOVEA_VERSION "(.*)"', (root / "include/fovea/version.h").read_text())[1]
    parts, without = read_parts(root)
    date = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    hashes = dict(
        line.split()
        for line in (root / "tests/golden/logit_hashes.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    words = {
        "VERSION": version,
        "DATE": f"{date:%Y-%m-%d}",
        "PARTS": " ".join(parts),
        "WITHOUT": " ".join(without),
        "HASH": hashes[TYPE],
        "LICENSE": hashlib.sha256((root / "LICENSE").read_bytes()).hexdigest(),
        "LICENSEMD": hashlib.md5((root / "LICENSE").read_bytes()).hexdigest(),
    }
    folder = out / "fovea"  # what ESP-IDF calls the component, too
    shutil.rmtree(out, ignore_errors=True)
    folder.mkdir(parents=True)
    write_library(root, folder, words)
    shutil.copy(root / "LICENSE", folder)
    (folder / "Kconfig").write_text(kconfig(parts, without))
    source = root / "packaging/boards"
    for file in sorted(file for file in source.rglob("*") if file.is_file()):
        name = file.relative_to(source).as_posix()
        linux = name.startswith(("buildroot/", "yocto/"))
        there = (out / name.replace("VERSION", version)) if linux else folder / place(name)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], file.read_text()))
    write_demo(root, folder, fovea)


if __name__ == "__main__":
    main()

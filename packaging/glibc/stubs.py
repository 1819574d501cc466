#!/usr/bin/env python3
"""Makes a folder to link with as if glibc were 2.28: binaries then run with that one and all later ones.

    stubs.py COMPILER READELF AR FOLDER

The linker binds an undefined symbol to the version that a library gives it by default. So the folder has shared
libraries without code, named as glibc's and libgcc_s, whose symbols have the newest version up to the limit. Before
glibc 2.34 functions of threads, loading and timers had libraries of their own; they have here, too. What our objects
want and older libraries lack is in an archive of newer.c's parts, which the linker looks into last.
"""

import pathlib
import re
import subprocess
import sys

LIMITS = {"GLIBC": (2, 28), "GCC": (7, 0)}
# Libraries whose functions moved into libc.so.6 after 2.28, and what their names begin with.
MOVED = {
    "libpthread.so.0": ("pthread_", "__pthread_", "sem_"),
    "libdl.so.2": ("dl",),
    "librt.so.1": ("timer_", "mq_", "shm_", "aio_", "lio_"),
}
SYMBOL = re.compile(r"\s+\d+: [0-9a-f]+\s+(\d+) (\w+)\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+\w+ (\w+)@@?((GLIBC|GCC)_([\d.]+))$")
ASSEMBLY = """.section {section}
.globl s{at}
.type s{at}, %{kind}
s{at}: .zero {size}
.size s{at}, {size}
.symver s{at}, {name}{at_sign}{version}, remove
"""


def read_symbols(readelf, library):
    """{name: (version, type, size, whether it has a newer version)} of a library's symbols that have an old one."""
    versions = {}
    for line in subprocess.check_output([readelf, "--dyn-syms", "-W", library], text=True).splitlines():
        if match := SYMBOL.match(line):
            size, kind, name, version, family, number = match.groups()
            number = tuple(map(int, number.split(".")))
            versions.setdefault(name, []).append((number <= LIMITS[family], number, version, kind, int(size)))
    best = {name: max(found) for name, found in versions.items()}
    return {
        name: (version, kind, size, any(not old for old, *_ in versions[name]))
        for name, (is_old, _, version, kind, size) in best.items()
        if is_old
    }


def place(library, name, has_newer):
    """The library that had the symbol in 2.28."""
    if not has_newer or library != "libc.so.6":
        return library
    return next((other for other, begins in MOVED.items() if name.startswith(begins)), library)


def link_stub(compiler, folder, library, names):
    """Links a library of symbols, {name: (version, type, size)}, in their sections."""
    lines = []
    for at, (name, (version, kind, size)) in enumerate(sorted(names.items())):
        section, kind = {"OBJECT": (".data", "object"), "TLS": (".tdata", "tls_object")}.get(kind, (".text", "function"))
        size = max(size, 1) if kind != "function" else 4
        # A program starts in newer.c, and the library's own start is for that alone.
        at_sign = "@" if name == "__libc_start_main" else "@@"
        lines.append(ASSEMBLY.format_map(locals()))
    source, script = folder / f"{library}.s", folder / f"{library}.map"
    source.write_text("".join(lines))
    script.write_text("".join(f"{version} {{ }};\n" for version in sorted({v for v, *_ in names.values()})) or "{ };\n")
    options = ["-shared", "-nostdlib", f"-Wl,-soname,{library}", f"-Wl,--version-script={script}"]
    subprocess.check_call([compiler, *options, "-o", folder / library, source])


def archive_newer(compiler, ar, folder, start_version):
    """Compiles each part of newer.c into an object of its own, and archives them."""
    source, archive = pathlib.Path(__file__).with_name("newer.c"), folder / "libnewer.a"
    archive.unlink(missing_ok=True)
    flags = ["-O2", "-fPIC", "-fvisibility=hidden", "-Wall", f'-DSTART_VERSION="{start_version}"']
    for part in re.findall(r"#ifdef (WANT_\w+)", source.read_text()):
        subprocess.check_call([compiler, *flags, f"-D{part}", "-c", source, "-o", folder / f"{part}.o"])
        subprocess.check_call([ar, "rcD", archive, folder / f"{part}.o"])


def main():
    """Writes the folder: stubs, the archive, and the scripts that -lc, -lm and so on find."""
    compiler, readelf, ar = sys.argv[1:4]
    folder = pathlib.Path(sys.argv[4]).resolve()
    folder.mkdir(parents=True, exist_ok=True)

    def path(name):
        return subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()

    loader = re.search(r"AS_NEEDED \( \S*/(ld-\S+)", pathlib.Path(path("libc.so")).read_text())[1]
    libraries = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", loader)
    stubs = {name: {} for name in (*libraries, *MOVED)}
    for library in libraries:
        for name, (version, kind, size, has_newer) in read_symbols(readelf, path(library)).items():
            stubs[place(library, name, has_newer)][name] = (version, kind, size)
    for library, names in stubs.items():
        link_stub(compiler, folder, library, names)
    archive_newer(compiler, ar, folder, stubs["libc.so.6"]["__libc_start_main"][0])

    others = " ".join(str(folder / name) for name in (*MOVED, loader))
    scripts = {name.split(".")[0]: str(folder / name) for name in ("libm.so.6", *MOVED)}
    scripts["libc"] = f"{folder}/libc.so.6 AS_NEEDED ( {others} ) {path('libc_nonshared.a')} {folder}/libnewer.a"
    scripts["libgcc_s"] = f"{folder}/libgcc_s.so.1 -lgcc"
    for name, group in scripts.items():
        (folder / f"{name}.so").write_text(f"GROUP ( {group} )\n")


if __name__ == "__main__":
    main()

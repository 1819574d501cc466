#!/usr/bin/env python3
"""Makes Debian packages of an installed tree: shared libraries, what programs are built with, the command line.

    debs.py ROOT ARCHITECTURE FOLDER    ROOT/usr is the tree, with libraries in their multiarch folder

SOURCE_DATE_EPOCH is the time of all files. What is linked in is named in fovea's documents.
"""

import email.utils
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

MAINTAINER = "The Fovea maintainers <maintainers@fovea.invalid>"
HOMEPAGE = "https://fovea.invalid"
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
SUMMARY = "CPU inference engine for attention models"
# A package's files as patterns below usr, its fields, and what it says of itself.
PACKAGES = {
    "libfovea{so}": {
        "files": ["lib/*/libfovea.so.*"],
        "fields": {"Section": "libs", "Multi-Arch": "same", "Depends": "libc6 (>= 2.28)"},
        "summary": f"{SUMMARY}: engine library",
        "text": "The engine maps a model's file and computes in memory that its caller gives: it has no heap and no exceptions.",
    },
    "libfovea-host{so}": {
        "files": ["lib/*/libfovea_host.so.*"],
        "fields": {"Section": "libs", "Multi-Arch": "same", "Depends": "libc6 (>= 2.28), libgcc-s1 (>= 3.5), libstdc++6 (>= 12)"},
        "summary": f"{SUMMARY}: host library",
        "text": "The host library opens models of any source, talks, classifies, transcribes and translates.",
    },
    "libfovea-dev": {
        "files": ["include", "lib/*/*.a", "lib/*/*.so", "lib/*/cmake", "lib/*/pkgconfig"],
        "fields": {
            "Section": "libdevel",
            "Multi-Arch": "same",
            "Depends": "libfovea{so} (= {version}), libfovea-host{so} (= {version})",
        },
        "summary": f"{SUMMARY}: development files",
        "text": "This package has the headers, the static library, and files of CMake and pkg-config.",
    },
    "fovea": {
        "files": ["bin", "share"],
        "fields": {"Section": "science", "Multi-Arch": "foreign", "Depends": "libc6 (>= 2.28), libgcc-s1 (>= 3.5)"},
        "summary": f"{SUMMARY}: command line and server",
        "text": "The command line runs, converts, measures and serves models. A small one is built in.",
    },
}
TEXT = "A model gives the same result, bit for bit, on every processor and with every number of threads."
COPYRIGHT = f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: fovea
Source: {HOMEPAGE}

Files: *
Copyright: {{year}} the Fovea authors
License: Apache-2.0
 On Debian systems the text of the licence is in /usr/share/common-licenses/Apache-2.0.
 Licences of headers that are compiled in are in /usr/share/doc/fovea/licenses, where the package fovea is installed.
"""


def write_packed(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=EPOCH) as packed:
        packed.write(data)


def write_documents(folder, name, version):
    docs = folder / "usr/share/doc" / name
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "copyright").write_text(COPYRIGHT.format(year=email.utils.formatdate(EPOCH)[12:16]))
    change = f"fovea ({version}) unstable; urgency=medium\n\n  * Release {version.split('-')[0]}.\n\n"
    write_packed(docs / "changelog.Debian.gz", f"{change} -- {MAINTAINER}  {email.utils.formatdate(EPOCH)}\n".encode())
    (docs / "LICENSE").unlink(missing_ok=True)  # the copyright names it
    for page in folder.glob("usr/share/man/*/*.?"):
        write_packed(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()


def write_control(folder, name, package, values):
    control = folder / "DEBIAN"
    control.mkdir()
    files = sorted(file for file in folder.rglob("*") if (file.is_file() or file.is_symlink()) and control not in file.parents)
    kilobytes = sum(-(-file.lstat().st_size // 1024) for file in files) + sum(1 for file in folder.rglob("*") if file.is_dir())
    fields = {
        "Package": name,
        "Source": "fovea",
        "Version": values["version"],
        "Architecture": values["architecture"],
        "Maintainer": MAINTAINER,
        "Installed-Size": str(kilobytes),
        **package["fields"],
        "Priority": "optional",
        "Homepage": HOMEPAGE,
        "Description": package["summary"] + "\n" + textwrap.fill(package["text"] + " " + TEXT, 78, initial_indent=" ", subsequent_indent=" "),
    }
    (control / "control").write_text("".join(f"{key}: {value.format_map(values)}\n" for key, value in fields.items()))
    sums = (f"{hashlib.md5(file.read_bytes()).hexdigest()}  {file.relative_to(folder)}\n" for file in files if not file.is_symlink())
    (control / "md5sums").write_text("".join(sums))
    if match := re.match(r"(lib[a-z-]+?)-?([\d.]+)$", name):
        (control / "shlibs").write_text(f"{match[1].replace('-', '_')} {match[2]} {name} (>= {values['version'].split('-')[0]})\n")
        (control / "triggers").write_text("activate-noawait ldconfig\n")


def main():
    root, architecture, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    library = next(root.glob("usr/lib/*/libfovea.so.*.*.*"))
    upstream = library.name.split(".so.")[1]
    values = {"version": f"{upstream}-1", "architecture": architecture, "so": upstream.rpartition(".")[0]}
    for archive in root.glob("usr/lib/*/*.a"):
        subprocess.check_call([os.environ.get("STRIP", "strip"), "-D", "--strip-debug", "-R", ".comment", archive])
    for pattern, package in PACKAGES.items():
        name = pattern.format_map(values)
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        found = [file for files in package["files"] for file in root.glob(f"usr/{files}")]
        if not found:
            sys.exit(f"debs.py: expected files of {name} in {root}, got none")
        for file in found:
            target = folder / file.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if file.is_dir() else shutil.copy2)(file, target, **({"symlinks": True} if file.is_dir() else {"follow_symlinks": False}))
        write_documents(folder, name, values["version"])
        write_control(folder, name, package, values)
        for file in [folder, *folder.rglob("*")]:
            if not file.is_symlink():
                file.chmod(0o755 if file.is_dir() or file.parent.name == "bin" else 0o644)
            os.utime(file, (EPOCH, EPOCH), follow_symlinks=False)
        subprocess.check_call(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", folder, out], stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()

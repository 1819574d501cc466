#!/usr/bin/env python3
"""Says what of others is in what was built: FOLDER/licenses has their licences, FOLDER/sboms/fovea.spdx.json is SPDX 2.3.

    linked.py NINJA BUILD FOLDER VERSION

Ninja's log in BUILD names every header that was included. dpkg knows whose it is, or it lies in a Python package, in
what CMake fetched, or in Zig's folder, which has libc++ and musl. Headers of a C library that comes with a system, and of
Python, are interfaces to what is on the user's machine; all else is in our files.
"""

import datetime
import email
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

# How SPDX spells the licence of a package whose name begins so. What has no row is an error, for somebody has to read it.
LICENCES = {
    r"libstdc\+\+|libgcc|libstdc|gcc-|g\+\+-": "GPL-3.0-or-later WITH GCC-exception-3.1",
    r"libxsimd|xsimd|libcli11|cli11|nanobind": "BSD-3-Clause",
    r"nlohmann|json|musl": "MIT",
    r"libboost": "BSL-1.0",
    r"libc\+\+|libclang|clang": "Apache-2.0 WITH LLVM-exception",
}
INTERFACES = re.compile(r"libc6|linux-libc|libpython|python3|mingw-w64|wasi-libc|libomp")
# Zig's folders of headers: what they are of, and its licence there.
ZIGS = {"libcxx": ("libc++", "libcxx/LICENSE.TXT"), "libc": ("musl", "libc/musl/COPYRIGHT")}


def headers(ninja, build):
    log = subprocess.check_output([ninja, "-C", build, "-t", "deps"], text=True)
    return sorted({os.path.realpath(os.path.join(build, path)) for path in re.findall(r"^ +(\S.*)$", log, re.M)})


def owners(paths):
    """{package: (version, file with its licence)} of the headers at `paths`."""
    found, system = {}, []
    for path in paths:
        if match := re.match(r"(.*)/lib/(libcxx|libc)/include/.*", path):
            name, licence = ZIGS[match[2]]
            if name not in found:
                version = subprocess.check_output([f"{match[1]}/zig", "version"], text=True).strip()
                found[name] = f"of Zig {version}", pathlib.Path(match[1], "lib", licence)
        elif match := re.match(r"(.*/site-packages)/(?!ziglang)(\w+)/", path):
            info = next(pathlib.Path(match[1]).glob(f"{match[2]}-*.dist-info"))
            version = email.message_from_string((info / "METADATA").read_text())["Version"]
            found[match[2]] = version, next(info.rglob("LICENSE*"))
        elif match := re.match(r"(.*/_deps/fovea_(\w+)-src)/", path):
            found[match[2]] = "pinned", next(pathlib.Path(match[1]).glob("LICENSE*"))
        elif path.startswith("/usr/"):
            system.append(path)
    said = subprocess.run(["dpkg-query", "-S", *system], capture_output=True, text=True).stdout if system else ""
    for package in sorted({line.split(":")[0].split(",")[0] for line in said.splitlines()}):
        version = subprocess.check_output(["dpkg-query", "-W", "-f", "${Version} ", package], text=True).split()[0]
        found[package] = version, pathlib.Path(f"/usr/share/doc/{package}/copyright")
    return {name: found[name] for name in sorted(found) if not INTERFACES.match(name)}


def spdx(version, packages):
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    entries = [{"name": "fovea", "SPDXID": "SPDXRef-fovea", "versionInfo": version, "licenseConcluded": "Apache-2.0"}]
    for name, (of, _) in packages.items():
        licence = next((spelled for begins, spelled in LICENCES.items() if re.match(begins, name)), None)
        if licence is None:
            sys.exit(f"linked.py: expected a licence's name for {name} among LICENCES, got none")
        entries.append(
            {
                "name": name,
                "SPDXID": "SPDXRef-" + re.sub(r"[^\w.-]|_", "-", name),
                "versionInfo": of,
                "licenseConcluded": licence,
            }
        )
    for entry in entries:
        entry |= {"downloadLocation": "NOASSERTION", "filesAnalyzed": False}
    digest = hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:32]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"fovea-{version}",
        "documentNamespace": f"https://fovea.invalid/spdx/{version}/{digest}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: packaging/linked.py"],
        },
        "packages": entries,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": "SPDXRef-fovea",
            },
            *(
                {
                    "spdxElementId": "SPDXRef-fovea",
                    "relationshipType": "CONTAINS",
                    "relatedSpdxElement": entry["SPDXID"],
                }
                for entry in entries[1:]
            ),
        ],
    }


def main():
    ninja, build, folder, version = sys.argv[1:]
    folder = pathlib.Path(folder)
    packages = owners(headers(ninja, build))
    for kind in ("licenses", "sboms"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    (folder / "sboms/fovea.spdx.json").write_text(json.dumps(spdx(version, packages), indent=1) + "\n")
    for name, (_, licence) in packages.items():
        shutil.copyfile(licence, folder / "licenses" / name)


if __name__ == "__main__":
    main()

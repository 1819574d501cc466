#!/usr/bin/env python3
"""Makes an OCI image of a command line: an archive of an image layout, with one image for each architecture.

    image.py IMAGE.tar VERSION ARCHITECTURE=PREFIX...    PREFIX is an installed tree for amd64 or arm64
    image.py --unpack IMAGE.tar ARCHITECTURE FOLDER      the layers' files, as a container would see them

An image has the command line, the C library that it wants, and their licences: no shell, nothing that can write. It runs as
nobody. The bytes depend on what is put in and on SOURCE_DATE_EPOCH.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
NOBODY = 65534
MEDIA = "application/vnd.oci.image."


def find_library(triplet, name):
    """Where this machine has a library of the C library's, for its own programs or for another machine's."""
    places = [f"/lib/{triplet}", f"/usr/lib/{triplet}", f"/usr/{triplet}/lib"]
    found = next((path for path in (pathlib.Path(place, name) for place in places) if path.is_file()), None)
    if found is None:
        sys.exit(f"image.py: expected {name} in one of {', '.join(places)}, got none")
    return found


def find_files(prefix, architecture):
    """{path in the image: file} of the command line, its loader and libraries, and licences."""
    triplet, program = TRIPLETS[architecture], prefix / "bin/fovea"
    said = subprocess.check_output(["readelf", "-lW", "-dW", program], text=True)
    loader = re.search(r"interpreter: (/\S+)\]", said)[1]
    files = {"usr/bin/fovea": program, loader[1:]: find_library(triplet, pathlib.Path(loader).name)}
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", said):
        if library != pathlib.Path(loader).name:
            files[f"lib/{triplet}/{library}"] = find_library(triplet, library)
    documents = prefix / "share/doc/fovea"
    kept = [documents / "LICENSE", *documents.glob("licenses/*"), *documents.glob("sboms/*")]
    files |= {f"usr/share/doc/fovea/{path.relative_to(documents)}": path for path in kept}
    files["usr/share/doc/fovea/licenses/libc6"] = pathlib.Path("/usr/share/doc/libc6/copyright")
    return files


def make_layer(files):
    """A tar archive of files, and of folders that they are in."""
    out = io.BytesIO()
    folders = {str(parent) for path in files for parent in pathlib.PurePath(path).parents} - {"."} | {"models", "tmp"}
    contents = {path: file.read_bytes() for path, file in files.items()}
    contents["etc/passwd"] = f"nobody:x:{NOBODY}:{NOBODY}:nobody:/tmp:/\n".encode()
    folders.add("etc")
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted([*folders, *contents]):
            entry = tarfile.TarInfo(path)
            entry.mtime, entry.mode = EPOCH, 0o755
            if path in folders:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if path == "tmp" else 0o755
                archive.addfile(entry)
                continue
            entry.size = len(contents[path])
            entry.mode = 0o755 if path.startswith(("usr/bin", "lib")) else 0o644
            archive.addfile(entry, io.BytesIO(contents[path]))
    return out.getvalue()


class Layout:
    """An image layout that grows, blob by blob."""

    def __init__(self):
        self.blobs = {}

    def add(self, data, kind):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": MEDIA + kind, "digest": f"sha256:{digest}", "size": len(data)}

    def add_json(self, value, kind):
        return self.add(json.dumps(value, separators=(",", ":")).encode(), kind)

    def add_image(self, files, architecture, version):
        layer = make_layer(files)
        created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        config = {
            "created": created,
            "architecture": architecture,
            "os": "linux",
            "config": {
                "User": f"{NOBODY}:{NOBODY}",
                "ExposedPorts": {"8080/tcp": {}},
                "Env": ["PATH=/usr/bin", "HOME=/tmp"],
                "Entrypoint": ["/usr/bin/fovea"],
                "Cmd": ["serve", "--host", "0.0.0.0"],
                "WorkingDir": "/models",
                "Labels": {
                    "org.opencontainers.image.title": "fovea",
                    "org.opencontainers.image.version": version,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
            "history": [{"created": created, "created_by": "packaging/image.py"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MEDIA + "manifest.v1+json",
            "config": self.add_json(config, "config.v1+json"),
            "layers": [self.add(gzip.compress(layer, 9, mtime=0), "layer.v1.tar+gzip")],
        }
        return self.add_json(manifest, "manifest.v1+json") | {"platform": {"architecture": architecture, "os": "linux"}}

    def write(self, path, images, version):
        """Podman and Docker read the name from the index; an index of its own is what both choose an architecture from."""
        index = {"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": images}
        names = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"docker.io/library/fovea:{version}"}
        top = {"schemaVersion": 2, "manifests": [self.add_json(index, "index.v1+json") | {"annotations": names}]}
        entries = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(top).encode(), **self.blobs}
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
            for name, data in sorted(entries.items()):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime, entry.mode = len(data), EPOCH, 0o644
                archive.addfile(entry, io.BytesIO(data))


def unpack(image, architecture, folder):
    """Follows the index, the image's manifest and its layers, and checks the digest of each."""
    with tarfile.open(image) as archive:

        def read(descriptor):
            data = archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
            digest = "sha256:" + hashlib.sha256(data).hexdigest()
            if (digest, len(data)) != (descriptor["digest"], descriptor["size"]):
                sys.exit(f"image.py: expected {descriptor['digest']}, got {digest}")
            return data

        top = json.load(archive.extractfile("index.json"))
        images = json.loads(read(top["manifests"][0]))["manifests"]
        manifest = json.loads(read(next(each for each in images if each["platform"]["architecture"] == architecture)))
        config = json.loads(read(manifest["config"]))
        for layer, diff in zip(manifest["layers"], config["rootfs"]["diff_ids"]):
            data = gzip.decompress(read(layer))
            if "sha256:" + hashlib.sha256(data).hexdigest() != diff:
                sys.exit(f"image.py: expected a layer {diff}, got another")
            with tarfile.open(fileobj=io.BytesIO(data)) as files:
                files.extractall(folder)
    print(json.dumps(config["config"]))


def main():
    if sys.argv[1] == "--unpack":
        unpack(*sys.argv[2:])
        return
    image, version, *trees = sys.argv[1:]
    layout, images = Layout(), []
    for tree in trees:
        architecture, _, prefix = tree.partition("=")
        if architecture not in TRIPLETS:
            sys.exit(f"image.py: expected an architecture of {', '.join(TRIPLETS)}, got {architecture}")
        images.append(layout.add_image(find_files(pathlib.Path(prefix), architecture), architecture, version))
    layout.write(image, images, version)


if __name__ == "__main__":
    main()

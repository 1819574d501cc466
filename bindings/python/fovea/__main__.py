"""``python -m fovea`` is the command line, which comes with the package."""

import importlib.metadata
import os
import sys


def main() -> None:
    """Run the command ``fovea`` in place of this process, from wherever it was installed."""
    files = importlib.metadata.files("fovea-engine") or []
    commands = [str(file.locate()) for file in files if file.stem == "fovea" and file.suffix in ("", ".exe")]
    command = next(filter(os.path.isfile, commands), None)
    if command is None:
        sys.exit(
            f"fovea: expected the command fovea among the files of the package fovea-engine, got {commands or 'none'}"
        )
    os.execv(command, ["fovea", *sys.argv[1:]])


if __name__ == "__main__":
    main()

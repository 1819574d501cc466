"""``python -m fovea`` is the command line, which comes with the package."""

import importlib.metadata
import os
import sys
from pathlib import Path


def main() -> None:
    """Run the command ``fovea`` in place of this process, from wherever it was installed."""
    files = importlib.metadata.files("fovea-engine") or []
    places = [str(file.locate()) for file in files if file.name == "fovea"]
    places.append(str(Path(__file__).parents[1] / "bin" / "fovea"))  # where pip install --target has it
    command = next(filter(os.path.isfile, places), None)
    if command is None:
        sys.exit(f"fovea: expected the command fovea, as wheels bring it, got none at {' or '.join(places)}")
    os.execv(command, ["fovea", *sys.argv[1:]])


if __name__ == "__main__":
    main()

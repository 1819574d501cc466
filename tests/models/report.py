"""What was tried, with what came of it: a table, and expectations that are committed."""
import importlib.util
import json
import pathlib
import subprocess

import numpy

EXPECTED = pathlib.Path(__file__).with_name("expected.json")
N_KEPT = 48
HAS_TORCH = all(map(importlib.util.find_spec, ("torch", "transformers", "gguf")))


class Report:
    """Rows of (model, what, Fovea's result, the reference, their difference), and how many are wrong."""

    def __init__(self, fovea, work, writing):
        self.fovea, self.work, self.writing = fovea, work, writing
        self.expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
        self.rows, self.n_wrong = [], 0
        self.model = ""

    def run(self, *arguments, text=None, check=True):
        """What the command line writes."""
        done = subprocess.run([self.fovea, *map(str, arguments)], input=text, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"fovea {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def array(self, *arguments):
        """The array that the command line writes."""
        out = self.work / "out.npy"
        self.run(*arguments, "-o", out)
        array = numpy.load(out)
        out.unlink()
        return array

    def row(self, what, ours, reference, difference, right):
        self.rows.append((self.model, what, ours, reference, difference if right else f"**WRONG** {difference}"))
        self.n_wrong += not right
        print(f"{'' if right else 'WRONG '}{self.model}, {what}: {ours} | {reference} | {difference}", flush=True)

    def text(self, what, got):
        """A text must be the committed one on every machine."""
        expected = self.kept(what, got)
        short = " ".join(got.split())
        difference = "none" if got == expected else f"expected {expected!r}, got {got!r}"
        self.row(what, short if len(short) < 60 else short[:57] + "…", "committed", difference, got == expected)

    def true(self, what, ours, reference, right):
        self.row(what, ours, reference, "none" if right else "other", right)

    def near(self, what, got, refer, limit):
        """An array beside transformers', computed by `refer` where torch is, else beside its largest values, as committed."""
        values = got.astype(float).ravel()
        if HAS_TORCH:
            reference = refer().astype(float).ravel()
            at = numpy.sort(numpy.argsort(-abs(reference), kind="stable")[:N_KEPT])
            self.kept(what, {"at": at.tolist(), "is": [float(f"{x:.6g}") for x in reference[at]]})
            whose = "transformers"
        else:
            kept = self.kept(what, None)
            reference, values = numpy.array(kept["is"]), values[kept["at"]]
            whose = f"transformers, {len(values)} committed"
        error = float(abs(values - reference).max() / abs(reference).max())
        self.row(what, f"{len(values):,} values", whose, f"{error:.1e}", error < limit)

    def kept(self, what, value):
        """What is committed of this, or will be."""
        key = f"{self.model}: {what}"
        if self.writing:
            self.expected[key] = value
        return self.expected.get(key)

    def close(self):
        print("\n| model | what | Fovea | reference | difference |\n|---|---|---|---|---|")
        for row in self.rows:
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
        if self.writing:
            EXPECTED.write_text(json.dumps(self.expected, indent=1, ensure_ascii=False, sort_keys=True) + "\n")

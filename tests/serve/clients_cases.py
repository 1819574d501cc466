"""What tests of other people's clients share: a server, what is asked of it, and what every answer must be."""
import importlib.metadata
import json
import os
import tempfile
import unittest

COMMAND = "turn on the reading lamp"
ANSWER = '{"do":"on","device":"reading lamp"}'
SCHEMA = {"type": "object", "properties": {"what": {"enum": ["jazz", "rock"]}}, "required": ["what"],
          "additionalProperties": False}
FUNCTION = {"name": "play", "description": "Plays music.", "parameters": SCHEMA}
TOOL = {"type": "function", "function": FUNCTION}
FORM = {"type": "json_schema", "json_schema": {"name": "music", "schema": SCHEMA, "strict": True}}
MESSAGES = [{"role": "user", "content": COMMAND}]
KEY = "none"
# Clients that would ask other servers do without.
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
           "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HAYSTACK_TELEMETRY_ENABLED": "False", "OPENAI_AGENTS_DISABLE_TRACING": "1"}


class Shared:
    """Set before any test runs: the server, and the program and files that it was started from."""
    server = fovea = golden = speech = None


def base():
    """The address of OpenAI's API."""
    return Shared.server.url + "/v1"


class Client(unittest.TestCase):
    """A test for each kind of call, named after it: CALLS in clients_test.py."""
    PACKAGES = ()  # from PyPI; the first is the client
    PLACE = ""  # the environment that it shares with others; empty: its own, so that none holds another's packages back
    IS_QUICK = False  # it installs in seconds, and is tried with each change

    @classmethod
    def environment(cls):
        return cls.PLACE or cls.__name__

    @classmethod
    def is_there(cls):
        names = [name.partition("[")[0] for name in cls.PACKAGES]
        return all(any(importlib.metadata.distributions(name=name)) for name in names)

    @classmethod
    def version(cls):
        return importlib.metadata.version(cls.PACKAGES[0].partition("[")[0])

    def check_form(self, text):
        self.assertIn(json.loads(text)["what"], ("jazz", "rock"))

    def scratch(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name


def music():
    """The schema as a class of pydantic's."""
    from typing import Literal

    import pydantic

    class Music(pydantic.BaseModel):
        """Music."""
        what: Literal["jazz", "rock"]

    return Music


def recording():
    return os.path.join(Shared.golden, "recordings/three.wav")

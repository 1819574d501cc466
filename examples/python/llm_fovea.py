"""A plugin for `llm`: `llm -m fovea -o path model.fovea "a prompt"`, found by an entry point of the group "llm"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import llm

import fovea


@llm.hookimpl
def register_models(register: Any) -> None:
    """Add the model to those that llm knows."""
    register(Fovea())


class Fovea(llm.Model):
    """Continues the prompt."""

    model_id = "fovea"
    can_stream = True

    class Options(llm.Options):
        """What -o sets."""

        path: str
        max_new_tokens: int = 128
        temperature: float = 0.0

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        """Yield the answer as it is made."""
        options = prompt.options
        model = fovea.Model(options.path)
        yield from model.stream(prompt.prompt, max_new_tokens=options.max_new_tokens, temperature=options.temperature)

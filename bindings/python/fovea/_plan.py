"""Exact memory, before any is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _fovea


@dataclass(frozen=True)
class Limits:
    """What a session must be able to hold. 0 stands for the model's own length, or what the call needs.

    max_kv_len: positions of a text. Raising it costs keys and values.
    max_batch: rows computed together. Raising it costs activations and makes long prompts a little faster.
    n_threads: the size of the team. 0: the fast cores.
    kv_type: "f32", "f16", "q8" or "q4", how keys and values are kept.
    max_sequences, max_key_rows: of encoders and attention alone; max_sequences of a workspace: steps in one pass.
    """

    max_kv_len: int = 0
    max_batch: int = 0
    n_threads: int = 0
    kv_type: str = "f32"
    max_sequences: int = 0
    max_key_rows: int = 0

    def _named(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class PlanPart:
    """One stretch of an arena, in bytes from its start."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Plan:
    """The memory of a session or a workspace: the same on every machine.

    arena_bytes: exactly what is taken.
    limits: with the zeros replaced by what they stand for.
    parts: what lies where.
    """

    arena_bytes: int
    limits: Limits
    parts: tuple[PlanPart, ...]


def make_plan(model: _fovea.Model, limits: Limits, *, of_workspace: bool = False) -> Plan:
    """Plan a session, or a workspace."""
    arena_bytes, settled, parts = _fovea.plan(model, limits._named(), of_workspace)
    return Plan(arena_bytes, Limits(**settled), tuple(PlanPart(*part) for part in parts))

"""Decoders beside a memory: token by token, many texts and memories in a pass, forks, saved and restored."""

import numpy as np
import pytest
from conftest import GOLDEN

import fovea

TEXTS = GOLDEN / "torch_text"


class Beside:
    """A golden model of PyTorch with a pool for texts, one for memories, and what it was given."""

    def __init__(self, name, **limits):
        folder = TEXTS / name
        self.model = fovea.Model(folder)
        self.ids = np.load(folder / "ids.npy").ravel().tolist()
        self.expected = np.load(folder / "expected.npy").reshape(len(self.ids), -1)
        is_captions = name == "captions"
        source = np.load(folder / ("memory.npy" if is_captions else "source.npy"))
        self.source = source.reshape(-1, source.shape[-1]).astype(np.float32) if is_captions else source.ravel()
        self.texts = fovea.CachePool(self.model, max_sequences=8, **limits)
        self.memories = fovea.CachePool(self.model, max_sequences=4, max_kv_len=40, memory=True, **limits)
        self.workspace = fovea.Workspace(self.model, max_batch=40, max_sequences=4, max_kv_len=40)

    def memory(self, source=None):
        """A memory of the golden source, or of another."""
        memory = self.memories.cache()
        self.workspace.cache_memory([memory], [self.source if source is None else source])
        return memory

    def logits(self, cache, ids, memory):
        """What follows each of the ids: [n, vocab_size]."""
        out = np.empty((len(ids), self.model.vocab_size), np.float32)
        self.workspace.forward([fovea.Step(cache, ids, out, memory)])
        return out


@pytest.fixture(params=["captions", "translation"])
def beside(request):
    return Beside(request.param)


def test_logits_are_pytorchs_and_do_not_depend_on_the_split(beside):
    memory = beside.memory()
    whole = beside.logits(beside.texts.cache(), beside.ids, memory)
    assert np.abs(whole - beside.expected).max() <= 1e-4 * np.abs(beside.expected).max()
    cache = beside.texts.cache()
    steps = [beside.logits(cache, [i], memory) for i in beside.ids]
    assert np.concatenate(steps).tobytes() == whole.tobytes()


def test_many_texts_and_memories_in_a_pass(beside):
    short = beside.source[: len(beside.source) // 2]
    memories = [beside.memories.cache() for _ in range(2)]
    beside.workspace.cache_memory(memories, [beside.source, short])
    alone = [
        beside.logits(beside.texts.cache(), beside.ids, memory) for memory in (beside.memory(), beside.memory(short))
    ]
    assert alone[0].tobytes() != alone[1].tobytes()
    outs = [np.empty_like(alone[0]) for _ in range(3)]
    which = [0, 1, 0]
    steps = [fovea.Step(beside.texts.cache(), beside.ids, out, memories[of]) for out, of in zip(outs, which)]
    beside.workspace.forward(steps)
    for out, of in zip(outs, which):
        assert out.tobytes() == alone[of].tobytes()


def test_a_memory_is_forked_saved_and_restored(beside):
    memory = beside.memory()
    whole = beside.logits(beside.texts.cache(), beside.ids, memory)
    restored = beside.memories.cache()
    restored.restore(memory.save())
    for other in (memory.fork(), restored):
        assert beside.logits(beside.texts.cache(), beside.ids, other).tobytes() == whole.tobytes()


def test_what_is_refused(beside, demo):
    memory, cache = beside.memory(), beside.texts.cache()
    workspace = beside.workspace
    for call, error in [
        (lambda: workspace.forward([fovea.Step(cache, beside.ids)]), ValueError),  # no memory
        (
            lambda: workspace.forward([fovea.Step(cache, [1], None, beside.memories.cache())]),
            ValueError,
        ),  # an empty one
        (lambda: workspace.forward([fovea.Step(cache, [1], None, 3)]), (TypeError, AttributeError)),
        (lambda: workspace.cache_memory([memory], [beside.source]), ValueError),  # filled already
        (lambda: workspace.cache_memory([cache], [beside.source]), ValueError),  # of another pool
        (lambda: workspace.cache_memory([], []), ValueError),
        (lambda: workspace.cache_memory([beside.memories.cache()], []), ValueError),
        (lambda: workspace.cache_memory([beside.memories.cache()], [np.ones((2, 2, 2))]), (TypeError, ValueError)),
        (lambda: fovea.Workspace(demo).cache_memory([memory], [[1]]), (TypeError, ValueError)),
        (lambda: fovea.CachePool(demo, memory=True), ValueError),
        (lambda: beside.model.generate([1]), ValueError),
    ]:
        with pytest.raises(error) as refused:
            call()
        assert str(refused.value)
    assert beside.logits(cache, beside.ids, memory).shape == beside.expected.shape

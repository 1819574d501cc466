"""Threads that share what they should not: calls wait for one another or raise, and no bit of a result changes.

In a free-threaded Python they truly run at once; elsewhere the interpreter switches between them as often as it can.
"""

import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest

import fovea

N_THREADS = 8
ROUNDS = 30
EXPECTED = (TypeError, ValueError, IndexError, OSError, fovea.Cancelled)
TEXTS = ["turn on the lamp", "is the front door locked", "play jazz in the kitchen", "wake me up at 7 am"]


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work, n_threads=N_THREADS):
    """Calls work(0), work(1), … in a thread each, all begun together; raises what one of them raises."""
    begin, raised = threading.Barrier(n_threads), []

    def run(number):
        begin.wait()
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="a Python with a GIL")
def test_importing_it_leaves_the_gil_off():
    path = [entry for entry in sys.path if entry]
    program = f"import sys; sys.path[:0] = {path!r}; import fovea; sys.exit(sys._is_gil_enabled())"
    assert subprocess.run([sys.executable, "-X", "gil=0", "-W", "error", "-c", program]).returncode == 0
    # And nobody has to ask for it: a module that is not declared safe would have switched it on.
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_sessions_of_one_model_that_run_at_once_have_the_bits_of_one_alone(demo):
    expected = [demo.logits(text).tobytes() for text in TEXTS]

    def work(number):
        session = demo.session(max_kv_len=64, n_threads=1)
        for i in range(ROUNDS):
            at = (number + i) % len(TEXTS)
            session.rewind()
            assert session.forward_all(demo.tokenize(TEXTS[at])).tobytes() == expected[at]

    at_once(work)


def test_methods_of_one_model_that_run_at_once(demo, bert, classes):
    texts = [demo.generate(text) for text in TEXTS]
    vectors = bert.encode(TEXTS).tobytes()
    said = classes.classify(TEXTS)
    form = demo.generate(TEXTS[0], regex="yes|no")

    def work(number):
        for i in range(number, number + 4):
            assert demo.generate(TEXTS[i % 4]) == texts[i % 4]
            assert bert.encode(TEXTS).tobytes() == vectors
            assert classes.classify(TEXTS) == said
            assert demo.generate(TEXTS[0], regex="yes|no") == form

    at_once(work)


def test_one_session_takes_any_calls_of_many_threads(demo):
    session, other = (demo.session(max_kv_len=32, n_threads=1) for _ in range(2))
    session.append([1, 2, 3])
    saved = session.save()
    stopped = threading.Event()
    calls = [
        lambda: session.forward([1, 2]),
        lambda: session.forward_all([4, 5, 6]),
        lambda: session.rewind(2),
        lambda: session.rewind(),
        lambda: session.restore(saved),
        lambda: session.restore(session.save()),
        lambda: session.generate([1, 2, 3, 4], max_new_tokens=3, seed=5, temperature=1.0),
        lambda: next(session.stream(TEXTS[0], stop="lamp")),
        lambda: session.generate(TEXTS[1], regex="[ab]{4}", max_new_tokens=3),
        lambda: session.tokens,
        lambda: session.fork().tokens,
        lambda: other._native.copy_from(session._native),
        lambda: session._native.copy_from(other._native),
        lambda: session.cancel(),
        lambda: session._native.attention([1, 2], [0], np.empty((1, demo.n_heads, 2, 2), np.float32)),
        lambda: session.kv_len <= session.max_kv_len or pytest.fail("a cache beyond its room"),
    ]

    def work(number):
        for i in range(ROUNDS):
            try:
                calls[(number * 5 + i * 7) % len(calls)]()
            except EXPECTED as refused:
                assert str(refused)
        stopped.set()

    at_once(work)
    assert stopped.is_set()
    for one in (session, other):
        try:
            one.rewind(min(one.kv_len, 20))
            one.append([9])
        except fovea.Cancelled:  # the last cancel() came behind the last pass
            one.append([9])
        ids = one.tokens
        assert len(ids) == one.kv_len
        alone = demo.session(max_kv_len=32, n_threads=1)
        alone.append(ids)
        assert one.forward([7]).tobytes() == alone.forward([7]).tobytes()


def test_a_model_may_be_closed_while_others_use_it(demo):
    path = demo._path
    for _ in range(4):
        model = fovea.Model(path, n_threads=1)
        expected = model.tokenize(TEXTS[0])

        def work(number, model=model, expected=expected):
            try:
                for _ in range(ROUNDS):
                    if number == 0:
                        model.close()
                    assert model.tokenize(TEXTS[0]) == expected
                    model.generate(TEXTS[number % 4], max_new_tokens=2)
            except ValueError as refused:
                assert "closed" in str(refused)

        at_once(work)
        assert model.closed


def test_one_pool_and_one_workspace_of_many_threads(demo):
    pool = fovea.CachePool(demo, max_sequences=24, max_kv_len=64)
    shared = fovea.Workspace(demo, max_batch=16, max_sequences=4, max_kv_len=64, n_threads=1)
    stem = pool.cache()
    shared.forward([fovea.Step(stem, [1, 2, 3])])
    session = demo.session(max_kv_len=64, n_threads=1)
    expected = session.forward_all([1, 2, 3, 4, 5, 6])[5].tobytes()

    def work(number):
        own = fovea.Workspace(demo, max_batch=16, max_sequences=4, max_kv_len=64, n_threads=1)
        logits = np.empty(demo.vocab_size, np.float32)
        for i in range(ROUNDS):
            cache = stem.fork()
            (own if (number + i) % 2 else shared).forward([fovea.Step(cache, [4, 5, 6], logits)])
            assert logits.tobytes() == expected
            if i % 3 == 0:
                cache.close()

    at_once(work)
    assert pool.n_free_sequences == 23
    assert stem.kv_len == 3


def test_one_cache_of_many_threads(demo):
    pool = fovea.CachePool(demo, max_sequences=12, max_kv_len=32)
    cache, saved = pool.cache(), None
    workspace = fovea.Workspace(demo, max_batch=8, max_sequences=2, max_kv_len=32, n_threads=1)
    workspace.forward([fovea.Step(cache, [1, 2])])
    saved = cache.save()
    calls = [
        lambda: workspace.forward([fovea.Step(cache, [3])]),
        lambda: workspace.forward([fovea.Step(cache, [3]), fovea.Step(cache, [4])]),
        lambda: cache.rewind(1),
        lambda: cache.fork().fork(),
        lambda: cache.restore(saved),
        lambda: cache.save(),
        lambda: cache.kv_len,
        lambda: workspace.cancel(),
    ]

    def work(number):
        for i in range(ROUNDS):
            try:
                calls[(number + i * 3) % len(calls)]()
            except EXPECTED as refused:
                assert str(refused)
        if number == 0:
            cache.close()

    at_once(work)
    assert cache.kv_len == 0
    assert pool.n_free_sequences == 12


def test_one_attention_of_many_threads():
    rng = np.random.default_rng(1)
    state = {
        "in_proj_weight": rng.normal(size=(24, 8)).astype(np.float32),
        "in_proj_bias": rng.normal(size=24).astype(np.float32),
        "out_proj.weight": rng.normal(size=(8, 8)).astype(np.float32),
        "out_proj.bias": rng.normal(size=8).astype(np.float32),
    }
    module = fovea.MultiheadAttention(8, 2, state_dict=state, n_threads=1)
    inputs = [rng.normal(size=(n, 1, 8)).astype(np.float32) for n in (3, 40, 9, 17)]
    expected = [[array.tobytes() for array in module(x, x, x)] for x in inputs]
    heads = [fovea.attend(x, x, x).tobytes() for x in inputs]

    def work(number):
        for i in range(ROUNDS):
            at = (number + i) % len(inputs)
            x = inputs[at]
            assert [array.tobytes() for array in module(x, x, x)] == expected[at]
            assert fovea.attend(x, x, x, n_threads=1).tobytes() == heads[at]

    at_once(work)


def test_lists_and_arrays_that_change_while_they_are_read(demo):
    """A result or an exception: what one thread writes while another's call reads it is the caller's affair."""
    ids, array, biases, texts = [1] * 40, np.ones(40, np.int64), {1: 1.0}, ["a"] * 40
    out = np.empty(demo.vocab_size, np.float32)
    ends = threading.Event()

    def change(number):
        for i in range(10 * ROUNDS):
            del ids[i % 30 :]
            ids.extend([i, -1, "x"][: i % 4] + [1] * 40)
            array[:] = i - 5
            biases[i % 50] = float(i)
            biases.pop((i * 7) % 50, None)
            texts[:] = ["b"] * (i % 40) + [None] * (i % 2)
        ends.set()

    def use(number):
        session = demo.session(max_kv_len=64, n_threads=1)
        while not ends.is_set():
            for call in (
                lambda: session.forward(ids, out=out),
                lambda: session.forward(array, out=out),
                lambda: demo.detokenize(ids),
                lambda: demo.generate([1], max_new_tokens=1, logit_bias=biases),
                lambda: demo.generate([1], max_new_tokens=1, stop=texts),
            ):
                try:
                    call()
                except (*EXPECTED, RuntimeError) as refused:  # dictionary changed size during iteration: Python's own
                    assert str(refused)
            session.rewind()

    at_once(lambda number: change(number) if number == 0 else use(number), 4)

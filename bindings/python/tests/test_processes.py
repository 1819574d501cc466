"""Threads, processes, signals, and what a call costs."""

import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import DEMO, GOLDEN

import fovea

TEXTS = ["turn on the lamp", "is the front door locked", "play jazz in the kitchen", "wake me up at 7 am"]


def answers(path):
    with fovea.Model(path, n_threads=1) as model:
        return [model.generate(text) for text in TEXTS]


def answer_of(model, text):
    return model.generate(text)


def test_eight_threads_with_a_session_each(demo):
    expected = [demo.logits(text).tobytes() for text in TEXTS]
    wrong = []

    def work(number):
        session = demo.session(max_kv_len=64, n_threads=1)
        for i in range(20):
            at = (number + i) % len(TEXTS)
            session.rewind()
            if session.forward_all(demo.tokenize(TEXTS[at])).tobytes() != expected[at]:
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_eight_threads_with_one_model_and_one_session(demo, bert):
    expected = [demo.generate(text) for text in TEXTS]
    vectors = bert.encode(TEXTS)
    session = demo.session(max_kv_len=64)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(demo.generate, TEXTS * 8)) == expected * 8
        assert all((v == vectors).all() for v in pool.map(bert.encode, [TEXTS] * 16))
        kept = list(pool.map(session.append, [[1]] * 32))  # they wait for one another
    assert len(kept) == session.kv_len == 32


def test_other_threads_run_during_a_pass():
    query = np.ones((1, 8, 2000, 64), np.float32)
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    fovea.attend(query, query, query, n_threads=1)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    assert counted[0] > seconds * 20, f"counted {counted[0]} in {seconds:.3f} s"


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pools_of_processes(demo, method):
    expected = [demo.generate(text) for text in TEXTS]
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map(answers, [DEMO] * 3) == [expected] * 3
        assert pool.starmap(answer_of, [(demo, text) for text in TEXTS]) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_its_parents_model(demo):
    expected = demo.logits("turn on the lamp").tobytes()
    model = fovea.Model(DEMO, n_threads=2)
    model.logits("turn on the lamp")  # its threads stay with the parent
    child = os.fork()
    if child == 0:
        os._exit(0 if model.logits("turn on the lamp").tobytes() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


INTERRUPTED = """
import signal, sys, time
import numpy as np, fovea
x = np.ones((8, 16, 4000, 64), np.float32)
print("ready", flush=True)
start = time.perf_counter()
try:
    fovea.attend(x, x, x, n_threads=1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
y = np.ones((1, 1, 3, 4), np.float32)
assert (fovea.attend(y, y, y) == 1).all()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.raise_signal(signal.SIGINT)
assert (fovea.attend(y, y, y) == 1).all()
"""

HANDLED = """
import signal
import numpy as np, fovea
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
x = np.random.default_rng(1).normal(size=(2, 8, 2000, 64)).astype(np.float32)
expected = fovea.attend(x, x, x, n_threads=1)
print("ready", flush=True)
while not seen:
    assert (fovea.attend(x, x, x, n_threads=1) == expected).all()
print("interrupted", flush=True)
"""


def interrupt(program):
    """Send SIGINT while it computes; return what it prints and how long it then took."""
    environment = {**os.environ, "PYTHONPATH": str(Path(fovea.__file__).parents[1])}
    ran = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        # Shells start background jobs with it ignored, and Python then has no handler for it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert ran.stdout.readline() == "ready\n"
    time.sleep(0.5)
    start = time.perf_counter()
    ran.send_signal(signal.SIGINT)
    out = ran.communicate(timeout=120)[0]
    return ran.returncode, out, time.perf_counter() - start


TOKENIZES = """
import fovea
model = fovea.Model({path!r})
texts = ["some words here " * 25000] * 400
print("ready", flush=True)
try:
    model.encode(texts)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_the_reading_of_texts():
    status, out, seconds = interrupt(TOKENIZES.format(path=str(GOLDEN / "encoders" / "bert_sentence")))
    assert (status, out) == (0, "interrupted\n")
    assert seconds < 5  # all of them take a minute


def test_ctrl_c_ends_a_pass():
    status, out, _ = interrupt(INTERRUPTED)
    assert (status, out) == (0, "interrupted\n")


def test_a_handler_that_returns_lets_the_pass_go_on():
    status, out, _ = interrupt(HANDLED)
    assert (status, out) == (0, "interrupted\n")


DAEMON = """
import threading, time
import numpy as np, fovea
model = fovea.Model({path!r}, n_threads=1)
x, text = np.ones((1, 8, 1000, 64), np.float32), "some words " * 20000
begun = threading.Event()

def work():
    while True:
        begun.set()
        {call}

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.3)
"""


@pytest.mark.parametrize(
    "call",
    [
        "model.logits(list(range(100)))",
        "model.generate([1, 2, 3], max_new_tokens=100)",
        "fovea.attend(x, x, x, n_threads=1)",
        "model.tokenize(text)",
        "model.session(max_kv_len=16).save()",
        "fovea.Model({path!r})",
    ],
)
def test_a_process_ends_whatever_its_daemon_threads_compute(call):
    program = DAEMON.replace("{call}", call).format(path=str(DEMO))
    environment = {**os.environ, "PYTHONPATH": str(Path(fovea.__file__).parents[1])}
    for _ in range(3):
        ran = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def overhead_of_a_call(n_tries=400, repeat=500):
    """Microseconds of a call with the smallest pass there is, of one number. The best of many short runs."""
    one, out = np.ones((1, 1), np.float32), np.empty((1, 1), np.float32)
    best = float("inf")
    for _ in range(n_tries):
        start = time.perf_counter()
        for _ in range(repeat):
            fovea.attend(one, one, one, out=out)
        best = min(best, time.perf_counter() - start)
    return best / repeat * 1e6


def test_a_call_costs_microseconds():
    # docs/results.md has what was measured; this bound is for what is an order of magnitude slower.
    assert overhead_of_a_call(5) < 100

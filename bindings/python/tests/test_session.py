"""Sessions, workspaces, pools and caches: what is computed does not depend on how it is asked for."""

import json
import subprocess

import numpy as np
import pytest
from conftest import DEMO, GOLDEN

import fovea

IDS = [5, 9, 200, 31, 77, 6, 18, 250, 3, 40]


def test_any_split_gives_the_same_bits(demo):
    whole = demo.logits(IDS)
    session = demo.session(max_kv_len=64, n_threads=2)
    session.append(IDS[:3])
    assert session.forward(IDS[3:4]).tobytes() == whole[3].tobytes()
    assert session.forward_all(np.array(IDS[4:8])).tobytes() == whole[4:8].tobytes()
    out = np.empty(demo.vocab_size, np.float32)
    assert session.forward(np.array(IDS[8:], dtype=np.uint32), out=out) is out
    assert out.tobytes() == whole[9].tobytes()
    assert session.tokens == IDS
    assert (session.kv_len, session.max_kv_len) == (10, 64)


def test_rows_in_place_of_ids(demo):
    width = demo.d_model
    rows = np.random.default_rng(1).standard_normal((6, width), dtype=np.float32) * 0.1
    session = demo.session(max_kv_len=64)
    session.append(IDS[:3])
    whole = session.forward_all(rows)
    session.rewind(3)
    session.append(rows[:2])
    assert session.forward(rows[2:5]).tobytes() == whole[4].tobytes()
    assert session.kv_len == 8
    assert session.tokens[:3] == IDS[:3]
    assert all(key >= 1 << 31 for key in session.tokens[3:])
    with pytest.raises(ValueError, match=rf"ids: expected shape \[n, {width}\] of rows, got"):
        session.forward(rows[:, :-1].copy())
    with pytest.raises(ValueError, match="C-contiguous"):
        session.forward(rows[:, :-1])
    with pytest.raises(TypeError, match="float32"):
        session.forward(rows.astype(np.float64))
    assert session.kv_len == 8


@pytest.mark.parametrize("isa", fovea.isa_names())
def test_any_instruction_set_gives_the_same_bits(demo, isa):
    session = demo.session(max_kv_len=64, isa=isa)
    assert session.isa == isa
    assert session.forward_all(IDS).tobytes() == demo.logits(IDS).tobytes()


@pytest.mark.parametrize("kv_type", ["f32", "f16", "q8", "q4"])
def test_save_restore_fork_rewind(demo, kv_type):
    session = demo.session(max_kv_len=64, kv_type=kv_type)
    session.append(IDS[:6])
    saved = session.save()
    expected = session.forward_all(IDS[6:]).tobytes()
    other = demo.session(max_kv_len=32, kv_type=kv_type)
    other.restore(saved)
    assert other.tokens == IDS[:6]
    forked = other.fork()
    assert other.forward_all(IDS[6:]).tobytes() == expected
    assert forked.forward_all(IDS[6:]).tobytes() == expected
    forked.rewind(6)
    assert forked.forward_all(IDS[6:]).tobytes() == expected


def test_a_saved_session_is_a_file_of_the_command_line(demo, command_line, tmp_path):
    path = tmp_path / "session"
    command = [command_line, "run", DEMO, "-p", "is the front door locked", "--session", path]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip("\n")
    session = demo.session(max_kv_len=128)
    session.restore(path.read_bytes())
    prompt = demo.tokenize("is the front door locked" + demo.config["prompt_suffix"])
    assert session.tokens[: len(prompt)] == prompt
    assert session.generate("is the front door locked") == text
    assert session._native.n_kept > 5
    path.write_bytes(session.save())
    again = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout
    assert '"n_kept_tokens":' in again
    assert '"n_kept_tokens":0' not in again


def test_generation_goes_on_from_what_a_session_holds(demo):
    session = demo.session(max_kv_len=128)
    prompt = demo.tokenize("turn on the lamp" + demo.config["prompt_suffix"])
    expected = demo.generate(prompt)
    session.append(prompt[:4])
    assert session.generate(prompt) == expected
    assert session._native.n_kept == 4
    assert session.finish_reason == "end"
    session.append([1, 2, 3])  # somebody else's tokens behind the text
    assert session.generate(prompt) == expected


def test_a_text_that_another_ended_says_so(demo):
    session = demo.session(max_kv_len=128)
    first = session.stream("turn on the lamp")
    next(first)
    session.rewind()
    with pytest.raises(ValueError, match="another call has ended"):
        next(first)


def test_steps_of_many_texts(demo):
    texts = [IDS[i:] for i in range(6)]
    expected = [demo.logits(ids) for ids in texts]
    pool = fovea.CachePool(demo, max_sequences=8, max_kv_len=64)
    workspace = fovea.Workspace(demo, max_batch=16, max_sequences=8, n_threads=2)
    caches = [pool.cache() for _ in texts]
    rows = [np.empty((len(ids), demo.vocab_size), np.float32) for ids in texts]
    workspace.forward([fovea.Step(*parts) for parts in zip(caches, texts, rows)])
    assert [row.tobytes() for row in rows] == [e.tobytes() for e in expected]
    assert [cache.kv_len for cache in caches] == [len(ids) for ids in texts]

    last = np.empty((2, demo.vocab_size), np.float32)
    fork = caches[0].fork()
    workspace.forward([fovea.Step(caches[0], [7], last[0]), fovea.Step(fork, [8], last[1])])
    assert last[0].tobytes() == demo.logits([*IDS, 7])[-1].tobytes()
    assert last[1].tobytes() == demo.logits([*IDS, 8])[-1].tobytes()

    fork.restore(caches[1].save())
    workspace.forward([fovea.Step(fork, [7], last[0])])
    assert last[0].tobytes() == demo.logits([*IDS[1:], 7])[-1].tobytes()


def test_steps_that_share_an_array_for_logits_are_refused(demo):
    pool = fovea.CachePool(demo, max_sequences=3, max_kv_len=64)
    workspace = fovea.Workspace(demo, max_batch=16, max_sequences=3, n_threads=1)
    caches = [pool.cache() for _ in range(3)]
    n = demo.vocab_size
    rows = np.empty((3, n), np.float32)
    for places, words in (
        ((rows[0], rows[1], rows[0]), r"steps\[2\]: .*steps\[0\]"),
        ((rows.reshape(-1)[1 : n + 1], rows[0], None), r"steps\[1\]: .*steps\[0\]"),
        ((rows[2], rows[1:], None), r"steps\[1\]: .*steps\[0\]"),
    ):
        steps = [
            fovea.Step(cache, [1, 2][: 1 + (at is not None and at.ndim == 2)], at) for cache, at in zip(caches, places)
        ]
        with pytest.raises(
            ValueError, match=f"^{words.replace('.*', 'logits: expected memory of its own, got that of ')}$"
        ):
            workspace.forward(steps)
        assert [cache.kv_len for cache in caches] == [0, 0, 0]
    workspace.forward([fovea.Step(cache, [1], row) for cache, row in zip(caches, rows)])
    assert rows[0].tobytes() == rows[2].tobytes() == demo.logits([1])[0].tobytes()


def test_pages_and_caches_come_back(demo):
    pool = fovea.CachePool(demo, max_sequences=2, max_kv_len=64)
    workspace = fovea.Workspace(demo, n_threads=1)
    n_pages = pool.n_free_pages
    for _ in range(10):
        cache = pool.cache()
        workspace.forward([fovea.Step(cache, IDS)])
        assert (cache.n_pages, pool.n_free_pages) == (1, n_pages - 1)
        del cache  # its last user
    assert pool.n_free_pages == n_pages
    held = [pool.cache(), pool.cache()]
    with pytest.raises(fovea.FullError, match="pool"):
        pool.cache()
    held[0].close()
    assert pool.n_free_sequences == 1
    with pytest.raises(ValueError, match="cache"):
        workspace.forward([fovea.Step(held[0], IDS)])


def test_a_full_context_changes_nothing(demo):
    session = demo.session(max_kv_len=12)
    session.append(IDS)
    with pytest.raises(fovea.FullError, match="expected"):
        session.append(IDS)
    assert session.tokens == IDS
    with pytest.raises(fovea.FullError):
        demo.generate([1] * (demo.max_positions + 1))
    for call, words in ((demo.logits, "^ids: expected at most"), (demo.attention, "^text: expected 1 to")):
        with pytest.raises(fovea.FullError, match=words):
            call([1] * (demo.max_positions + 1))


def test_cancel_ends_a_pass_and_leaves_the_session_whole(demo):
    session = demo.session(max_kv_len=64)
    session.append(IDS[:4])
    session.cancel()
    with pytest.raises(fovea.Cancelled):
        session.append(IDS[4:])
    assert session.tokens == IDS[:4]
    assert session.forward_all(IDS[4:]).tobytes() == demo.logits(IDS)[4:].tobytes()


def test_a_next_token_head_proposes_and_changes_no_text(command_line, tmp_path):
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    parts = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    parts |= {"normalizer": None, "pre_tokenizer": byte_level, "post_processor": None, "decoder": {"type": "ByteLevel"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(parts))
    for name, options in (("model", []), ("head", ["--mtp"])):
        command = [command_line, "convert", GOLDEN / "next_heads/qwen3_5_text", "-o", tmp_path / f"{name}.fovea"]
        subprocess.run(
            [*command, "--tokenizer", tmp_path / "tokenizer.json", *options], check=True, capture_output=True
        )
    model, head = fovea.Model(tmp_path / "model.fovea"), fovea.Model(tmp_path / "head.fovea")
    plain, drafted = model.session(max_kv_len=64, n_threads=1), model.session(max_kv_len=64, n_threads=1)
    drafted.propose_by(head, always=True)
    for prompt in ("abcdef", "abcdefGHI", "zyx"):
        text = plain.generate(prompt, max_new_tokens=24)
        assert drafted.generate(prompt, max_new_tokens=24) == text
        assert drafted.generate(prompt, max_new_tokens=24, speculate=3) == text
    assert plain._native.figures["n_proposed"] == 0
    assert drafted._native.figures["n_proposed"] > 0
    with pytest.raises(ValueError, match=r"expected .* tokens, got"):
        drafted.propose_by(fovea.Model(DEMO))

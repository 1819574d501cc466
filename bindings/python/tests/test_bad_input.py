"""Whatever comes in, there is a result or one exception with a sentence."""

import inspect
import os
import time
from typing import ClassVar

import numpy as np
import pytest
from conftest import DEMO, GOLDEN

import fovea

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

# One round of each search, or rounds until this many seconds are over, shared by all searches:
# FOVEA_FUZZ_SECONDS=300 pytest -m search
SECONDS = float(os.environ.get("FOVEA_FUZZ_SECONDS", "0"))
# Hypothesis knows no end but a number of examples, and draws several times as many where some are not tried. So a timed
# round is short; each draws from a seed of its own, even where Hypothesis finds itself in a CI.
settings = hypothesis.settings(
    max_examples=50 if SECONDS else 150,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    **({"derandomize": False} if SECONDS else {}),
)
searches: list[str] = []


def rounds(one_round, seconds, now=time.monotonic):
    """Calls `one_round` once, and again until `seconds` are over; how often it was called."""
    end, called = now() + seconds, 0
    while not called or now() < end:
        one_round()
        called += 1
    return called


def search(*drawn):
    """A test of whatever comes out of these strategies, which are its last arguments."""

    def decorate(body):
        one_round = settings(hypothesis.given(*drawn)(body))
        searches.append(body.__name__)

        def test(*fixtures, **named):
            began = time.monotonic()
            n = rounds(lambda: one_round(*fixtures, **named), SECONDS / len(searches))
            print(f"{body.__name__}: {n} rounds of {settings.max_examples} in {time.monotonic() - began:.1f} s")

        # pytest asks for the fixtures by the names of its arguments.
        test.__name__, test.__doc__, test.__module__ = body.__name__, body.__doc__, body.__module__
        test.__signature__ = inspect.signature(one_round)
        return pytest.mark.search(test)

    return decorate


@pytest.mark.parametrize(("seconds", "called"), [(0, 1), (1, 1), (7, 4), (8, 4), (9, 5)])
def test_a_search_ends_with_its_time(seconds, called):
    calls = []
    assert rounds(lambda: calls.append(1), seconds, now=iter(range(0, 100, 2)).__next__) == called == len(calls)


def test_every_round_draws_anew(monkeypatch):
    monkeypatch.setenv("CI", "1")
    drawn = []

    @hypothesis.settings(settings, max_examples=5, derandomize=False)
    @hypothesis.given(st.integers(0, 2**60))
    def one_round(number):
        drawn.append(number)

    assert rounds(one_round, 2, now=iter(range(9)).__next__) == 2
    assert len(set(drawn)) > 5


EXPECTED = (TypeError, ValueError, OverflowError, MemoryError, OSError)


def f32(*shape):
    return np.ones(shape, np.float32)


CASES = [
    (lambda m: m.generate(5), TypeError),
    (lambda m: m.generate("x", temperature="hot"), ValueError),
    (lambda m: m.generate("x", temperature=-1.0), ValueError),
    (lambda m: m.generate("x", temperature=float("nan")), ValueError),
    (lambda m: m.generate("x", top_p=2.0), ValueError),
    (lambda m: m.generate("x", seed=-1), ValueError),
    (lambda m: m.generate("x", max_new_tokens=-1), ValueError),
    (lambda m: m.generate("x", max_new_tokens=1.5), TypeError),
    (lambda m: m.generate("x", stop=""), ValueError),
    (lambda m: m.generate("x", stop=[3]), TypeError),
    (lambda m: m.generate([]), ValueError),
    (lambda m: m.generate([10**9]), ValueError),
    (lambda m: m.generate("\ud800"), ValueError),
    (lambda m: m.generate("word " * 2_000_000), ValueError),  # 10 MB
    (lambda m: m.tokenize(b"bytes"), TypeError),
    (lambda m: m.tokenize("x" * (65 << 20)), ValueError),
    (lambda m: m.detokenize([-1]), ValueError),
    (lambda m: m.detokenize([1.0]), TypeError),
    (lambda m: m.detokenize([m.vocab_size]), ValueError),
    (lambda m: m.detokenize(np.ones((2, 2), np.int64)), ValueError),
    (lambda m: m.logits([1.5]), TypeError),
    (lambda m: m.logits(np.ones(3, np.float32)), TypeError),
    (lambda m: m.logits([1, 2], out=f32(2, 3)), ValueError),
    (lambda m: m.logits([1, 2], out=np.ones((2, m.vocab_size))), TypeError),
    (lambda m: m.logits([1, 2], out=f32(2, 2 * m.vocab_size)[:, ::2]), ValueError),
    (lambda m: m.logits([1, 2], out=np.broadcast_to(f32(1, 1), (2, m.vocab_size))), TypeError),
    (lambda m: m.logits([m.vocab_size]), ValueError),
    (lambda m: m.logits([]), ValueError),
    (lambda m: m.encode(["x"]), ValueError),
    (lambda m: m.chat("hello"), TypeError),
    (lambda m: m.attention([]), ValueError),
    (lambda m: m.attention("x", layers=[99]), ValueError),
    (lambda m: m.session(max_kv_len=-1), ValueError),
    (lambda m: m.session(max_kv_len=10**6), ValueError),
    (lambda m: m.session(n_threads=10**6), ValueError),
    (lambda m: m.session(kv_type="q99"), ValueError),
    (lambda m: m.session(kv_type="q4_k"), ValueError),
    (lambda m: m.session(isa="mmx"), ValueError),
    (lambda m: m.session(size=3), TypeError),
    (lambda m: m.session().restore(b""), ValueError),
    (lambda m: m.session().restore(m.session().save()[:-1]), ValueError),
    (lambda m: m.session().rewind(5), ValueError),
    (lambda m: fovea.Workspace(m).forward([]), ValueError),
    (lambda m: fovea.Workspace(m).forward([(1, 2, 3)]), (TypeError, AttributeError)),
    (lambda m: fovea.CachePool(m, page_len=7), ValueError),
    (lambda m: fovea.Model("/no/such/file"), FileNotFoundError),
    (lambda m: fovea.Model("/dev/null"), (OSError, ValueError)),
    (lambda m: fovea.Model(__file__), ValueError),
    (lambda m: fovea.Model(DEMO, type="q99"), ValueError),
    (lambda m: fovea.Model.from_bytes(b"FOVEA"), ValueError),
    (lambda m: fovea.convert(GOLDEN, "/tmp/never"), FileNotFoundError),
    (lambda m: fovea.convert(GOLDEN / "models" / "qwen3", config={}), TypeError),
    (lambda m: fovea.convert({"x": f32(2)}), TypeError),
    (lambda m: fovea.convert(5), TypeError),
    (lambda m: fovea.convert({"x": np.ones(2)}, config={"model_type": "attention"}), TypeError),
    (lambda m: fovea.convert({"x": f32(2)}, config={"model_type": "attention", "d_model": 0, "n_heads": 1}),
    ValueError), (lambda m: fovea.attend(f32(2, 2), f32(2, 2), np.ones((2, 2))), TypeError),
    (lambda m: fovea.convert({"x": f32(2)}, config={"model_type": ["é" * 60]}), ValueError),  # cut within a character
    (lambda m: fovea.convert({"x": f32(2)}, config={"model_type": ["a" + "é" * 60]}), ValueError),
    (lambda m: fovea.convert({"é" * 400: f32(2)}, config={"model_type": "llama", "é": 1}), ValueError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 3), f32(2, 2)), ValueError),
    (lambda m: fovea.attend(f32(2, 2), f32(3, 2), f32(2, 2)), ValueError),
    (lambda m: fovea.attend(f32(0, 2), f32(3, 2), f32(3, 2)), ValueError),
    (lambda m: fovea.attend(f32(2), f32(2), f32(2)), ValueError),
    (lambda m: fovea.attend(f32(2, 2), f32(2), f32(2, 2), return_weights=True), ValueError),
    (
        lambda m: fovea.attend(*[f32(2, 2)] * 3, past_key=f32(2), past_value=f32(2), return_weights=True),
        ValueError,
    ),
    (lambda m: fovea.attend([1.0], [1.0], [1.0]), TypeError),
    (lambda m: fovea.attend(None, None, None), TypeError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), scale=0), ValueError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), softcap=-1), ValueError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), mask=f32(3, 3)), ValueError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), mask=np.ones((2, 2))), TypeError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), keep_mask=f32(2, 2)), TypeError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), kv_lengths=[3]), ValueError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), past_key=f32(2, 2)), ValueError),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), out=np.broadcast_to(f32(1), (2, 2))), (TypeError,
    ValueError)), (lambda m: (lambda q: fovea.attend(q, q, q, out=q))(f32(4, 4)), ValueError),
    (lambda m: fovea.attend(f32(1, 7, 2, 2), f32(1, 2, 2, 2), f32(1, 2, 2, 2)), ValueError),
    (lambda m: fovea.MultiheadAttention(4, 3, state_dict={}), ValueError),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_bad_input_is_refused_with_a_sentence(demo, number):
    call, expected = CASES[number]
    with pytest.raises(expected) as refused:
        call(demo)
    text = str(refused.value)
    assert 5 < len(text) < 700
    assert "\n" not in text


def test_a_message_is_cut_between_characters():
    for start in ("", "a"):
        with pytest.raises(ValueError, match="expected a text, got") as refused:
            fovea.convert({"x": f32(2)}, config={"model_type": [start + "é" * 60]})
        assert str(refused.value).endswith("é...")


def test_misaligned_arrays(demo):
    odd = np.frombuffer(b"\0" * 65, np.uint8)[1:].view(np.float32).reshape(4, 4)
    with pytest.raises(ValueError, match="misaligned"):
        fovea.attend(odd, odd, odd)
    ids = np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.int64)
    assert demo.logits(ids).shape == (2, demo.vocab_size)


def test_nan_and_infinity_are_computed_with():
    query = np.full((1, 1, 3, 4), np.nan, np.float32)
    ones = np.ones((1, 1, 3, 4), np.float32)
    assert np.isnan(fovea.attend(query, ones, ones)).all()
    assert fovea.attend(ones, ones * np.float32(np.inf), ones).shape == (1, 1, 3, 4)


def test_a_vector_model_is_no_text_model(bert):
    for call in (lambda: bert.generate("x"), lambda: bert.logits([1]), lambda: list(bert.stream("x"))):
        with pytest.raises(ValueError, match="logits"):
            call()
    for texts in ([1], [b"x"], ["a", None], 5):
        with pytest.raises(TypeError):
            bert.encode(texts)
    with pytest.raises(ValueError, match="out"):
        bert.encode(["a"], out=np.empty((2, bert.d_model), np.float32))
    with pytest.raises(ValueError, match="64"):
        bert.encode("x" * (65 << 20))


class Strange:
    """Has a shape, and is no array."""

    shape: ClassVar[tuple[int, ...]] = (2, 2)


dtypes = st.sampled_from(["f4", "f4", "f4", "f8", "f2", "i4", "u1", "?", ">f4", "U3", "O"])
shapes = st.lists(st.integers(0, 5), max_size=5).map(tuple)


@st.composite
def arrays(draw):
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([None, 3, "text", [[1.0]], Strange(), b"bytes", memoryview(b"1234")]))
    array = np.zeros(draw(shapes), dtype=draw(dtypes))
    if array.dtype.kind == "f" and array.size:
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.floats(width=16))
    for _ in range(draw(st.integers(0, 2))):
        step = draw(st.sampled_from([1, 2, -1]))
        if array.ndim:
            array = np.moveaxis(array, 0, -1)[..., ::step]
    if draw(st.integers(0, 5)) == 0:
        array = np.broadcast_to(array, (2, *array.shape))
    return array


@search(st.lists(arrays(), min_size=9, max_size=9), st.booleans(), st.integers(0, 511))
def test_attend_takes_any_arrays(given, causal, used):
    names = ["mask", "keep_mask", "key_padding_mask", "kv_lengths", "out", "past_key"]
    keywords = {name: given[3 + i] for i, name in enumerate(names) if used >> i & 1}
    try:
        result = fovea.attend(*given[:3], causal=causal, return_weights=bool(used & 64), **keywords)
    except EXPECTED as refused:
        assert str(refused)
    else:
        assert result is not None


@search(
    st.one_of(st.text(max_size=40), st.lists(st.integers(-3, 600), max_size=40), arrays()),
    st.dictionaries(
        st.sampled_from(["temperature", "top_k", "top_p", "min_p", "seed", "stop", "repeat_penalty", "speculate"]),
        st.one_of(
            st.floats(), st.integers(), st.text(max_size=3), st.none(), st.lists(st.text(max_size=2), max_size=3)
        ),
        max_size=3,
    ),
)
def test_generate_takes_any_prompt_and_options(demo, prompt, options):
    try:
        text = demo.generate(prompt, max_new_tokens=4, **options)
    except EXPECTED as refused:
        assert str(refused)
    else:
        assert isinstance(text, str)


@search(st.lists(st.text(max_size=200), max_size=20), st.integers(-1, 80), st.integers(-1, 5))
def test_encode_takes_any_texts(bert, texts, max_length, batch_size):
    try:
        vectors = bert.encode(texts, max_length=max_length, batch_size=batch_size)
    except EXPECTED as refused:
        assert str(refused)
    else:
        assert vectors.shape == (len(texts), bert.d_model)


@search(st.lists(st.text(max_size=90), max_size=9), st.one_of(st.none(), st.lists(st.text(max_size=90), max_size=9)))
def test_classify_takes_any_texts(classes, texts, pairs):
    try:
        said = classes.classify(texts, pairs)
    except EXPECTED as refused:
        assert str(refused)
    else:
        assert len(said) == len(texts)


@pytest.fixture(scope="module")
def whisper():
    return fovea.Model(GOLDEN / "speech" / "whisper_talking", n_threads=1)


@search(
    st.one_of(arrays(), st.lists(st.floats(-1, 1, width=32), max_size=3000).map(lambda x: np.array(x, np.float32))),
    st.dictionaries(
        st.sampled_from(
            [
                "sampling_rate",
                "language",
                "task",
                "temperature",
                "compression_ratio_threshold",
                "logprob_threshold",
                "no_speech_threshold",
                "max_new_tokens",
                "seed",
            ]
        ),
        st.one_of(
            st.none(), st.floats(), st.integers(), st.integers(0, 50_000), st.sampled_from(["de", "translate", "", "x"])
        ),
        max_size=3,
    ),
)
def test_transcribe_takes_any_sound_and_options(whisper, sound, options):
    try:
        said = whisper.transcribe(sound, **options)
    except EXPECTED as refused:
        assert str(refused)
    else:
        assert isinstance(said.text, str)


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=9), inner, max_size=4)),
    max_leaves=8,
)
words = st.sampled_from(["user", "system", "assistant", "tool", "", "type", "object", "x"])
messages = st.lists(st.one_of(anything, st.fixed_dictionaries({"role": words, "content": anything})), max_size=4)
schemas = st.dictionaries(
    st.sampled_from(
        ["type", "properties", "items", "enum", "const", "pattern", "minLength", "maxItems", "anyOf", "not"]
    ),
    st.one_of(anything, words),
    max_size=4,
)
forms = st.one_of(
    st.fixed_dictionaries({"schema": st.one_of(schemas, anything)}),
    st.fixed_dictionaries({"regex": st.text("ab()[]{}|*+?.^$\\\\d-,12", max_size=16)}),
    st.fixed_dictionaries({"grammar": st.text('rot:=|"a()[]*+?{}1 \\n', max_size=24).map("root ::= {}".format)}),
    st.just({}),
)


@search(messages, forms, st.one_of(st.none(), anything), st.one_of(words, st.just("auto")))
def test_chat_takes_any_messages_tools_and_forms(demo, talker, messages, form, tools, choice):
    for model in (demo, talker):
        try:
            answer = model.chat(messages, tools=tools, tool_choice=choice, max_new_tokens=3, **form)
        except EXPECTED as refused:
            assert str(refused)
            assert "\n" not in str(refused)
        else:
            assert isinstance(answer.content, str)


@search(st.lists(st.tuples(st.integers(0, 7), arrays()), max_size=6))
def test_a_session_takes_any_calls(demo, calls):
    session = demo.session(max_kv_len=16, n_threads=1)
    for method, argument in calls:
        try:
            if method == 0:
                session.forward(argument)
            elif method == 1:
                session.forward_all(argument)
            elif method == 2:
                session.forward([1], out=argument)
            elif method == 3:
                session.rewind(argument)
            elif method == 4:
                session.restore(argument)
            elif method == 5:
                session.append([1, 2, 3])
            elif method == 6:
                session.generate([1, 2], max_new_tokens=2)
            else:
                session.restore(session.save())
        except EXPECTED as refused:
            assert str(refused)
        assert session.kv_len == len(session.tokens) <= 16


@search(
    st.sampled_from([64, 5000, 100_000, 4_000_000]),
    st.lists(st.tuples(st.integers(0, 5999), st.integers(0, 255)), max_size=4),
)
def test_any_bytes_are_no_model_or_one_that_is_safe(size, changes):
    whole = bytearray(DEMO.read_bytes()[:size])
    for at, value in changes:
        whole[at % len(whole)] = value
    try:
        model = fovea.Model.from_bytes(bytes(whole))
        model.generate("turn on", max_new_tokens=2)
    except EXPECTED as refused:
        assert str(refused)


@search(st.binary(max_size=200), st.integers(0, 4000), st.integers(0, 255))
def test_any_bytes_are_no_session_or_one_that_is_whole(demo, tail, at, value):
    session = demo.session(max_kv_len=16, n_threads=1)
    session.append([1, 2, 3])
    saved = bytearray(session.save())
    saved[at % len(saved)] = value
    for candidate in (bytes(saved), bytes(saved) + tail, tail):
        try:
            session.restore(candidate)
        except ValueError as refused:
            assert str(refused)
        assert session.forward_all([4]).shape == (1, demo.vocab_size)
        session.rewind(3)


names = st.sampled_from(
    ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias", "bias_k", "q_proj_weight", "x"]
)
keys = ["model_type", "embed_dim", "num_heads", "kdim", "vdim", "bias", "add_bias_kv", "add_zero_attn"]
whole_arrays = {"in_proj_weight": f32(12, 4), "in_proj_bias": f32(12), "out_proj.weight": f32(4, 4)}
whole_config = {"model_type": "torch.nn.MultiheadAttention", "embed_dim": 4, "num_heads": 2}


@search(
    st.dictionaries(names, arrays(), max_size=3),
    st.dictionaries(st.sampled_from(keys), st.one_of(anything, st.integers(0, 9)), max_size=2),
    st.sampled_from([None, "f32", "q8", "q4", "f64", ""]),
)
def test_convert_takes_any_arrays_and_config(changed, settings_changed, type_name):
    given = {**whole_arrays, "out_proj.bias": f32(4), **changed}
    try:
        model = fovea.convert(given, config={**whole_config, **settings_changed}, type=type_name)
    except EXPECTED as refused:
        assert str(refused)
    else:
        assert model.d_model > 0


@search(
    st.lists(
        st.tuples(st.integers(0, 2), st.one_of(arrays(), st.lists(st.integers(-1, 600), max_size=6)), arrays()),
        max_size=3,
    ),
    st.booleans(),
)
def test_a_pass_takes_any_steps(demo, steps, with_memory):
    pool = fovea.CachePool(demo, max_sequences=3, max_kv_len=8)
    workspace = fovea.Workspace(demo, max_batch=8, max_sequences=3, max_kv_len=8, n_threads=1)
    caches = [pool.cache() for _ in range(3)]
    before = [cache.kv_len for cache in caches]
    try:
        workspace.forward(
            [fovea.Step(caches[i], ids, out, caches[i] if with_memory else None) for i, ids, out in steps]
        )
    except EXPECTED as refused:
        assert str(refused)
        assert [cache.kv_len for cache in caches] == before
    else:
        assert all(cache.kv_len <= 8 for cache in caches)

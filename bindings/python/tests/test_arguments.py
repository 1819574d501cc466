"""What methods take besides arrays: ids, texts, numbers, names; and the one line that refuses anything else."""

import numpy as np
import pytest
from conftest import DEMO, GOLDEN, wanted

import fovea


def f32(*shape):
    return np.ones(shape, np.float32)


def test_ids_of_whatever_gives_whole_numbers(demo):
    expected = demo.logits([3, 4, 5]).tobytes()
    wider = [np.arange(3, 6, dtype=name) for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", "O")]
    for ids in (
        range(3, 6),
        (3, 4, 5),
        np.arange(3, 6)[::1],
        [np.int64(3), np.uint8(4), 5],
        {3: 0, 4: 0, 5: 0}.keys(),
        *wider,
    ):
        assert demo.logits(ids).tobytes() == expected
        assert demo.session(max_kv_len=64).forward_all(ids).tobytes() == expected
        assert demo.detokenize(ids) == demo.detokenize([3, 4, 5])
        assert demo.generate(ids, max_new_tokens=3) == demo.generate([3, 4, 5], max_new_tokens=3)
        assert demo.attention(ids)[:].tobytes() == demo.attention([3, 4, 5])[:].tobytes()
    assert demo.logits(i for i in (3, 4, 5)).tobytes() == expected
    assert demo.session(max_kv_len=64).forward(iter([3, 4, 5])).tobytes() == demo.logits([3, 4, 5])[-1].tobytes()
    assert demo.generate(iter([3, 4]), max_new_tokens=3) == demo.generate([3, 4], max_new_tokens=3)


def test_ids_of_pandas_and_torch(demo):
    expected = demo.logits([3, 4, 5]).tobytes()
    pandas = wanted("pandas")
    assert demo.logits(pandas.Series([3, 4, 5], index=[9, 8, 7])).tobytes() == expected
    torch = wanted("torch")
    for dtype in (torch.int64, torch.int32, torch.uint8):
        assert demo.logits(torch.tensor([3, 4, 5], dtype=dtype)).tobytes() == expected
    assert demo.logits(list(torch.tensor([3, 4, 5]))).tobytes() == expected


@pytest.mark.parametrize("ids", [5, None, b"ab", {"input_ids": [1]}, np.int64(5), np.ones(3), ["a"], [1, 2.0]])
def test_what_is_no_id_is_refused(demo, ids):
    words = "expected (a list or an array of )?whole numbers, got (int|None|bytes|dict|float|str)"
    for call in (demo.logits, demo.generate, demo.attention, demo.detokenize, demo.session(max_kv_len=64).forward):
        with pytest.raises(TypeError, match=words):
            call(ids)


def test_a_text_in_the_place_of_ids_is_refused(demo):
    for call in (demo.session(max_kv_len=64).forward, demo.session(max_kv_len=64).forward_all, demo.detokenize):
        with pytest.raises(TypeError, match=r"^ids: expected a list or an array of whole numbers, got str$"):
            call("3")


def test_an_iterator_that_raises_says_so_itself(demo):
    def ids():
        yield 3
        raise KeyError("lost")

    for call in (demo.logits, demo.detokenize):
        with pytest.raises(KeyError, match="lost"):
            call(ids())


@pytest.mark.parametrize("texts", [5, None, b"a text"])
def test_what_is_no_text_is_refused(bert, classes, texts):
    for call in (bert.encode, classes.classify):
        with pytest.raises(TypeError, match="texts: expected a str or several, got " + type(texts).__name__):
            call(texts)


class Frame(dict):
    """Iterates over names of columns, as pandas' DataFrame does."""

    columns = ("text", "n")


REFUSED = [
    (Frame(text=["a"], n=[1]), "texts: expected a str or several, got a Frame; give one of its columns"),
    ({"a": "b"}, "texts: expected a str or several, got a dict; give a list of its values"),
    (np.array([["a", "b"]]), "texts: expected one dimension, got a ndarray of 2"),
    (np.array("a"), "texts: expected one dimension, got a ndarray of 0"),
    (["a"] * 5000 + [float("nan")], r"texts\[5000\]: expected a str, got float nan, a missing value"),
    (["a", None], r"texts\[1\]: expected a str, got NoneType"),
    ([("a", "b")], r"texts\[0\]: expected a str, got tuple"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_gives_no_texts_is_refused_by_its_place(bert, classes, number):
    texts, expected = REFUSED[number]
    for call in (bert.encode, lambda t: bert.encode(t, prompt="query: "), classes.classify):
        with pytest.raises(TypeError, match=f"^{expected}$"):
            call(texts)


def test_pairs_are_checked_as_texts_are(classes):
    with pytest.raises(TypeError, match=r"^pairs\[1\]: expected a str, got int$"):
        classes.classify(["a", "b"], ["c", 5])
    with pytest.raises(TypeError, match=r"^pairs: expected a str or several, got int$"):
        classes.classify(["a", "b"], 5)


def test_texts_of_pandas(bert):
    pandas = wanted("pandas")
    frame = pandas.DataFrame({"text": ["a", "b c", "d"], "n": [1, 2, 3]}, index=[7, 3, 5])
    expected = bert.encode(["a", "b c", "d"]).tobytes()
    assert bert.encode(frame["text"]).tobytes() == expected
    assert bert.encode(frame["text"].to_numpy()).tobytes() == expected
    assert bert.encode(frame["text"].astype("string")).tobytes() == expected
    with pytest.raises(
        TypeError, match=r"^texts: expected a str or several, got a DataFrame; give one of its columns$"
    ):
        bert.encode(frame)
    with pytest.raises(TypeError, match=r"^texts\[1\]: expected a str, got "):
        bert.encode(pandas.Series(["a", None]))
    with pytest.raises(TypeError, match=r"^texts\[0\]: expected a str, got int"):
        bert.encode(frame["n"])


def test_out_of_encode_is_written_or_refused(bert):
    vector = np.empty(bert.vector_width, np.float32)
    assert bert.encode("a text", out=vector) is vector
    assert vector.tobytes() == bert.encode("a text").tobytes()
    view = memoryview(np.zeros(bert.vector_width, np.float32))
    assert bert.encode("a text", out=view) is view
    assert view.tobytes() == vector.tobytes()
    rows = np.empty((2, bert.vector_width), np.float32)
    assert bert.encode(iter(["a", "b"]), out=rows) is rows
    assert rows.tobytes() == bert.encode(["a", "b"]).tobytes()
    for texts, out, error, words in (
        ("a", rows, ValueError, r"out: expected shape \[32\], got \[2, 32\]"),
        ("a", [0.0] * 32, TypeError, "out: expected an array of float32, got list"),
        (["a"], [[0.0] * 32], TypeError, "out: expected an array of float32, got list"),
        (iter(["a"]), [[0.0] * 32], TypeError, "out: expected an array of float32, got list"),
        (iter(["a"]), vector, ValueError, r"out: expected shape \[n, 32\], got \[32\]"),
        (iter(["a"]), rows, ValueError, "out: expected a row for each of 1 texts or more, got 2"),
        (iter(["a", "b", "c"]), rows, ValueError, r"out: expected a row for each of 3 texts or more, got 2"),
        (["a"], rows, ValueError, r"out: expected shape \[1, 32\], got \[2, 32\]"),
        ("a", np.empty(32), TypeError, "out: expected a writable array of float32, got float64"),
    ):
        with pytest.raises(error, match=f"^{words}"):
            bert.encode(texts, out=out)


# What people type, and the one line that says what they should.
SAID = [
    (lambda m: m.generate("x", max_new_tokens=None), "max_new_tokens: expected a whole number, got NoneType"),
    (lambda m: m.generate("x", logit_bias=[1]), "logit_bias: expected a dict from ids to numbers, got list"),
    (lambda m: m.attention("x", layers=0), "layers: expected a list or an array of whole numbers, got int"),
    (lambda m: m.session(n_threads=-1), "n_threads: expected a number from 0 to 4294967295, got -1"),
    (lambda m: m.session(kv_type=None), "kv_type: expected a str, got NoneType"),
    (lambda m: m.session(isa=5), "isa: expected a str, got int"),
    (lambda m: m.session(isa="mmx"), f"isa: expected one of {', '.join(fovea.isa_names())}, got 'mmx'"),
    (lambda m: fovea.Workspace(m, isa="mmx"), f"isa: expected one of {', '.join(fovea.isa_names())}, got 'mmx'"),
    (lambda m: fovea.Model(DEMO, isa="mmx"), f"isa: expected one of {', '.join(fovea.isa_names())}, got 'mmx'"),
    (lambda m: m.plan(kv_type=8), "kv_type: expected a str, got int"),
    (lambda m: m.session().rewind(-1), "kv_len: expected a whole number of 0 or more, below 2^32, got -1"),
    (lambda m: m.session().rewind(1.5), "kv_len: expected a whole number, got float"),
    (lambda m: m.session().restore("x"), "saved: expected bytes, got str"),
    (lambda m: fovea.CachePool("x"), "model: expected a fovea.Model, got str"),
    (lambda m: fovea.CachePool(m, kv_type=3), "kv_type: expected a str, got int"),
    (lambda m: fovea.CachePool(m).cache().restore(5), "saved: expected bytes, got int"),
    (lambda m: fovea.Session(None), "model: expected a fovea.Model, got NoneType"),
    (lambda m: fovea.Workspace(m).forward([5]), "steps[0]: expected a fovea.Step, got int"),
    (lambda m: fovea.Workspace(m).forward([fovea.Step(3, [1])]), "steps[0]: cache: expected a fovea.Cache, got int"),
    (lambda m: fovea.Model(DEMO, n_threads="2"), "n_threads: expected a whole number, got str"),
    (lambda m: fovea.Model(DEMO, type=8), "type: expected a str, got int"),
    (lambda m: fovea.Model(DEMO, adapters=[("a",)]),
    "adapters: expected a path or a tuple of a path and its scale, got a tuple of 1"),
    (lambda m: fovea.Model.from_bytes(5), "data: expected bytes, got int"),
    (lambda m: fovea.Model.from_bytes("x"), "data: expected bytes, got str"),
    (lambda m: fovea.convert(GOLDEN / "models" / "qwen3", "/tmp/never", n_threads=-1),
    "n_threads: expected a whole number of 0 or more, below 2^32, got -1"),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), n_threads=-1),
    "n_threads: expected a whole number of 0 or more, below 2^32, got -1"),
    (lambda m: fovea.MultiheadAttention(4, 2, state_dict=None), "state_dict: expected a dict of arrays, got NoneType"),
    (lambda m: fovea.MultiheadAttention.from_torch({}), "module: expected a torch.nn.MultiheadAttention, got dict"),
    (lambda m: m.tokenize(None), "text: expected a str, got NoneType"),
    (lambda m: m.tokenize("\ud800"), "text: expected text of Unicode characters, got a lone surrogate"),
    (lambda m: m.generate("x", speculate=-1), "speculate: expected a number of its range, got -1"),
    (lambda m: m.generate("x", temperature=["hot"] * 50),
    "temperature: expected a number of its range, got " + str(["hot"] * 50)[:80] + "..."),
    (lambda m: m.generate("x", logit_bias={"a": 1.0}), "logit_bias: ids: expected a whole number, got str"),
    (lambda m: m.generate("x", logit_bias={3: "a"}), "logit_bias: expected a number for id 3, got 'a'"),
    (lambda m: m.generate("x", stop=[b"x"]), "stop[0]: expected a str, got bytes"),
    (lambda m: m.generate("x", stop=b"x"), "stop: expected a str or several, got bytes"),
    (lambda m: m.generate("x", stop=5), "stop: expected a str or several, got int"),
    (lambda m: m.generate("x", regex="\ud800"), "regex: expected text of Unicode characters, got a lone surrogate"),
    (lambda m: m.chat([{"role": "user", "content": "x"}], chat_template=["a"]),
    "chat_template: expected a str, got list"),
    (lambda m: m.attention("x", layers=[0.0]), "layers: expected a whole number, got float"),
    (lambda m: m.logits([]), "ids: expected 1 or more, got none"),
    (lambda m: m.session().forward([]), "ids: expected 1 or more, got none"),
    (lambda m: m.session(max_kv_len=32.0), "max_kv_len: expected a whole number, got float"),
    (lambda m: fovea.CachePool(m, n_pages=2.0), "n_pages: expected a whole number, got float"),
    (lambda m: fovea.CachePool(m, page_len=-1), "page_len: expected a number from 0 to 4294967295, got -1"),
    (lambda m: fovea.Workspace(m).forward(None), "steps: expected a list of fovea.Step, got NoneType"),
    (lambda m: fovea.Workspace(m).cache_memory(None, []), "memories: expected a list, got NoneType"),
    (lambda m: fovea.Model(DEMO, adapters=None), "adapters: expected a list, got NoneType"),
    (lambda m: fovea.Model(DEMO, adapters=[5]), "adapters: expected paths, got int"),
    (lambda m: fovea.Model(DEMO, adapters=[(DEMO, "a")]), "adapters: scale: expected a number, got str"),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), scale="a"), "scale: expected a number, got str"),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), softcap="a"), "softcap: expected a number, got str"),
    (lambda m: fovea.attend(f32(2, 2), f32(2, 2), f32(2, 2), n_threads=[1]),
    "n_threads: expected a whole number, got list"),
    (lambda m: fovea.convert({}, config={"model_type": object()}),
    "config: expected what JSON can say, got another type: object"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SAID)))
def test_what_is_said_names_the_argument(demo, number):
    call, words = SAID[number]
    with pytest.raises((TypeError, ValueError)) as refused:
        call(demo)
    assert str(refused.value) == words


def test_what_is_said_of_the_arguments_of_encode(bert, classes):
    for call, words in (
        (
            lambda: bert.encode(["a"], batch_size=0),
            "batch_size: expected a whole number of 1 or more, below 2^32, got 0",
        ),
        (
            lambda: bert.encode(["a"], max_length=-1),
            "max_length: expected a whole number of 0 or more, below 2^32, got -1",
        ),
        (lambda: bert.encode("a", max_length="3"), "max_length: expected a whole number, got str"),
        (lambda: bert.encode(["a"], prompt=5), "prompt: expected a str, got int"),
        (lambda: bert.encode(["a"], prompt_name=["q"]), "prompt_name: expected a str, got list"),
        (lambda: classes.classify("a", batch_size=2.5), "batch_size: expected a whole number, got float"),
    ):
        with pytest.raises((TypeError, ValueError)) as refused:
            call()
        assert str(refused.value) == words


def test_numbers_of_numpy_and_other_bytes_are_taken(demo):
    expected = demo.generate("turn on", max_new_tokens=4)
    assert demo.generate("turn on", max_new_tokens=np.int64(4), stop=None, seed=np.uint8(1)) == expected
    assert fovea.Model(DEMO, n_threads=np.int64(1)).generate("turn on", max_new_tokens=4) == expected
    session = demo.session(max_kv_len=32)
    session.append([1, 2, 3])
    for saved in (bytearray(session.save()), memoryview(session.save())):
        other = demo.session(max_kv_len=32)
        other.restore(saved)
        other.rewind(np.int32(2))
        assert other.tokens == [1, 2]
    assert fovea.Model.from_bytes(memoryview(DEMO.read_bytes())).vocab_size == demo.vocab_size


def test_flags_and_numbers_of_any_kind_are_taken(demo):
    assert demo.tokenize("turn on", add_special=1, parse_special=np.False_) == demo.tokenize("turn on")
    assert demo.generate("turn on", special=1, max_new_tokens=4) == demo.generate(
        "turn on", special=True, max_new_tokens=4
    )
    biased = {np.int64(3): np.float32(100)}
    assert demo.generate("turn on", logit_bias=biased, max_new_tokens=2) == demo.detokenize([3, 3])
    state = {
        "in_proj_weight": f32(12, 4),
        "in_proj_bias": f32(12),
        "out_proj.weight": f32(4, 4),
        "out_proj.bias": f32(4),
    }
    x = f32(2, 1, 4)
    module = fovea.MultiheadAttention(np.int64(4), np.int32(2), bias=np.True_, state_dict=state)
    assert module(x, x, x)[0].tobytes() == fovea.MultiheadAttention(4, 2, state_dict=state)(x, x, x)[0].tobytes()
    config = {"model_type": "torch.nn.MultiheadAttention", "embed_dim": np.int64(4), "num_heads": np.uint8(2)}
    assert fovea.convert(state, config=config).d_model == 4


def test_what_is_said_of_a_form_names_it_once(demo):
    for form in ({"schema": {"type": "strange"}}, {"schema": "{"}, {"grammar": "root ::= ("}, {"grammar": "a ::= [a]"},
                 {"regex": "("}):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{next(iter(form))}") as refused:
            demo.generate("x", **form)
        assert str(refused.value).count(next(iter(form)) + ": ") <= 1


def test_what_is_said_of_a_layer_whose_weights_are_asked_for():
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = fovea.convert(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    for asked, words in (
        (("encoder", -1), "weights_of: expected a whole number of 0 or more, below 2^32, got -1"),
        (("encoder", 2), "weights_of: expected a layer below 2, got 2"),
        (("encoder", "a"), "weights_of: expected a whole number, got str"),
        ("encoder", "weights_of: expected a stack and a layer, got str"),
    ):
        with pytest.raises((TypeError, ValueError)) as refused:
            model.encode_arrays(f32(3, 8), weights_of=asked)
        assert str(refused.value) == words


def test_a_hubs_name_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="downloaded first: hf download nobody/model-1B: 'nobody/model-1B'"):
        fovea.Model("nobody/model-1B")
    (tmp_path / "here").mkdir()
    for path in ("nobody", "./nobody/model", "/nobody/model", "nobody/a/model", "here/model"):
        with pytest.raises(FileNotFoundError) as raised:
            fovea.Model(path)
        assert "hub" not in str(raised.value), path

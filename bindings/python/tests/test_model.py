"""Text, logits and attention, equal to the command line's in bits and to golden values within their bound."""

import json
import os
import pickle
import shutil
import subprocess

import numpy as np
import pytest
from conftest import DEMO, GOLDEN, wanted, write_bert

import fovea

COMMAND = "turn on the lights in the kitchen"
FAMILIES = sorted(path.name for path in (GOLDEN / "models").iterdir() if (path / "expected_logits.npy").exists())


def test_a_continuation_is_the_command_lines(demo, command_line):
    ran = subprocess.run([command_line, "run", DEMO, "-p", COMMAND], capture_output=True, text=True, check=True)
    assert demo.generate(COMMAND) == ran.stdout.rstrip("\n")


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 1.5, "seed": 7}, {"temperature": 0.9, "top_k": 9, "top_p": 0.9}]
)
def test_sampling_is_the_command_lines(demo, command_line, options):
    named = {"temperature": "--temp", "seed": "--seed", "top_k": "--top-k", "top_p": "--top-p"}
    arguments = [text for name, value in options.items() for text in (named[name], str(value))]
    command = [command_line, "run", DEMO, "-p", COMMAND, "-n", "20", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert demo.generate(COMMAND, max_new_tokens=20, **options) == ran.stdout.rstrip("\n")


def test_logits_are_the_command_lines_in_every_bit(demo, command_line, tmp_path):
    path = tmp_path / "logits.npy"
    subprocess.run([command_line, "logits", DEMO, "-p", COMMAND, "-o", path], check=True, capture_output=True)
    assert demo.logits(COMMAND).tobytes() == np.load(path).tobytes()
    assert demo.logits(demo.tokenize(COMMAND)).tobytes() == np.load(path).tobytes()


def test_vectors_are_the_command_lines_in_every_bit(bert, command_line, tmp_path):
    texts = ["one text", "another, a little longer text", "x", "", "a b c d e f g h i j k l m n o p"]
    (tmp_path / "texts").write_text("\n".join(texts) + "\n")
    subprocess.run([command_line, "encode", bert._path, "--texts", tmp_path / "texts", "-o", tmp_path / "v.npy"],
                   check=True, capture_output=True)  # fmt: skip
    assert bert.encode(texts).tobytes() == np.load(tmp_path / "v.npy").tobytes()


def test_attention_is_the_command_lines_in_every_bit(demo, command_line, tmp_path):
    for layer in range(demo.n_layers):
        path = tmp_path / "weights.npy"
        subprocess.run([command_line, "logits", DEMO, "-p", COMMAND, "--weights", path, "--layer", str(layer),
                        "--per-head"], check=True, capture_output=True)  # fmt: skip
        assert demo.attention(COMMAND)[layer].tobytes() == np.load(path).tobytes()


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers(family):
    folder = GOLDEN / "models" / family
    config = json.loads((folder / "config.json").read_text())
    expected = np.load(folder / "expected_logits.npy").reshape(-1, config["vocab_size"])
    ids = [(7 * i + 3) % config["vocab_size"] for i in range(len(expected))]  # as tests/golden/make_models.py has them
    with fovea.Model(folder) as model:
        got = model.logits(ids)
    assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()


def test_ids_and_back(demo):
    ids = demo.tokenize(COMMAND)
    assert all(isinstance(i, int) for i in ids)
    assert COMMAND in demo.detokenize(ids)
    assert demo.detokenize(np.array(ids, dtype=np.uint32)) == demo.detokenize(tuple(ids))


def test_a_stream_joins_to_the_continuation(demo):
    pieces = list(demo.stream(COMMAND))
    assert len(pieces) > 1
    assert "".join(pieces) == demo.generate(COMMAND)


def test_streams_of_one_model_do_not_disturb_each_other(demo):
    texts = [COMMAND, "is the front door locked", "play jazz in the kitchen"]
    streams = [demo.stream(text) for text in texts]
    made = [""] * len(texts)
    going = True
    while going:
        going = False
        for i, stream in enumerate(streams):
            for piece in stream:
                made[i] += piece
                going = True
                break
    assert made == [demo.generate(text) for text in texts]


def test_stop_max_new_tokens_and_speculation(demo):
    whole = demo.generate(COMMAND)
    assert demo.generate(COMMAND, stop=whole[5:9]) == whole[: whole.index(whole[5:9])]
    assert whole.startswith(demo.generate(COMMAND, max_new_tokens=3))
    assert demo.generate(COMMAND, max_new_tokens=0) == ""
    assert demo.generate(COMMAND, speculate=4) == whole


def test_out_is_written_and_returned(demo):
    ids = demo.tokenize(COMMAND)
    out = np.full((len(ids), demo.vocab_size), np.nan, dtype=np.float32)
    assert demo.logits(ids, out=out) is out
    assert out.tobytes() == demo.logits(ids).tobytes()


def test_encode_does_not_depend_on_order_batches_or_company(bert):
    texts = [("word " * (i * 7 % 23)).strip() + f" {i}" for i in range(300)]
    vectors = bert.encode(texts)
    assert vectors.shape == (300, bert.d_model)
    assert bert.encode(texts[::-1])[::-1].tobytes() == vectors.tobytes()
    assert bert.encode(iter(texts), batch_size=3).tobytes() == vectors.tobytes()
    assert bert.encode(texts[17]).tobytes() == vectors[17].tobytes()
    out = np.empty_like(vectors)
    assert bert.encode(texts, out=out, show_progress_bar=True) is out
    assert out.tobytes() == vectors.tobytes()
    assert bert.encode([]).shape == (0, bert.d_model)


def test_a_bar_counts_many_texts(bert, capfd):
    wanted("tqdm")
    for n, bar, shown in ((3, True, True), (3, None, False), (8192, None, True), (8192, False, False)):
        bert.encode(["a"] * n, show_progress_bar=bar)
        assert (f"{n}/{n}" in capfd.readouterr().err) == shown


def test_normalized_vectors_have_length_one(bert):
    vectors = bert.encode(["a", "b c"], normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_long_texts_are_cut(bert):
    assert bert.encode("word " * 10_000).tobytes() == bert.encode("word " * 100).tobytes()
    assert bert.encode("a b c d e f", max_length=4).tobytes() == bert.encode("a b").tobytes()


def test_attention_patterns(demo, bert):
    for model in (demo, bert):
        pattern = model.attention("play some jazz")
        n = len(pattern.tokens)
        assert pattern.shape == (model.n_layers, model.n_heads, n, n)
        np.testing.assert_allclose(np.asarray(pattern).sum(axis=-1), 1, atol=1e-5)
        some = model.attention("play some jazz", layers=[1])
        assert some[0].tobytes() == pattern[1].tobytes()
        assert some.layers == (1,)
    assert not np.triu(np.asarray(demo.attention("play some jazz")), 1).any()


def test_the_notebook_view_is_the_page_of_the_command_line(demo, command_line, tmp_path):
    page = tmp_path / "page.html"
    # The picture shows only the prompt: no position has followed the one new token.
    subprocess.run([command_line, "run", DEMO, "-p", COMMAND, "-n", "1", "--picture", page], check=True,
                   capture_output=True)  # fmt: skip
    pattern = demo.attention(demo.tokenize(COMMAND + demo.config["prompt_suffix"]))
    assert pattern.html() == page.read_text()
    assert "<iframe" in pattern._repr_html_()
    assert "<script>" not in pattern._repr_html_()


def test_plans_are_exact(demo):
    plan = demo.plan(max_kv_len=100, n_threads=1)
    assert plan.arena_bytes == demo.session(max_kv_len=100, n_threads=1).arena_bytes
    assert plan.limits.max_kv_len == 100
    assert plan.parts[0].name
    assert max(part.offset + part.bytes for part in plan.parts) <= plan.arena_bytes
    with pytest.raises(AttributeError):
        plan.arena_bytes = 1


def test_a_model_pickles_as_its_path(demo):
    copy = pickle.loads(pickle.dumps(demo))
    assert copy.generate(COMMAND) == demo.generate(COMMAND)
    with pytest.raises(TypeError, match="in memory"):
        pickle.dumps(fovea.Model.from_bytes(DEMO.read_bytes()))


class Named(fovea.Model):
    """A subclass that is made of something else."""

    def __init__(self, name):
        super().__init__({"demo": DEMO}[name])
        self.called = name


def test_a_pickle_says_what_the_model_was(tmp_path, monkeypatch):
    shutil.copyfile(DEMO, tmp_path / "demo.fovea")
    folder = write_bert(tmp_path)
    monkeypatch.chdir(tmp_path)
    models = fovea.Model("demo.fovea", verify=True), fovea.Model(".", tokenizer="tokenizer.json")
    monkeypatch.chdir("/")  # where the paths that they were given name nothing
    copy, source = pickle.loads(pickle.dumps(models))
    assert copy.generate("turn on", max_new_tokens=3) == fovea.Model(DEMO).generate("turn on", max_new_tokens=3)
    assert copy._arguments["verify"] is True
    assert source.tokenize("a text") == fovea.Model(folder).tokenize("a text")
    named = pickle.loads(pickle.dumps(Named("demo")))
    assert (type(named), named.called, named.vocab_size) == (Named, "demo", copy.vocab_size)
    assert named.generate("turn on", max_new_tokens=3) == copy.generate("turn on", max_new_tokens=3)


def test_what_was_converted_to_a_file_pickles_as_that(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    shapes = {"in_proj_weight": (24, 8), "in_proj_bias": (24,), "out_proj.weight": (8, 8), "out_proj.bias": (8,)}
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    config = {"model_type": "torch.nn.MultiheadAttention", "embed_dim": 8, "num_heads": 2}
    monkeypatch.chdir(tmp_path)
    model = fovea.convert(arrays, "heads.fovea", config=config)
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(model)).d_model == 8


def test_a_closed_model_says_so():
    model = fovea.Model(DEMO)
    session = model.session(max_kv_len=64)
    expected = session.forward([1, 2]).tobytes()
    model.close()
    assert model.closed
    session.rewind()
    assert session.forward([1, 2]).tobytes() == expected  # it keeps the file
    for call in (
        lambda: model.generate("x"),
        lambda: model.tokenize("x"),
        lambda: model.session(),
        lambda: model.plan(),
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_sources_are_converted_once(cache_folder, tmp_path, capfd):
    folder = tmp_path / "source"
    shutil.copytree(GOLDEN / "models" / "qwen3", folder)

    def opened(expected, **options):
        before = set(cache_folder.iterdir())
        model = fovea.Model(folder, **options)
        err = capfd.readouterr().err
        assert err.count("was converted into") == err.count("\n") == expected
        after = set(cache_folder.iterdir())
        assert not [path for path in after if ".part-" in path.name]
        return model, after - before, before - after

    model, added, _ = opened(1)
    assert len(added) == 1
    opened(0)
    _, of_type, removed = opened(1, type="q8")
    assert len(of_type) == 1  # another option, another file beside it
    assert not removed
    os.utime(folder / "config.json", ns=(1, 1))
    _, newer, removed = opened(1)
    assert (len(newer), removed) == (1, added)  # the source has changed: what was made of it before is gone
    assert model.logits([1, 2]).shape == (2, model.vocab_size)  # who has it open keeps it
    next(iter(newer)).write_bytes(b"damaged")
    opened(1)
    opened(0)


def test_a_text_wants_a_tokenizer():
    model = fovea.Model(GOLDEN / "models" / "llama_tied")
    assert not model.has_tokenizer
    words = r"llama_tied: model: expected one with a tokenizer, .* got one without; Session\.forward gives the logits"
    for call in (model.generate, model.stream, model.session().generate, model.session().stream):
        with pytest.raises(ValueError, match=words):
            list(call([1, 2], max_new_tokens=3))
    of_bytes = fovea.Model.from_bytes(DEMO.read_bytes())
    with pytest.raises(ValueError, match=r"^model: expected one for vectors, got one for logits$"):
        of_bytes.encode("a text")

"""The examples and the lesson, run as a reader would; and that the stub names what the module has."""

import ast
import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import DEMO, GOLDEN, ROOT, wanted

import fovea

EXAMPLES = ROOT / "examples" / "python"


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(fovea.__file__).parents[1]), "FOVEA_MODEL": str(DEMO)}


def test_embed(bert):
    command = [sys.executable, EXAMPLES / "embed.py", bert._path, "a lamp", "a light"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    assert ran.stdout.startswith("1.0000  a lamp\n")
    assert ran.stdout.endswith("  a light\n")


def test_langchain(examples, bert):
    wanted("langchain_core")
    from langchain_embeddings import FoveaEmbeddings

    embeddings = FoveaEmbeddings(bert._path)
    expected = bert.encode(["a", "b c"], normalize_embeddings=True)
    np.testing.assert_array_equal(np.float32(embeddings.embed_documents(["a", "b c"])), expected)
    np.testing.assert_array_equal(np.float32(embeddings.embed_query("b c")), expected[1])


def test_langchain_puts_the_models_prompts_before(examples, tmp_path):
    wanted("langchain_core")
    from langchain_embeddings import FoveaEmbeddings

    folder = tmp_path / "m"
    shutil.copytree(GOLDEN / "encoders" / "bert_sentence", folder)
    shutil.copy(GOLDEN / "prompts" / "config_sentence_transformers.json", folder)
    embeddings = FoveaEmbeddings(str(folder))
    for made, task in ((embeddings.embed_query("a"), "query"), (embeddings.embed_documents(["a"])[0], "document")):
        expected = fovea.Model(folder).encode("a", prompt_name=task, normalize_embeddings=True)
        np.testing.assert_array_equal(np.float32(made), expected)


def test_llamaindex(examples, bert):
    """An index finds the text itself, and vectors are the model's."""
    core = wanted("llama_index.core")
    from llamaindex_embedding import FoveaEmbedding

    embedding = FoveaEmbedding(bert._path)
    texts = ["red red", "blue", "green lamp"]
    expected = bert.encode(texts, normalize_embeddings=True)
    np.testing.assert_array_equal(np.float32(embedding.get_text_embedding_batch(texts)), expected)
    np.testing.assert_array_equal(np.float32(asyncio.run(embedding.aget_query_embedding("blue"))), expected[1])
    index = core.VectorStoreIndex.from_documents([core.Document(text=text) for text in texts], embed_model=embedding)
    assert index.as_retriever(similarity_top_k=1).retrieve("blue")[0].text == "blue"


def test_haystack(examples, bert):
    """A pipeline that was written and read again finds the text itself, and vectors are the model's."""
    haystack = wanted("haystack")
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack_embedders import FoveaDocumentEmbedder, FoveaTextEmbedder

    texts = ["red red", "blue", "green lamp"]
    documents = FoveaDocumentEmbedder(bert._path).run([haystack.Document(content=text) for text in texts])["documents"]
    vectors = np.float32([document.embedding for document in documents])
    np.testing.assert_array_equal(vectors, bert.encode(texts, normalize_embeddings=True))
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(documents)
    pipeline = haystack.Pipeline()
    pipeline.add_component("query", FoveaTextEmbedder(bert._path))
    pipeline = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=["haystack_embedders"])
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
    pipeline.connect("query.embedding", "retriever.query_embedding")
    found = pipeline.run({"query": {"text": "blue"}})["retriever"]["documents"]
    assert [document.content for document in found] == ["blue"]


def test_sklearn(examples, bert):
    wanted("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn_vectors import SentenceVectors

    texts = ["red red", "red", "blue", "blue blue"] * 3
    pipeline = make_pipeline(SentenceVectors(bert._path), LogisticRegression(C=1e6)).fit(texts, [0, 0, 1, 1] * 3)
    assert list(pipeline.predict(["red", "blue"])) == [0, 1]


def test_llm(examples, demo):
    llm = wanted("llm")
    from llm_fovea import Fovea

    answer = Fovea().prompt("turn on the lamp", path=str(DEMO))
    assert isinstance(answer, llm.Response)
    assert answer.text() == demo.generate("turn on the lamp")


def test_the_lesson():
    command = [sys.executable, "attention.py"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "docs", env=environment())
    assert ran.returncode == 0, ran.stderr


def test_the_lesson_as_a_notebook():
    jupytext = wanted("jupytext")
    nbclient = wanted("nbclient")
    wanted("ipykernel")
    notebook = jupytext.read(ROOT / "docs" / "attention.py")
    os.environ.update({name: environment()[name] for name in ("PYTHONPATH", "FOVEA_MODEL")})
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output.data for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("<iframe" in data.get("text/html", "") for data in shown)


def test_the_stub_names_what_the_module_has():
    tree = ast.parse((Path(fovea.__file__).parent / "_fovea.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            made = getattr(fovea._fovea, node.name)
            names = {f.name for f in node.body if isinstance(f, ast.FunctionDef) and f.name != "__init__"}
            names |= {f.target.id for f in node.body if isinstance(f, ast.AnnAssign)}
            assert names == {name for name in vars(made) if not name.startswith("_")}, node.name
    named = {n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    named |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    assert named == {name for name in vars(fovea._fovea) if not name.startswith("_")}


def test_the_extension_shows_nothing_of_the_cpp_library_within_it():
    """Names that another library's C++ met would break that one: ray.init ended the process."""
    nm = shutil.which("nm")
    if not nm or not sys.platform.startswith("linux"):
        pytest.skip("no nm, or no Linux")
    command = [nm, "-D", "--defined-only", "--format=posix", fovea._fovea.__file__]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [name.split()[0] for name in names] == ["PyInit__fovea"]


def test_every_public_thing_is_documented():
    for name in fovea.__all__:
        thing = getattr(fovea, name)
        if isinstance(thing, type):
            assert thing.__doc__, name
            members = [
                pair for one in thing.__mro__ if one.__module__.startswith("fovea") for pair in vars(one).items()
            ]
            for member, value in members:
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{member}"


def test_ray_serve():
    """Texts of replicas are those of one process."""
    wanted("ray.serve")
    has_server = subprocess.run([sys.executable, "-m", "fovea", "serve", "--help"], capture_output=True)
    if has_server.returncode:
        pytest.skip("the package has no command that serves")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    command = [sys.executable, EXAMPLES / "ray_serve.py", str(DEMO), "2"]
    server = subprocess.Popen(command, env={**environment(), "PORT": port}, stderr=subprocess.PIPE, text=True)
    try:
        prompts = [f"turn {way} the {thing}\n" for way in ("on", "off") for thing in ("lamp", "radio", "fan")]
        expected = [fovea.Model(DEMO).generate(prompt, max_new_tokens=20) for prompt in prompts]

        def ask(prompt):
            body = json.dumps({"prompt": prompt, "max_tokens": 20, "temperature": 0}).encode()
            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", body)
            request.add_header("Content-Type", "application/json")
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["choices"][0]["text"]

        wait_for_server(server, port)
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(ask, prompts * 4)) == expected * 4
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(7)
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=120)


def wait_for_server(server, port):
    end = time.monotonic() + 180
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except OSError:
            assert server.poll() is None, server.communicate()[1]
            assert time.monotonic() < end, "expected replicas within three minutes"
            time.sleep(0.3)

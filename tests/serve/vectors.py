"""Vectors as clients have them: those that `fovea encode` makes, with a folder's prompts, their longest text and heads."""
import base64
import json
import math
import os
import shutil
import struct
import tempfile
import unittest

from cases import CHAT, EMBED, FOVEA, GOLDEN, chat, read_npy, run_fovea
from client import Server, at_once

SENTENCE = os.path.join(GOLDEN, "encoders/bert_sentence")
LEGACY, OLLAMA, RERANK = "/api/embeddings", "/api/embed", "/v1/rerank"


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def converted(scratch, name, change=None, source=SENTENCE):
    """A model of a copy of the golden folder, changed first."""
    folder, model = os.path.join(scratch, name), os.path.join(scratch, name + ".fovea")
    shutil.copytree(source, folder)
    if change:
        change(folder)
    run_fovea("convert", folder, "-o", model)
    return model


def write_json(folder, name, value):
    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


def write_matrix(path, name, n_rows, n_columns):
    """A safetensors file of one matrix."""
    values = [((i * 37) % 101 - 50) / 200 for i in range(n_rows * n_columns)]
    head = json.dumps({name: {"dtype": "F32", "shape": [n_rows, n_columns], "data_offsets": [0, 4 * len(values)]}}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + struct.pack(f"<{len(values)}f", *values))


class Vectors(unittest.TestCase):
    def assertNear(self, got, want):
        self.assertEqual(len(got), len(want))
        self.assertLess(max(abs(a - b) for a, b in zip(got, want)), 1e-5)

    def test_embeddings(self):
        texts = read_lines(os.path.join(SENTENCE, "texts.txt"))
        expected = read_npy(os.path.join(SENTENCE, "expected_texts.npy"))
        with tempfile.TemporaryDirectory() as scratch:
            model = converted(scratch, "m")
            with Server(FOVEA, "bert=" + model, "demo=", "--context", "256") as server:
                for given in ({"input": []}, {"prompt": []}, {"input": [], "truncate": False}):  # nothing, as Ollama has it
                    self.assertEqual(server.post(OLLAMA, {"model": "bert", **given}), {"model": "bert", "embeddings": []})
                answer = server.post(EMBED, {"model": "bert", "input": texts})
                vectors = [one["embedding"] for one in answer["data"]]
                self.assertEqual(len(vectors), len(texts))
                for got, want in zip(vectors, expected):
                    self.assertNear(got, want)
                encoded = server.post(EMBED, {"input": texts[0], "encoding_format": "base64"})["data"][0]["embedding"]
                self.assertEqual(struct.unpack(f"<{len(vectors[0])}f", base64.b64decode(encoded)),
                                 struct.unpack(f"<{len(vectors[0])}f", struct.pack(f"<{len(vectors[0])}f", *vectors[0])))
                self.assertEqual(server.post(OLLAMA, {"model": "bert", "input": texts})["embeddings"], vectors)
                self.assertEqual(server.post(LEGACY, {"model": "bert", "prompt": texts[1]}), {"embedding": vectors[1]})
                many = at_once([lambda text=text: server.post(EMBED, {"input": text}) for text in texts * 3])
                self.assertEqual([one["data"][0]["embedding"] for one in many], vectors * 3)
                server.post(EMBED, {"model": "demo", "input": "x"}, want=400)
                server.post(CHAT, {**chat("x"), "model": "bert"}, want=400)
                self.assertEqual(server.post(CHAT, chat("play jazz"))["model"], "demo")
                names = [model["id"] for model in json.loads(server.get("/v1/models"))["data"]]
                self.assertEqual(names, ["bert", "demo"])
                loaded = [model["name"] for model in json.loads(server.get("/api/ps"))["models"]]
                self.assertEqual(loaded, names)
                self.refusals(server)

    def refusals(self, server):
        for path, body, words in (
                (EMBED, {"input": "x", "prompt_name": "query"}, "prompt_name: prompt's name: expected none"),
                (EMBED, {"input": "x", "prompt_name": 3}, "prompt_name: expected a string"),
                (EMBED, {"input": [5, 6], "prompt_name": "query"}, "prompt_name: expected texts beside it"),
                (EMBED, {"input": "x", "dimensions": 0}, "dimensions: expected 1 to"),
                (EMBED, {"input": "x", "dimensions": 100000}, "dimensions: expected at most"),
                (LEGACY, {"prompt": ["x"]}, "prompt: expected a text"),
                (OLLAMA, {"model": "bert"}, "input: expected a text, got none")):
            error = server.post(path, body, want=400)["error"]
            self.assertIn(words, error if isinstance(error, str) else error["message"])
        self.assertEqual(server.post(EMBED, {"input": "x", "prompt_name": ""}), server.post(EMBED, {"input": "x"}))

    def test_prompts_are_sentence_transformers_own(self):
        with open(os.path.join(GOLDEN, "prompts/expected.json"), encoding="utf-8") as file:
            expected = json.load(file)
        texts = read_lines(os.path.join(SENTENCE, "texts.txt"))
        with tempfile.TemporaryDirectory() as scratch:
            config = os.path.join(GOLDEN, "prompts/config_sentence_transformers.json")
            model = converted(scratch, "prompted", lambda folder: shutil.copy(config, folder))
            with Server(FOVEA, model) as server:
                self.assertGreater(len(expected), 4)
                for way, want in expected.items():
                    name = {} if way == "default" else {"prompt_name": "" if way == "nothing" else way}
                    answer = server.post(EMBED, {"input": texts, **name})
                    for one, vector in zip(answer["data"], want["vectors"], strict=True):
                        self.assertNear(one["embedding"], vector)
                    self.assertEqual(answer["usage"]["prompt_tokens"], sum(len(ids) for ids in want["ids"]))
                    for got, vector in zip(server.post(OLLAMA, {"input": texts, **name})["embeddings"], want["vectors"]):
                        self.assertNear(got, vector)
                # Tokens are the client's own: nothing comes before them.
                ids = expected["nothing"]["ids"][0]
                self.assertNear(server.post(EMBED, {"input": ids})["data"][0]["embedding"], expected["nothing"]["vectors"][0])
                error = server.post(EMBED, {"input": "x", "prompt_name": "nobody"}, want=400)["error"]
                self.assertIn("expected one of Instruct, document, empty, query, got nobody", error["message"])

    def test_dimensions_are_the_first_ones_at_length_1(self):
        with tempfile.TemporaryDirectory() as scratch, Server(FOVEA, converted(scratch, "m")) as server:
            whole = server.post(EMBED, {"input": "the lamp"})["data"][0]["embedding"]
            length = math.sqrt(sum(value * value for value in whole[:5]))
            self.assertLess(length, 0.99)
            for body in ({"dimensions": 5}, {"dimensions": 5, "encoding_format": "base64"}):
                cut = server.post(EMBED, {"input": "the lamp", **body})["data"][0]["embedding"]
                cut = struct.unpack("<5f", base64.b64decode(cut)) if isinstance(cut, str) else cut
                self.assertNear(cut, [value / length for value in whole[:5]])
            self.assertNear(server.post(OLLAMA, {"input": "the lamp", "dimensions": 5})["embeddings"][0], cut)
            self.assertEqual(server.post(EMBED, {"input": "the lamp", "dimensions": len(whole)})["data"][0]["embedding"], whole)

    def test_a_causal_rerankers_scores_are_the_model_cards(self):
        golden = os.path.join(GOLDEN, "rerankers/causal")
        with open(os.path.join(golden, "expected.json"), encoding="utf-8") as file:
            cases = json.load(file)
        with tempfile.TemporaryDirectory() as scratch, Server(FOVEA, converted(scratch, "m", source=golden)) as server:
            for case in filter(lambda case: case["query"], cases):  # a request has a query
                body = {"query": case["query"], "documents": [case["document"]]}
                score = server.post(RERANK, body)["results"][0]["relevance_score"]
                self.assertAlmostEqual(score, 1 / (1 + math.exp(-case["logit"])), delta=1e-4)
                predicted = server.post("/predict", {"inputs": [[case["query"], case["document"]]], "raw_scores": True})
                self.assertAlmostEqual(predicted[0][0]["score"], case["logit"], delta=4e-4)
            error = server.post(RERANK, {"query": "why " * 200, "documents": ["x"]}, want=400)["error"]
            self.assertIn("leaves room for a document in 150 tokens", error["message"])

    def test_sparse_vectors_are_ids_and_weights(self):
        for name, option in (("splade", []), ("m3", ["--sparse"])):
            golden = os.path.join(GOLDEN, "sparse", name)
            with open(os.path.join(golden, "expected.json"), encoding="utf-8") as file:
                cases = json.load(file)
            with tempfile.TemporaryDirectory() as scratch:
                model = os.path.join(scratch, "m.fovea")
                run_fovea("convert", golden, "-o", model, *option)
                with Server(FOVEA, model) as server:
                    for prompt in sorted({case["prompt"] for case in cases}):
                        mine = [case for case in cases if case["prompt"] == prompt]
                        body = {"inputs": [case["text"] for case in mine], "prompt_name": prompt, "truncate": True}
                        answer = server.post("/embed_sparse", body)
                        for got, case in zip(answer, mine, strict=True):
                            weights = {str(one["index"]): one["value"] for one in got}
                            self.assertEqual(weights.keys(), case["weights"].keys())
                            for token, weight in weights.items():
                                self.assertAlmostEqual(weight, case["weights"][token], delta=3e-4)
        with tempfile.TemporaryDirectory() as scratch, Server(FOVEA, converted(scratch, "m")) as server:
            error = server.post("/embed_sparse", {"inputs": "a"}, want=400)["error"]
            self.assertIn("expected one that makes sparse vectors", error["message"])

    def test_late_interaction_gives_vectors_of_tokens_and_scores(self):
        for name, options in (("native", []), ("pylate", []), ("stanford", []), ("m3", ["--colbert"])):
            golden = os.path.join(GOLDEN, "late", name)
            with open(os.path.join(golden, "expected.json"), encoding="utf-8") as file:
                want = json.load(file)
            with tempfile.TemporaryDirectory() as scratch:
                model = os.path.join(scratch, "m.fovea")
                run_fovea("convert", golden, "-o", model, "--type", "f32", *options)
                with Server(FOVEA, model) as server:
                    for query, scores in zip(want["queries"], want["scores"], strict=True):
                        answer = server.post(RERANK, {"query": query, "documents": want["documents"]})
                        self.assertEqual(len(answer["results"]), len(scores))
                        for one in answer["results"]:
                            self.assertAlmostEqual(one["relevance_score"], scores[one["index"]], delta=1e-4)
                        told = [one["relevance_score"] for one in answer["results"]]
                        self.assertEqual(told, sorted(told, reverse=True))
                    tei = server.post("/rerank", {"query": want["queries"][0], "texts": want["documents"]})
                    self.assertAlmostEqual(tei[0]["score"], max(want["scores"][0]), delta=1e-4)
                    for side, texts, vectors in (("query", "queries", "query_vectors"), (None, "documents", "document_vectors")):
                        body = {"inputs": want[texts]} | ({"prompt_name": side} if side else {})
                        for got, rows in zip(server.post("/embed_all", body), want[vectors], strict=True):
                            self.assertEqual(len(got), len(rows))
                            for row, values in zip(got, rows, strict=True):
                                for value, expected in zip(row, values, strict=True):
                                    self.assertAlmostEqual(value, expected, delta=1e-4)
                    error = server.post("/embed_all", {"inputs": "a", "prompt_name": "other"}, want=400)["error"]
                    self.assertIn("prompt_name: expected query or document", error["message"])
        with tempfile.TemporaryDirectory() as scratch, Server(FOVEA, converted(scratch, "m")) as server:
            error = server.post("/embed_all", {"inputs": "a"}, want=400)["error"]
            self.assertIn("expected one of late interaction", error["message"])

    def test_documents_are_ranked_by_the_rerankers_scores(self):
        golden = os.path.join(GOLDEN, "encoders/bert_sequenceclassification")
        documents = ["a b", "c d e f", "b", "z z z z z z z"]
        with tempfile.TemporaryDirectory() as scratch:
            model = converted(scratch, "reranker", source=golden)
            texts = os.path.join(scratch, "texts.txt")
            with open(texts, "w", encoding="utf-8") as file:
                file.write("\n".join(documents) + "\n")
            lines = run_fovea("classify", model, "-p", "a b c", "--texts", texts, "--json").splitlines()
            want = [json.loads(line)["labels"][0]["score"] for line in lines]
            self.assertEqual(len(set(want)), len(documents))
            best = sorted(range(len(want)), key=lambda i: -want[i])
            with Server(FOVEA, model, converted(scratch, "bert")) as server:
                body = {"model": "reranker", "query": "a b c", "documents": documents}
                for path in (RERANK, "/rerank"):
                    answer = server.post(path, body)
                    self.assertEqual([one["index"] for one in answer["results"]], best)
                    for one in answer["results"]:
                        self.assertAlmostEqual(one["relevance_score"], want[one["index"]], delta=1e-6)
                        self.assertNotIn("document", one)
                self.assertGreater(answer["usage"]["prompt_tokens"], 20)
                as_objects = {**body, "documents": [{"text": text} for text in documents], "top_n": 2, "return_documents": True}
                answer = server.post(RERANK, as_objects)
                self.assertEqual([one["document"]["text"] for one in answer["results"]], [documents[i] for i in best[:2]])
                # Beside requests for vectors of the same model, and many at once.
                many = at_once([lambda: server.post(RERANK, body)["results"], lambda: server.post(EMBED, {"model": "reranker", "input": "a"})] * 8)
                self.assertEqual(many[0::2], [many[0]] * 8)
                self.assertEqual(many[1::2], [many[1]] * 8)
                for spoiled, words in (({"query": ""}, "query: expected a text"), ({"documents": []}, "documents: expected 1"),
                                       ({"documents": "x"}, "documents: expected an array"), ({"documents": [3]}, "documents: expected texts"),
                                       ({"top_n": -1}, "top_n: expected 0 to"), ({"model": "bert"}, "model: expected a reranker")):
                    self.assertIn(words, server.post(RERANK, {**body, **spoiled}, want=400)["error"]["message"])

    def test_ollamas_vectors_have_length_1(self):
        def without_normalize(folder):
            with open(os.path.join(folder, "modules.json"), encoding="utf-8") as file:
                modules = json.load(file)
            write_json(folder, "modules.json", modules[:2])

        with tempfile.TemporaryDirectory() as scratch, Server(FOVEA, converted(scratch, "m", without_normalize)) as server:
            whole = server.post(EMBED, {"input": "the lamp"})["data"][0]["embedding"]
            length = math.sqrt(sum(value * value for value in whole))
            self.assertGreater(abs(length - 1), 0.01)
            self.assertNear(server.post(OLLAMA, {"input": "the lamp"})["embeddings"][0], [value / length for value in whole])
            self.assertEqual(server.post(LEGACY, {"prompt": "the lamp"})["embedding"], whole)

    def test_texts_are_as_long_as_the_folder_or_the_context_says(self):
        def short(folder):
            write_json(folder, "sentence_bert_config.json", {"max_seq_length": 8})
        with tempfile.TemporaryDirectory() as scratch:
            model, long = converted(scratch, "short", short), converted(scratch, "long")
            path = os.path.join(scratch, "v.npy")
            run_fovea("encode", model, "-p", "the " * 30, "-o", path)
            for arguments in [model], [long, "--context", "8"]:
                with self.subTest(arguments[1:]), Server(FOVEA, *arguments) as server:
                    message = server.post(EMBED, {"input": "the " * 30}, want=400)["error"]["message"]
                    self.assertIn("expected at most 8 tokens", message)
                    answer = server.post(EMBED, {"input": "the " * 30, "truncate": True})
                    self.assertEqual(answer["usage"]["prompt_tokens"], 8)
                    cut = server.post(OLLAMA, {"input": "the " * 30})["embeddings"][0]
                    self.assertEqual(cut, answer["data"][0]["embedding"])
                    self.assertEqual(cut, server.post(EMBED, {"input": "the " * 6})["data"][0]["embedding"])
                    server.post(OLLAMA, {"input": "the " * 30, "truncate": False}, want=400)
                    server.post(OLLAMA, {"input": "word " * 100000, "truncate": True})

    def test_a_length_that_has_no_room_for_what_closes_a_text(self):
        def short(folder):
            write_json(folder, "sentence_bert_config.json", {"max_seq_length": 1})
        with tempfile.TemporaryDirectory() as scratch:
            model = converted(scratch, "short", short)
            texts, path = os.path.join(scratch, "texts.txt"), os.path.join(scratch, "v.npy")
            with open(texts, "w", encoding="utf-8") as file:
                file.write("\nthe lamp\n\n")
            run_fovea("encode", model, "--texts", texts, "-o", path)
            with Server(FOVEA, model) as server:
                answer = server.post(EMBED, {"input": ["", "the lamp", ""], "truncate": True})
                got = [tuple(one["embedding"]) for one in answer["data"]]
                self.assertEqual(got, [tuple(row) for row in read_npy(path)])

    def test_a_head_makes_vectors_of_its_own_width(self):
        """What a Dense module behind the pooling makes: what encode writes, to its last bit."""
        def dense(folder):
            with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
                width = json.load(file)["hidden_size"]
            with open(os.path.join(folder, "modules.json"), encoding="utf-8") as file:
                modules = json.load(file)[:2]
            modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
            write_json(folder, "modules.json", modules)
            write_json(folder, "2_Dense/config.json", {"in_features": width, "out_features": 11, "bias": False,
                                                       "activation_function": "torch.nn.modules.linear.Identity"})
            write_matrix(os.path.join(folder, "2_Dense/model.safetensors"), "linear.weight", 11, width)
        texts = read_lines(os.path.join(SENTENCE, "texts.txt"))
        with tempfile.TemporaryDirectory() as scratch:
            model = converted(scratch, "dense", dense)
            path = os.path.join(scratch, "v.npy")
            run_fovea("encode", model, "--texts", os.path.join(SENTENCE, "texts.txt"), "-o", path)
            with Server(FOVEA, model) as server:
                answer = server.post(EMBED, {"input": texts, "encoding_format": "base64"})
                got = [struct.unpack("<11f", base64.b64decode(one["embedding"])) for one in answer["data"]]
                self.assertEqual(got, [tuple(row) for row in read_npy(path)])


class Classifiers(unittest.TestCase):
    def test_vectors_of_a_classifier_are_those_before_its_head(self):
        folder = os.path.join(GOLDEN, "encoders/bert_sequenceclassification")
        with tempfile.TemporaryDirectory() as scratch:
            model = os.path.join(scratch, "m.fovea")
            run_fovea("convert", folder, "-o", model)
            path = os.path.join(scratch, "v.npy")
            run_fovea("encode", model, "--tokens", "2,5,7,3", "-o", path)
            with Server(FOVEA, model) as server:
                answer = server.post(EMBED, {"input": [2, 5, 7, 3], "encoding_format": "base64"})["data"][0]["embedding"]
                with open(path, "rb") as file:
                    self.assertTrue(file.read().endswith(base64.b64decode(answer)))

"""Routes of llama.cpp's server, vLLM, Cohere and text-embeddings-inference, the request log, and streams that wait."""
import http.client
import json
import math
import os
import signal
import tempfile
import time
import unittest

from cases import CHAT, COMPLETE, FOVEA, GOLDEN, WithServer, WithTemplates, chat, complete, run_fovea
from client import Server, http_bytes, wait_until
from hostile import heavy_schema, in_form

PREDICT = "/predict"


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Routes(WithServer):
    def test_paths_without_v1(self):
        for path, other, body in ((CHAT, "/chat/completions", chat("play jazz", temperature=0)),
                                  ("/v1/responses", "/responses", {"input": "play jazz", "temperature": 0})):
            drop = lambda answer: json.dumps({k: v for k, v in answer.items() if k in ("choices", "usage", "status")})
            self.assertEqual(drop(self.server.post(path, body)), drop(self.server.post(other, body)))
        for path in ("/models", "/models/demo", "/health"):
            self.assertEqual(json.loads(self.server.get(path)), json.loads(self.server.get("/v1" + path)))

    def test_completion_of_llama_cpp(self):
        body = {"prompt": "wake me up at 7 am\n", "temperature": 0, "n_predict": 40, "n_probs": 2}
        same = {"model": "demo", "prompt": body["prompt"], "temperature": 0, "max_tokens": 40, "logprobs": 2}
        whole = self.server.post(COMPLETE, same)
        answer = self.server.post("/completion", {**body, "return_tokens": True})
        self.assertEqual(answer["content"], whole["choices"][0]["text"])
        self.assertEqual(answer["tokens_predicted"], whole["usage"]["completion_tokens"])
        self.assertEqual(answer["tokens_evaluated"], whole["usage"]["prompt_tokens"])
        self.assertEqual((answer["stop"], answer["stop_type"], answer["truncated"]), (True, "eos", False))
        chances = answer["completion_probabilities"]
        self.assertEqual([one["logprob"] for one in chances], whole["choices"][0]["logprobs"]["token_logprobs"])
        self.assertEqual([len(one["top_logprobs"]) for one in chances], [2] * len(chances))
        self.assertEqual(answer["tokens"], [one["id"] for one in chances])
        self.assertEqual(self.server.post("/detokenize", {"tokens": answer["tokens"]})["content"], answer["content"])
        self.assertGreater(answer["timings"]["predicted_per_second"], 0)
        self.assertEqual(answer["timings"]["predicted_n"], answer["tokens_predicted"])
        events = list(self.server.stream("/completions", body))
        self.assertEqual("".join(event["content"] for event in events), answer["content"])
        self.assertEqual([event["stop"] for event in events], [False] * (len(events) - 1) + [True])
        cut = self.server.post("/completion", {**body, "n_predict": 3})
        self.assertEqual((cut["stop_type"], cut["tokens_predicted"], cut["tokens"]), ("limit", 3, []))
        word = self.server.post("/completion", {**body, "stop": ["alarm"]})
        self.assertEqual((word["stop_type"], word["stopping_word"]), ("word", "alarm"))
        ids = self.server.post("/tokenize", {"content": body["prompt"], "add_special": True})["tokens"]
        self.assertEqual(self.server.post("/completion", {**body, "prompt": ids})["content"], answer["content"])
        for wrong, words in (({}, "prompt"), ({"prompt": ["a", "b"]}, "prompt: expected one text"), ([], "body")):
            self.assertIn(words, self.server.post("/completion", wrong, want=400)["error"]["message"])

    def test_what_a_server_is(self):
        model = json.loads(self.server.get("/v1/models"))["data"][0]
        self.assertEqual((model["max_model_len"], model["meta"]["n_ctx"], model["capabilities"]), (256, 256, ["completion"]))
        self.assertGreater(model["meta"]["n_params"], 1000)
        props = json.loads(self.server.get("/props"))
        self.assertEqual((props["default_generation_settings"]["n_ctx"], props["model_alias"]), (256, "demo"))
        self.assertTrue(wait_until(lambda: self.server.metric("sequences_running") == 0))  # others' answers have ended
        slots = json.loads(self.server.get("/slots"))
        self.assertEqual([slot["id"] for slot in slots], list(range(props["total_slots"])))
        self.assertEqual({slot["is_processing"] for slot in slots}, {False})
        self.assertRegex(json.loads(self.server.get("/version"))["version"], r"^\d+\.\d+\.\d+$")
        major, minor, _ = json.loads(self.server.get("/api/version"))["version"].split(".")
        self.assertGreaterEqual((int(major), int(minor)), (0, 12))
        for details in (json.loads(self.server.get("/api/tags"))["models"][0]["details"],
                        self.server.post("/api/show", {"model": "demo"})["details"]):
            self.assertRegex(details["parameter_size"], r"^[\d.]+[KMB]$")
            self.assertIn(details["quantization_level"], ("f32", "f16", "bf16", "q8", "q4"))
        self.assertEqual(self.server.request("POST", "/props", {})[0], 405)


class VectorRoutes(unittest.TestCase):
    def test_vectors_and_scores_in_other_forms(self):
        texts = ["It was written by her.", "It rains.", "who wrote it?"]
        with tempfile.TemporaryDirectory() as scratch:
            models = {}
            for name, source in (("bert", "encoders/bert_sentence"), ("ranker", "encoders/bert_sequenceclassification"),
                                 ("classes", "encoders/distilbert_sequenceclassification")):
                models[name] = os.path.join(scratch, name + ".fovea")
                run_fovea("convert", os.path.join(GOLDEN, source), "-o", models[name])
            with Server(FOVEA, *models.values()) as server:
                self.check_unnamed(server, texts)
                self.check_vectors(server, texts)
                self.check_scores(server, texts)
                self.check_classes(server, models["classes"], texts)

    def check_unnamed(self, server, texts):
        """Without a name the only model that suits a route answers."""
        for path, body, name in (("/v1/embeddings", {"input": texts}, "bert"), ("/embedding", {"content": texts}, "bert"),
                                 ("/embed", {"inputs": texts}, "bert"), ("/api/embed", {"input": texts}, "bert"),
                                 ("/rerank", {"query": "who?", "texts": texts}, "ranker"),
                                 ("/v2/rerank", {"query": "who?", "documents": texts}, "ranker"),
                                 (PREDICT, {"inputs": texts[0]}, "classes")):
            drop = lambda answer: [one for key, one in answer.items() if key != "id"] if isinstance(answer, dict) else answer
            self.assertEqual(drop(server.post(path, body)), drop(server.post(path, {**body, "model": name})))

    def check_vectors(self, server, texts):
        known = [one["embedding"] for one in server.post("/v1/embeddings", {"model": "bert", "input": texts})["data"]]
        unit = [[x / math.sqrt(sum(y * y for y in vector)) for x in vector] for vector in known]
        for fields, want in (({}, unit), ({"embd_normalize": -1}, known)):
            for got, vector in zip(server.post("/embedding", {"model": "bert", "content": texts, **fields}), want):
                self.assertLess(max(abs(a - b) for a, b in zip(got["embedding"][0], vector)), 1e-6)
        for fields, want in (({}, unit), ({"normalize": False}, known)):
            for got, vector in zip(server.post("/embed", {"model": "bert", "inputs": texts, **fields}), want):
                self.assertLess(max(abs(a - b) for a, b in zip(got, vector)), 1e-6)
        self.assertEqual(len(server.post("/embed", {"model": "bert", "inputs": texts[0]})), 1)
        info = json.loads(server.get("/info"))
        self.assertEqual((info["model_id"], info["model_type"]), ("bert", {"embedding": {"dimensions": len(known[0])}}))
        for path, field in (("/embed", "inputs"), ("/embedding", "content"), ("/embedding", "input"), ("/v1/embeddings", "input"),
                            ("/api/embeddings", "prompt")):
            error = server.post(path, {"model": "bert", field: "word " * 9000, "truncate": False}, want=400)["error"]
            message = error if isinstance(error, str) else error["message"]  # Ollama's
            self.assertTrue(message.startswith(field + ": expected"), (path, message))
            if not isinstance(error, str):
                self.assertEqual(error["param"], field)
        self.assertIn("inputs", server.post("/embed", {"model": "bert"}, want=400)["error"]["message"])
        self.assertEqual(server.post("/embedding", {"model": "bert", "content": []}, want=400)["error"]["param"], "content")

    def check_scores(self, server, texts):
        body = {"model": "ranker", "query": "who?", "documents": texts}
        known = server.post("/v1/rerank", body)["results"]
        cohere = server.post("/v2/rerank", {**body, "top_n": 2})
        self.assertEqual(cohere["results"], known[:2])
        self.assertEqual(cohere["meta"]["api_version"]["version"], "2")
        tei = {"model": "ranker", "query": "who?", "texts": texts}
        for path in ("/rerank", "/reranking", "/v1/reranking"):
            self.assertEqual(server.post(path, body)["results"], known)
        ranks = server.post("/rerank", {**tei, "return_text": True})
        self.assertEqual([one["index"] for one in ranks], [one["index"] for one in known])
        self.assertEqual([one["text"] for one in ranks], [texts[one["index"]] for one in ranks])
        raw = server.post("/rerank", {**tei, "raw_scores": True})
        for one, logit in zip(ranks, raw):
            self.assertAlmostEqual(one["score"], 1 / (1 + math.exp(-logit["score"])), places=6)

    def check_classes(self, server, model, texts):
        self.assertEqual([server.post("/api/show", {"model": name})["capabilities"] for name in ("bert", "ranker", "classes")],
                         [["embedding"], ["rerank"], ["classification"]])
        with Server(FOVEA, model) as alone:
            labels = json.loads(alone.get("/info"))["model_type"]["classifier"]
            known = {label["label"] for label in alone.post(PREDICT, {"inputs": texts[0]})}
            self.assertEqual(set(labels["label2id"]), known)
            self.assertEqual({labels["id2label"][i]: i for i in labels["id2label"]}, labels["label2id"])
        one = server.post(PREDICT, {"model": "classes", "inputs": texts[0]})
        self.assertAlmostEqual(sum(label["score"] for label in one), 1, places=5)
        self.assertEqual([label["score"] for label in one], sorted((label["score"] for label in one), reverse=True))
        both = server.post(PREDICT, {"model": "classes", "inputs": [[texts[0]], [texts[1]]]})
        self.assertEqual(both[0], one)
        known = json.loads(run_fovea("classify", model, "-p", texts[0], "--json"))["labels"]
        self.assertEqual([label["label"] for label in one], [label["label"] for label in known])
        for label, other in zip(one, known):
            self.assertAlmostEqual(label["score"], other["score"], places=6)
        for inputs in (3, [], [["a", "b", "c"]], [[1]]):
            self.assertIn("inputs", server.post(PREDICT, {"model": "classes", "inputs": inputs}, want=400)["error"]["message"])
        error = server.post(PREDICT, {"model": "bert", "inputs": "x"}, want=400)["error"]["message"]
        self.assertIn("head for classes", error)


class RequestLogs(unittest.TestCase):
    def test_a_line_for_each_request(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "requests.jsonl")
            with Server(FOVEA, "demo=", "--log", path) as server:
                answer = server.post(CHAT, chat("play jazz", temperature=0, n=2))
                list(server.stream(COMPLETE, complete("play jazz", temperature=0)))
                server.post(CHAT, {}, want=400)
                server.get("/health")
                server.get("/nothing", want=404)
            whole, stream, wrong, health, nothing = lines_of(path)
            self.assertEqual(whole["prompt_tokens"], answer["usage"]["prompt_tokens"])
            self.assertEqual(whole["completion_tokens"], answer["usage"]["completion_tokens"])
            self.assertEqual((whole["id"], whole["model"], whole["status"]), (answer["id"], "demo", 200))
            self.assertLessEqual(whole["first_ms"], whole["total_ms"])
            self.assertEqual((whole["stream"], stream["stream"], stream["path"]), (False, True, COMPLETE))
            self.assertEqual((wrong["status"], health["status"], nothing["status"]), (400, 200, 404))
            self.assertIn("messages", wrong["error"])
            with open(path, encoding="utf-8") as file:
                self.assertNotIn("jazz", file.read())
            with Server(FOVEA, "demo=", "--log", path, "--log-texts") as server:
                text = server.post(CHAT, chat("play jazz", temperature=0))["choices"][0]["message"]["content"]
            last = lines_of(path)[-1]
            self.assertEqual((len(lines_of(path)), last["answers"]), (6, [text]))
            self.assertEqual(last["request"]["messages"], chat("play jazz")["messages"])

    def test_who_left(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "requests.jsonl")
            with Server(FOVEA, "demo=", "--log", path, "--sequences", "1") as server:
                body = complete("play jazz", max_tokens=240, n=32, temperature=5, stream=True)
                connection = http.client.HTTPConnection("127.0.0.1", server.port)
                connection.request("POST", COMPLETE, json.dumps(body))
                connection.getresponse().read(10)
                connection.close()
                self.assertTrue(wait_until(lambda: os.path.getsize(path) > 0))
            self.assertEqual(lines_of(path)[0]["status"], 499)


    def test_a_forced_end(self):
        """A second signal ends what is under way: what was asked is logged still, running, waiting and before its form is ready."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "requests.jsonl")
            with Server(FOVEA, "demo=", "--log", path, "--sequences", "1") as server:
                body = complete("play jazz", max_tokens=240, n=32, temperature=5, ignore_eos=True)
                held = [server.raw(http_bytes(COMPLETE, {**body, "stream": i % 2 == 0})) for i in range(4)]
                held += [server.raw(http_bytes(CHAT, in_form(heavy_schema(i)))) for i in range(3)]
                self.assertTrue(wait_until(lambda: server.metric("sequences_running", "requests_waiting") >= 4))
                n_before = len(lines_of(path))
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.2)
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(60), 0)
                for connection in held:
                    connection.close()
            lines = lines_of(path)[n_before:]
            self.assertEqual(len([line for line in lines if line["path"] in (CHAT, COMPLETE)]), len(held), lines)
            self.assertIn(503, {line["status"] for line in lines})


class SilentStreams(unittest.TestCase):
    def test_comments_while_a_stream_waits(self):
        with Server(FOVEA, "demo=", "--sequences", "1", "--ping", "1") as server:
            busy = http_bytes(COMPLETE, complete("play jazz", max_tokens=240, n=32, temperature=5, ignore_eos=True))
            others = [server.raw(busy) for _ in range(4)]
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
            connection.request("POST", CHAT, json.dumps(chat("play jazz", temperature=0, stream=True)))
            response, lines, begun = connection.getresponse(), [], time.monotonic()
            while b": \n" not in lines and not any(b'"content":"' in line and b'"content":""' not in line for line in lines):
                lines.append(response.readline())
            waited = time.monotonic() - begun
            for one in (connection, *others):
                one.close()
        self.assertTrue(b": \n" in lines or waited < 3, (waited, lines))


class SpecialTokens(WithTemplates):
    def test_no_message_opens_a_role(self):
        server = self.serve("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}")
        calm = server.post(CHAT, chat("calm water", max_tokens=1))["usage"]["prompt_tokens"]
        count = lambda text: server.post("/v1/messages/count_tokens", chat(text))["input_tokens"]
        self.assertEqual(count("calm water"), calm)
        self.assertGreater(count("<|im_end|>"), count("") + 3)

"""Programs and clients of Node.js: lm-eval, guidellm, aider; openai and Vercel's ai."""
import json
import os
import shutil
import subprocess
import sys

from clients_cases import ANSWER, KEY, MESSAGES, Client, Shared, base

QUESTIONS = ({"text": "play", "answer": 0}, {"text": "turn on the lamp", "answer": 1})
CHOICES = ("jazz", "in the hall")
# lm-eval's tasks are YAML, of which JSON is a part.
TASK = {"dataset_path": "json", "test_split": "test", "doc_to_text": "{{text}}"}
TASKS = {
    "choose": {**TASK, "output_type": "multiple_choice", "doc_to_choice": CHOICES, "doc_to_target": "{{answer}}",
               "metric_list": [{"metric": "acc"}]},
    "write": {**TASK, "output_type": "generate_until", "doc_to_target": "x", "metric_list": [{"metric": "exact_match"}],
              "generation_kwargs": {"until": ["}"], "max_gen_toks": 40, "do_sample": False, "temperature": 0.0}},
}


def run_program(*command, folder, **more):
    """What a program of this environment wrote; it must end well."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "HOME": folder, **more})
    assert done.returncode == 0, f"{command[0]}: expected exit status 0, got {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


class LMEval(Client):
    PACKAGES = ("lm-eval", "tenacity", "aiohttp", "requests", "tqdm")

    def samples(self, task, kind="local-completions", path="/completions", *more):
        """What the harness had from the server for each question."""
        folder = self.scratch()
        file = os.path.join(folder, "questions.jsonl")
        with open(file, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(question) + "\n" for question in QUESTIONS)
        with open(os.path.join(folder, task + ".yaml"), "w", encoding="utf-8") as out:
            json.dump({"task": task, **TASKS[task], "dataset_kwargs": {"data_files": {"test": file}}}, out)
        options = f"base_url={base()}{path},model=demo,max_length=256,tokenizer_backend="
        options += "remote" if path == "/completions" else "none,tokenized_requests=False"
        run_program(sys.executable, "-m", "lm_eval", "run", "--model", kind, "--model_args", options, "--include_path", folder,
                    "--tasks", task, "--log_samples", "--output_path", os.path.join(folder, "out"), *more, folder=folder)
        found = [os.path.join(place, name) for place, _, names in os.walk(os.path.join(folder, "out")) for name in names]
        with open(next(name for name in found if "samples_" in name), encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def ids(self, text):
        return Shared.server.post("/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]  # the harness adds none

    def test_chances(self):
        for sample in self.samples("choose"):
            for choice, response in zip(CHOICES, sample["resps"]):
                text = sample["doc"]["text"]
                ids = [self.ids(one) for one in (text, f"{text} {choice}")]
                body = {"model": "demo", "prompt": ids[1], "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
                known = Shared.server.post("/v1/completions", body)["choices"][0]["logprobs"]["token_logprobs"]
                self.assertAlmostEqual(float(response[0][0]), sum(known[len(ids[0]):len(ids[1])]), places=3)

    def test_completion(self):
        for sample in self.samples("write"):
            body = {"model": "demo", "prompt": self.ids(sample["doc"]["text"]), "temperature": 0, "max_tokens": 40, "stop": "}"}
            known = Shared.server.post("/v1/completions", body)["choices"][0]["text"]
            self.assertEqual(sample["resps"][0][0], known)

    def test_chat(self):
        samples = self.samples("write", "local-chat-completions", "/chat/completions", "--apply_chat_template")
        self.assertTrue(samples[1]["resps"][0][0].startswith('{"do":"on"'), samples[1]["resps"])


class GuideLLM(Client):
    PACKAGES = ("guidellm",)

    def measure(self, path):
        folder = self.scratch()
        texts, made = os.path.join(folder, "texts.jsonl"), os.path.join(folder, "made.json")
        with open(texts, "w", encoding="utf-8") as out:
            out.writelines(json.dumps({"prompt": question["text"]}) + "\n" for question in QUESTIONS)
        backend = f"kind=openai_http,target={Shared.server.url},model=demo,request_format={path},max_tokens=30"
        run_program(sys.executable, "-m", "guidellm", "run", "--backend", backend, "--profile", "kind=synchronous",
                    "--constraint", "kind=max_requests,count=2", "--data", f"kind=json_file,path={texts}",
                    "--output", f"kind=json,path={made}", "--disable-progress", folder=folder)
        with open(made, encoding="utf-8") as file:
            requests = json.load(file)["benchmarks"][0]["requests"]
        self.assertEqual((len(requests["successful"]), requests["errored"]), (2, []))
        for request in requests["successful"]:
            self.assertTrue(request["output"])
            self.assertGreater(request["output_tokens"], 0)
            self.assertGreater(request["time_to_first_token_ms"], 0)

    def test_stream(self):
        self.measure("/v1/chat/completions")

    def test_completion(self):
        self.measure("/v1/completions")

    def test_responses(self):
        self.measure("/v1/responses")


class Aider(Client):
    PACKAGES = ("aider-chat",)

    def setUp(self):
        os.environ.update(OPENAI_API_BASE=base(), OPENAI_API_KEY=KEY)

    def test_chat(self):
        from aider.models import Model
        self.assertEqual(Model("openai/demo").simple_send_with_retries(MESSAGES), ANSWER)

    def test_stream(self):
        from aider.models import Model
        parts = Model("openai/demo").send_completion(MESSAGES, None, True, 0)[1]
        self.assertEqual("".join(part.choices[0].delta.content or "" for part in parts), ANSWER)

    def test_errors(self):
        folder = self.scratch()
        said = run_program(sys.executable, "-m", "aider", "--model", "openai/demo", "--message", "x", "--no-git", "--yes-always",
                           "--no-check-update", "--no-show-model-warnings", "--no-analytics", folder=folder)
        self.assertIn("token limit", said)  # its own prompt is longer than the built-in model reads


class NodeClient(Client):
    """Of npm, in the folder that FOVEA_NODE_CLIENTS names; the calls are in clients_node.mjs."""
    PLACE = "node"

    @classmethod
    def package(cls):
        return os.path.join(os.environ.get("FOVEA_NODE_CLIENTS", ""), "node_modules", cls.PACKAGES[0], "package.json")

    @classmethod
    def is_there(cls):
        return bool(cls.PACKAGES) and shutil.which("node") is not None and os.path.isfile(cls.package())

    @classmethod
    def version(cls):
        with open(cls.package(), encoding="utf-8") as file:
            return json.load(file)["version"]

    def call(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients_node.mjs")
        with open(script, encoding="utf-8") as file:
            command = ["node", "--input-type=module", "-", Shared.server.url, f"{self.PACKAGES[0]} {self._testMethodName}"]
            done = subprocess.run(command, cwd=os.environ["FOVEA_NODE_CLIENTS"], stdin=file, capture_output=True, text=True,
                                  timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])


class NodeOpenAI(NodeClient):
    PACKAGES = ("openai", "zod")
    test_chat = test_stream = test_tools = test_form = test_responses = test_vectors = test_errors = NodeClient.call


class VercelAI(NodeClient):
    PACKAGES = ("ai", "@ai-sdk/openai-compatible", "@ai-sdk/openai", "zod")
    test_chat = test_stream = test_tools = test_form = test_responses = test_vectors = test_errors = NodeClient.call

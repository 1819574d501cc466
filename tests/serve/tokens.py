"""What the server does to texts: ids, the text of ids, a conversation by its model's template; run by server_test.py."""
import json
import os
import tempfile

from cases import FOVEA, GOLDEN, WithServer, WithTemplates, chat, run_fovea
from client import Server

TEXTS = ["turn on the reading lamp", "", "  two  spaces", "é 日本語 🙂", "<|en|> <s> [SEP]", "a\nb\tc"]
TOKENIZE, DETOKENIZE, TEMPLATE = "/tokenize", "/detokenize", "/apply-template"


class Tokens(WithServer):
    def test_ids_and_texts_are_the_command_lines(self):
        with tempfile.TemporaryDirectory() as scratch:
            models = {}
            for name, source in (("bert", "encoders/bert_sentence"), ("whisper", "speech/whisper_talking")):
                models[name] = os.path.join(scratch, name + ".fovea")
                run_fovea("convert", os.path.join(GOLDEN, source), "-o", models[name])
            with Server(FOVEA, *models.values()) as server:
                for name, file in models.items():
                    command = ["tokenize", file, "--json"]
                    for text in TEXTS:
                        known = json.loads(run_fovea(*command, "-p", text, "--special"))["tokens"]
                        body = {"model": name, "content": text, "add_special": True}
                        self.assertEqual(server.post(TOKENIZE, body)["tokens"], known)
                        plain = json.loads(run_fovea(*command, "-p", text))["tokens"]
                        self.assertEqual(server.post(TOKENIZE, {**body, "parse_special": False})["tokens"], plain)
                        bare = server.post(TOKENIZE, {"model": name, "content": text})["tokens"]
                        self.assertIn(json.dumps(bare)[1:-1], json.dumps(known))
                        if not known:
                            continue
                        shown = json.loads(run_fovea(*command, "--special", "--decode", " ".join(map(str, known))))["text"]
                        self.assertEqual(server.post(DETOKENIZE, {"model": name, "tokens": known}),
                                         {"content": shown, "prompt": shown})
                self.assertEqual(server.post(DETOKENIZE, {"model": "whisper", "tokens": [267]})["content"], "<|en|>")
                error = server.post(TOKENIZE, {**chat("x"), "model": "bert"}, want=400)["error"]["message"]
                self.assertEqual(error, "messages: expected a model that writes texts, got bert")
                error = server.post(TOKENIZE, {"content": "x"}, want=404)["error"]["message"]
                self.assertIn("one of bert, whisper", error)

    def test_pieces(self):
        for text in TEXTS:
            ids = self.server.post(TOKENIZE, {"content": text})["tokens"]
            pieces = self.server.post(TOKENIZE, {"content": text, "with_pieces": True})["tokens"]
            self.assertEqual([piece["id"] for piece in pieces], ids)
            whole = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes(p["piece"]) for p in pieces)
            self.assertEqual(whole.decode().strip(), text.strip())
        pieces = self.server.post(TOKENIZE, {"content": "🙂", "with_pieces": True})["tokens"]
        self.assertEqual([type(piece["piece"]) for piece in pieces], [list] * len(pieces))

    def test_prompts_as_vllm_tells_their_tokens(self):
        for text in TEXTS:
            for special in (True, False):
                known = self.server.post(TOKENIZE, {"content": text, "add_special": special})["tokens"]
                told = self.server.post(TOKENIZE, {"prompt": text, "add_special_tokens": special, "return_token_strs": True})
                self.assertEqual((told["tokens"], told["count"], told["max_model_len"]), (known, len(known), 256))
                self.assertEqual(len(told["token_strs"]), len(known))
        self.assertEqual(self.server.post(TOKENIZE, {"prompt": "a"}), {
            **self.server.post(TOKENIZE, {"prompt": "a", "add_special_tokens": True}), "token_strs": None})
        talk = self.server.post(TOKENIZE, chat("play jazz"))
        self.assertEqual(talk["count"], self.server.post("/v1/messages/count_tokens", chat("play jazz"))["input_tokens"])
        info = json.loads(self.server.get("/tokenizer_info"))
        for name in ("bos_token", "eos_token"):
            self.assertEqual(self.server.post(TOKENIZE, {"prompt": info[name], "add_special_tokens": False})["count"], 1)
        self.assertNotIn("chat_template", info)

    def test_what_is_refused(self):
        for path, body, words in ((TOKENIZE, {}, "content: expected a text, got none"), (TOKENIZE, {"content": [1]}, "content"),
                                  (TOKENIZE, {"content": "x", "add_special": 1}, "add_special: expected true or false"),
                                  (TOKENIZE, {"content": "x" * 200000}, "content: expected at most 255 tokens"),
                                  (DETOKENIZE, {}, "tokens: expected"), (DETOKENIZE, {"tokens": 3}, "tokens"),
                                  (DETOKENIZE, {"tokens": [-1]}, "token ids"), (DETOKENIZE, {"tokens": ["a"]}, "token ids"),
                                  (DETOKENIZE, {"tokens": [1 << 31]}, "ids below"), (DETOKENIZE, {"tokens": [1] * 70000}, "65536"),
                                  (TEMPLATE, {}, "messages"), (TEMPLATE, {"messages": []}, "messages")):
            message = self.server.post(path, body, want=400)["error"]["message"]
            self.assertIn(words, message)
            self.assertNotIn("\n", message)
            self.assertEqual(self.server.request("GET", path)[0], 405)
        self.assertEqual(self.server.post(DETOKENIZE, {"tokens": []}), {"content": "", "prompt": ""})
        self.assertEqual(self.server.post(TEMPLATE, chat("play jazz")), {"prompt": "play jazz\n"})


class TokenTemplates(WithTemplates):
    def test_a_conversation_by_its_models_template(self):
        server = self.serve("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
                            "{% if tools %}{{ tools[0].function.name }} {% endif %}{{ word }}")
        self.assertIn("{{ m.role }}", json.loads(server.get("/tokenizer_info"))["chat_template"])
        talk = [{"role": "system", "content": "be kind"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}]
        tools = [{"type": "function", "function": {"name": "light", "parameters": {"type": "object"}}}]
        for fields, end in (({}, ""), ({"tools": tools}, "light "), ({"chat_template_kwargs": {"word": "now"}}, "now")):
            self.assertEqual(server.post(TEMPLATE, {"messages": talk, **fields}),
                             {"prompt": "<system>be kind\n<user>hi\n" + end})

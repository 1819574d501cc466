"""Seeds of what programs ask of a model: conversations, forms of answers, samplers' options, requests of a server. make_small.py
writes them with the others.
"""
import json
import struct

from small_files import GOLDEN, compact, write


def make_chat_templates():
    given = json.loads((GOLDEN / "chat/snippets.json").read_text())
    extra = {"extra": given["variables"]}
    for i, snippet in enumerate(given["snippets"]):
        write("chat_template", f"snippet{i}", snippet["template"] + "\0" + compact(extra))
    conversation = json.loads((GOLDEN / "chat/conversations.json").read_text())["conversations"][1]
    write("chat_template", "macro", "{% macro m(a, b=1) %}{{ a ~ b }}{% endmacro %}{{ m(messages | length) }}\0" + compact(conversation))


def make_logits():
    """Options, tokens seen lately, logits: as the target takes them from its input."""
    cases = {"highest": (0.0, 0, 1.0, 0.0, 1.0), "plain": (1.0, 0, 1.0, 0.0, 1.0), "top_k": (0.8, 3, 1.0, 0.0, 1.0),
             "top_p": (0.7, 0, 0.9, 0.0, 1.0), "min_p": (1.5, 0, 1.0, 0.05, 1.0), "all": (0.9, 8, 0.95, 0.01, 1.1),
             "many": (1.0, 0, 0.5, 0.0, 1.2)}
    for name, (temperature, top_k, top_p, min_p, penalty) in cases.items():
        n = 270 if name == "many" else 12
        logits = [(7 * i % 12) / 2 - 3 for i in range(n)]
        options = struct.pack("<fHfffQ", temperature, top_k, top_p, min_p, penalty, 1)
        write("sampler", name, options + struct.pack(f"<B3HB{n}f", 3, 1, 5, 9, min(n, 255), *logits))


def make_forms():
    """Grammars, expressions and schemas, of each kind of part one; and changes to a form."""
    grammars = {"choice": 'root ::= "yes" | "no" # why\n', "rules": 'root ::= a (b | [0-9]{2,3})*\na ::= "x"+ "\\n"?\nb ::= [^a-c\\]]\n',
                "recursive": 'root ::= "(" root? ")" | "a" root\n', "counted": 'root ::= ("ab" | "c"){30,40} ws\nws ::= | " " ws\n',
                "characters": 'root ::= "\\x41\\u00e9" . [ä-ö]\n'}
    for name, text in grammars.items():
        write("gbnf", name, text)
    patterns = [r"[0-9]{3}-(a|b)+x?", r"^-?(0|[1-9]\d*)$", r"(?:x|yz){2,}", r"[^\w\s\]]{0,40}", r"(?<n>a*b*)*c\u00e9\x41", r"(a{3,9}){20,}|."]
    for i, text in enumerate(patterns):
        write("regex", str(i), text)
    schemas = sorted((compact(s) for s in json.loads((GOLDEN / "schemas.json").read_text())), key=len)
    by_hand = json.loads((GOLDEN / "schemas_by_hand.json").read_text())
    named = {str(i): text for i, text in enumerate(schemas[4:124:8])} | {f"hand{i}": compact(s) for i, s in enumerate(by_hand)}
    for i, (name, text) in enumerate(named.items()):
        write("json_schema", name, text)
        write("forced_call", name, bytes([i % 4]) + text.encode())  # each dialect by turns
    for i in range(8):
        write("constraint", str(i), struct.pack("<BIBIB", i, 64 + 13 * i, i, 2000 + 777 * i, 255 - i))


def make_requests():
    """Whole requests, and bodies alone."""
    def post(path, body, *more):
        return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *more, "", body])

    said = [{"role": "user", "content": "x"}]
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "$defs": {"d": {}}}}
    tools = [{"type": "function", "function": function}]
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "temperature": 0.5,
            "seed": 3, "n": 2, "stop": ["a"], "logprobs": True, "top_logprobs": 2, "stream": True,
            "stream_options": {"include_usage": True}}
    completion = {"prompt": ["a", [1, 2]], "max_tokens": 0, "echo": True, "best_of": 1, "suffix": None}
    bodies = {
        "embed": {"input": ["a", "b"], "encoding_format": "base64", "truncate": False},
        "named": {"messages": said, "tools": tools, "tool_choice": {"type": "function", "function": {"name": "f"}},
                  "chat_template_kwargs": {}},
        "ollama": {"prompt": "x", "system": "s", "raw": False, "format": "json",
                   "options": {"num_predict": -1, "top_k": -1, "repeat_last_n": -1, "seed": -1}, "images": []},
        "penalties": {"prompt": "x", "frequency_penalty": 0.5, "presence_penalty": -1, "logit_bias": {"7": -100, "8": 1.5},
                      "repetition_penalty": 1.1},
        "response": {"input": [{"role": "user", "content": "x"}, {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                               {"type": "function_call_output", "call_id": "1", "output": "y"},
                               {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]},
                               {"role": "assistant", "content": [{"type": "refusal", "refusal": "n"}]}], "instructions": "s",
                     "tools": [{"type": "function", "name": "f"}], "text": {"format": {"type": "json_object"}},
                     "reasoning": {"effort": "low"}},
        "schema": {"messages": said, "response_format": {"type": "json_schema", "json_schema": {"schema": {}}}, "grammar": ""},
        "tools": {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}], "tools": tools,
                  "tool_choice": "required"},
    }
    for name, body in bodies.items():
        write("http_request", name, json.dumps(body))
    write("http_request", "chat", post("/v1/chat/completions", json.dumps(chat)))
    write("http_request", "completion", post("/v1/completions", json.dumps(completion), "Connection: close"))
    write("http_request", "chunked", "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
          "d\r\n{\"prompt\":[1]}\r\n0\r\n\r\n")
    write("http_request", "get", "GET /health?limit=1&after=a%5F1 HTTP/1.0\r\nAuthorization: Bearer k\r\n\r\n")


def make_uploads():
    """A Content-Type and a form."""
    part = "--b\r\nContent-Disposition: form-data; name=\"{}\"{}\r\n\r\n{}\r\n"
    fields = {"model": "m", "temperature": "0.5", "seed": "-1", "stream": "true", "timestamp_granularities[]": "segment"}
    parts = [part.format(name, "", value) for name, value in fields.items()]
    write("upload", "form", "multipart/form-data; boundary=\"b\"\n" + "".join(parts) +
          part.format("file", "; filename=\"a.wav\"", "RIFF") + "--b--\r\n")


def make_calls():
    """What models write around calls: marks that the dictionary of a search has, too (host/chat/dialects.inc)."""
    write("answer_calls", "hermes", 'so <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call> and '
          '<tool_call>x</tool_call><tool_call>{"name":"g"}')
    write("answer_calls", "thought", "<think>why\n</think>\n\nbecause")
    write("answer_calls", "tagged", '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>\n</minimax:tool_call>')
    write("answer_calls", "named", '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a":1}'
          "<|tool_call_end|><|tool_calls_section_end|>")
    write("answer_calls", "channels", '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":1}<|call|>')


def make_json():
    for name, text in {"twins": '{"a": 1, "b": {"a": []}, "a": [true, null]}', "numbers": "[0, -0, 1e3, 18446744073709551616, -1, 0.1, 5e-324]",
                       "texts": '["", "\\u00e9\\ud83d\\ude00\\n", "\u00e9\U0001f600"]', "deep": '[[{"a": [[]]}]]'}.items():
        write("json", name, text)


def make_sounds():
    """WAV files of each coding, and what models say of the texts that they write."""
    for name, (coding, n_bits, n_channels) in {"pcm8": (1, 8, 1), "pcm16": (1, 16, 2), "pcm24": (1, 24, 1), "float": (3, 32, 1)}.items():
        row = n_bits // 8 * n_channels
        shape = struct.pack("<4sIHHIIHH", b"fmt ", 16, coding, n_channels, 8000, 8000 * row, row, n_bits)
        data = bytes(range(24)) if coding == 1 else struct.pack("<6f", *(i / 8 for i in range(6)))
        chunks = b"LIST" + struct.pack("<I", 3) + b"abc\0" + shape + b"data" + struct.pack("<I", len(data)) + data
        write("wav", name, b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks)
    write("speech_tokens", "whisper", compact(json.loads((GOLDEN / "speech/whisper_talking/generation_config.json").read_text())))
    for name in ("bart", "marian"):
        write("target_rules", name, compact(json.loads((GOLDEN / f"pairs/{name}/generation_config.json").read_text())))
    sides = {"query": {"marker": 3, "length": 8}, "document": {"marker": 4, "length": 20}}
    write("target_rules", "late", compact(sides | {"filler": 7, "filled_length": 8, "sees_filler": False, "skips_first": True,
                                                   "mean": True, "skipped": [5, 9]}))


def make_shards():
    """Heads of ranks' parts with their runs; the target adds what follows them."""
    for name, ranks, whole_bytes, runs in (("even", (1, 2, 1), 200_000, ((0, 1), (2, 2))), ("stages", (3, 4, 2), 70_000, ((1, 1),)),
                                           ("shares", (0, 2, 1), 1 << 33, ((0, 3), (9, 1)))):
        shares = bytes((3, 1)) if name == "shares" else b""
        head = struct.pack("<8sHBBBBHQII64s28sI", b"FovPt\r\n\x1a", 1, *ranks, 0, 0, whole_bytes, len(runs), 0, shares, b"", 0)
        write("shard", name, head + b"".join(struct.pack("<II", *run) for run in runs))


def make_services():
    make_chat_templates()
    make_logits()
    make_forms()
    make_requests()
    make_uploads()
    make_calls()
    make_json()
    make_sounds()
    make_shards()

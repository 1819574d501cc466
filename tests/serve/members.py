"""Members of the objects within requests for texts: none that is unknown is ignored in silence; run by server_test.py."""
import json
import re

from cases import DOCUMENT, WithServer
from fields import ROUTES

CALLED = {"id": "a", "type": "function", "function": {"name": "play", "arguments": "{}"}}
FORMAT = {"type": "json_schema", "schema": {"enum": ["a"]}}
PARTS = [{"type": "text", "text": "play"}]
# Every object that a request may have, but schemas, arguments and variables of templates, whose members are their writer's.
OBJECTS = {
    "C": {"messages": [{"role": "user", "content": PARTS}, {"role": "assistant", "tool_calls": [CALLED]},
                       {"role": "tool", "tool_call_id": "a", "content": "so"}],
          "tools": [{"type": "function", "function": {"name": "play"}}],
          "tool_choice": {"type": "function", "function": {"name": "play"}}, "reasoning": {"effort": "low"},
          "thinking": {"type": "disabled"}, "response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["a"]}}},
          "stream_options": {"include_usage": True}},
    "T": {"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["a"]}}}, "stream_options": {"include_usage": True},
          "structured_outputs": {}},
    "R": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "play"}]},
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
                    {"type": "function_call", "call_id": "a", "name": "play", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "so"}]}],
          "tools": [{"type": "function", "name": "play"}], "tool_choice": {"type": "function", "name": "play"},
          "text": {"format": FORMAT}, "reasoning": {"effort": "low"}},
    "M": {"system": PARTS, "messages": [{"role": "user", "content": PARTS},
                                        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "play", "input": {}}]},
                                        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": PARTS}]}],
          "tools": [{"name": "play", "input_schema": {}}], "tool_choice": {"type": "auto"}, "thinking": {"type": "disabled"},
          "output_config": {"format": FORMAT}, "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
    "a": {"messages": [{"role": "user", "content": "play"}, {"role": "assistant", "tool_calls": [CALLED]}],
          "tools": [{"type": "function", "function": {"name": "play"}}]},
    "g": {"options": {}},
}
NOT_OURS = {"schema", "parameters", "input_schema", "input", "arguments"}


def places(value, place=""):
    """Paths of the objects in a value: keys and indices, and how a message names each."""
    if isinstance(value, dict):
        yield (), place
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in entries:
        if key in NOT_OURS and isinstance(member, dict):
            continue
        name = f"{place}[{key}]" if isinstance(key, int) else f"{place}.{key}" if place else key
        for path, named in places(member, name):
            yield (key, *path), named


def put(value, path, name, what):
    """A copy that has a member in the object at a path."""
    copy = json.loads(json.dumps(value))
    at = copy
    for key in path:
        at = at[key]
    at[name] = what
    return copy


def ignored_members():
    """The document's list of members that change no answer: a place's letters and its names."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = re.search(r"; of members: (.*?)\.\n", file.read(), re.S)[1]
    found = {}
    for names, where in (part.split(" in ") for part in re.split(r";\s", text.replace("\n", " "))):
        for place, letters in re.findall(r"`([^`]+)` (\w+)", where):
            found.update({(letter, place): re.findall(r"`([^`]+)`", names) for letter in letters})
    return found


class Members(WithServer):
    def ask(self, letter, objects, want=200):
        body = {"C": {"max_tokens": 2}, "T": {"prompt": "play", "max_tokens": 2}, "R": {"max_output_tokens": 2}, "M": {"max_tokens": 2},
                "a": {"stream": False, "options": {"num_predict": 2}}, "g": {"prompt": "play", "stream": False}}[letter]
        return self.server.post(ROUTES[letter], {"model": "demo", **body, **objects}, want=want)

    def test_none_is_ignored_in_silence(self):
        known, n_places = ignored_members(), 0
        for letter, objects in OBJECTS.items():
            for path, place in places(objects):
                if not place:
                    continue
                with self.subTest(where=letter, place=place):
                    n_places += 1
                    self.ask(letter, put(objects, path, "zzzzzz", 1))
                    self.assertEqual(self.server.headers.get("X-Fovea-Ignored"), f"{place}.zzzzzz")
                    for name in known.pop((letter, re.sub(r"\[\d+\]", "[]", place)), []):
                        self.ask(letter, put(objects, path, name, 0 if name == "index" else "x"))
                        self.assertNotIn("X-Fovea-Ignored", self.server.headers, name)
        self.assertGreater(n_places, 50)
        self.assertEqual({place for _, place in known}, {"output_format"})  # which stands beside no output_config

    def test_a_name_that_looks_like_another(self):
        for letter, objects, words in (
                ("C", {"messages": [{"role": "user", "content": "x", "tool_call": []}]}, "messages[0].tool_call: expected the name"),
                ("C", {**OBJECTS["C"], "stream_options": {"include_usag": True}}, "looks like include_usage"),
                ("R", {"input": "x", "text": {"format": FORMAT, "fromat": 1}}, "text.fromat: expected the name")):
            self.assertIn(words, self.ask(letter, objects, 400)["error"]["message"])

    def test_members_of_other_requests(self):
        for path, body, place in (
                ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "x", "zzzzzz": 1}]}, "messages[0].zzzzzz"),
                ("/apply-template", {"messages": [{"role": "user", "content": "x", "zzzzzz": 1}]}, "messages[0].zzzzzz"),
                ("/v1/attention", {"messages": [{"role": "user", "content": "x", "zzzzzz": 1}]}, "messages[0].zzzzzz")):
            self.server.post(path, {"model": "demo", **body})
            self.assertEqual(self.server.headers["X-Fovea-Ignored"], place)

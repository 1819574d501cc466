"""Conversations, calls of tools, and answers of a form: those of the command line, and those that fit."""

import json
import re
import subprocess
import warnings
from types import SimpleNamespace

import pytest
from conftest import DEMO, ROOT, write_talker

import fovea
from fovea import _fovea

COMMAND = "turn on the lights in the kitchen"
SCHEMA_FILE = ROOT / "examples" / "home_commands.schema.json"
SCHEMA = json.loads(SCHEMA_FILE.read_text())
TOOLS = [
    {"type": "function", "function": {"name": "lamp", "parameters": {
        "type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}}},
    {"type": "function", "function": {"name": "clock"}},
]  # fmt: skip


def says(text):
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("compact", [False, True])
def test_an_answer_of_a_schema_is_the_command_lines(demo, command_line, compact):
    command = [command_line, "run", DEMO, "-p", COMMAND, "--json-schema", SCHEMA_FILE, *["--compact"] * compact]
    expected = subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip("\n")
    assert demo.generate(COMMAND, schema=SCHEMA, compact=compact) == expected
    assert demo.generate(COMMAND, schema=SCHEMA_FILE.read_text(), compact=compact) == expected
    assert json.loads(expected)["room"] == "kitchen"


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_drawn_fits(demo, seed):
    drawn = {"temperature": 3.0, "seed": seed}
    expression = "(ab|c){2,4}"
    text = demo.generate("x", regex=expression, **drawn)
    assert re.fullmatch(expression, text)
    assert demo.generate("x", regex=expression, speculate=6, **drawn) == text
    grammar = 'root ::= [0-9]{1,5} ";" ("yes" | "no")'
    assert re.fullmatch("[0-9]{1,5};(yes|no)", demo.generate("x", grammar=grammar, **drawn))
    number = {"type": "integer", "minimum": 3, "maximum": 900}
    schema = {"type": "object", "properties": {"n": number}, "required": ["n"]}
    assert 3 <= json.loads(demo.generate("x", schema=schema, **drawn))["n"] <= 900
    assert "".join(demo.session().stream("x", regex="a{3}|b", **drawn)) in ("aaa", "b")


def test_a_pydantic_model_is_a_schema(demo):
    class Lamp:
        """What pydantic's classes have."""

        @staticmethod
        def model_json_schema():
            return {"type": "object", "properties": {"on": {"const": True}}, "required": ["on"]}

    assert json.loads(demo.generate("x", schema=Lamp)) == {"on": True}


def test_forms_that_are_refused(demo, bert):
    for options, error, words in [
        ({"schema": {"$ref": "#/$defs/nowhere"}}, ValueError, "schema"),
        ({"schema": "{"}, ValueError, "schema"),
        ({"schema": 3}, TypeError, "schema: expected a dict"),
        ({"schema": {"const": float("nan")}}, ValueError, "JSON"),
        ({"schema": {"const": object()}}, TypeError, "JSON"),
        ({"grammar": "root ::= root"}, ValueError, "grammar"),
        ({"regex": "("}, ValueError, "regex"),
        ({"regex": 5}, TypeError, "regex: expected a str, got int"),
        ({"regex": "a" * (2 << 20)}, ValueError, "bytes"),
        ({"regex": "a", "grammar": "b"}, ValueError, "one of them, got 2"),
    ]:
        with pytest.raises(error, match=words) as refused:
            demo.generate("x", **options)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="logits"):
        bert.generate("x", regex="a")
    assert demo.generate("x", regex="ok") == "ok"  # nothing stays behind


def test_a_form_belongs_to_its_model(demo):
    other = fovea.Model(DEMO)
    form = other._form("regex", "a", False)
    with pytest.raises(ValueError, match="of another"):
        demo.session()._native.start([1, 2], {}, [], form)


@pytest.mark.parametrize("text", ["hello", "what is the time", "x" * 300])
def test_a_conversation_is_the_command_lines(talker, command_line, text):
    command = [command_line, "chat", talker._path, "-p", text, "--system", "Be brief.", "-n", "24"]
    expected = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    messages = [{"role": "system", "content": "Be brief."}, *says(text)]
    answer = talker.chat(messages, max_new_tokens=24)
    assert answer.content.strip() == expected.strip()
    stream = talker.stream_chat(messages, max_new_tokens=24)
    pieces = list(stream)
    assert "".join(pieces) == stream.answer.content == answer.content == str(answer)
    assert stream.answer == answer
    assert answer.n_prompt_tokens == len(talker._chat(None).prompt(json.dumps(messages), "null", "{}"))
    assert 0 < answer.n_tokens <= 24
    assert answer.finish_reason in ("end", "length")


def test_a_turn_ends_where_templates_end_turns(talker):
    end = talker.tokenize("<|im_end|>", add_special=False, parse_special=True)
    assert len(end) == 1
    ids = talker._chat(None).prompt(json.dumps(says("hello")), "null", "{}")
    seeds = range(4000)
    for seed in seeds:  # a seed whose second or later token is the end
        made = "".join(talker.stream(ids, max_new_tokens=12, temperature=9.0, seed=seed, special=True))
        if made.find("<|im_end|>") > 0:
            break
    else:
        pytest.fail("no seed gives the end of a turn")
    answer = talker.chat(says("hello"), max_new_tokens=12, temperature=9.0, seed=seed)
    assert answer.finish_reason == "end"
    assert made.startswith(answer.content)
    assert len(answer.content) <= made.find("<|im_end|>")


def test_contents_are_texts_or_parts_of_text(talker):
    parts = [{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}]
    assert talker.chat(parts, max_new_tokens=4).content == talker.chat(says("hello"), max_new_tokens=4).content
    with pytest.raises(ValueError, match=r"messages\[0\]: content: expected parts of type text, got 'image_url'"):
        talker.chat([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])
    with pytest.raises(TypeError, match=r"messages\[0\]: content: expected a str or a list of parts, got int"):
        talker.chat([{"role": "user", "content": 5}])


def test_templates_get_tools_and_arguments(talker):
    chat = talker._chat(None)

    def text(**options):
        seen = []
        spy = SimpleNamespace(
            begin=lambda *given: (seen.append(chat.begin(*given)[0]) or seen[-1], None),
            prompt=chat.prompt,
            stops=[],
            note="",
            dialect=chat.dialect,
        )
        talker._chat = lambda _: spy
        try:
            with pytest.raises(TypeError):  # a spy is no template of the extension's
                talker.chat(says("hello"), **options)
        finally:
            talker._forget_forms()
        return talker.detokenize(seen[0], show_special=True)

    plain = text()
    assert plain == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    assert '"name": "lamp"' in text(tools=TOOLS)
    assert text(tools=TOOLS, tool_choice="none") == plain
    assert text(tools=[TOOLS[1]["function"]]) == text(tools=[TOOLS[1]])
    assert text(template_arguments={"mood": "glad"}) == plain + "glad"


def test_a_template_of_ones_own(talker):
    own = talker.chat(says("hello"), chat_template="{{ messages[0].content }}", max_new_tokens=5)
    assert own.n_prompt_tokens == len(talker.tokenize("hello", add_special=False))
    with pytest.raises(ValueError, match="chat template"):
        talker.chat(says("x"), chat_template="{% if %}")
    with pytest.raises(ValueError, match="too strict"):
        talker.chat(says("x"), chat_template="{{ raise_exception('too strict') }}")


@pytest.mark.parametrize("choice", ["required", "lamp", "clock"])
def test_a_call_that_is_asked_for(talker, choice):
    for seed in range(3):
        answer = talker.chat(says("light"), tools=TOOLS, tool_choice=choice, temperature=2.0, seed=seed)
        (call,) = answer.tool_calls
        assert answer.content == ""
        assert call.name in (("lamp", "clock") if choice == "required" else (choice,))
        assert call.name != "lamp" or isinstance(call.arguments["on"], bool)
        function = answer.message["tool_calls"][0]["function"]
        assert (function["name"], function["arguments"]) == (call.name, call.arguments)
        again = [*says("light"), answer.message, {"role": "tool", "content": "done"}]
        assert talker.chat(again, tools=TOOLS, max_new_tokens=3).n_tokens


CALL = '<tool_call>{"name": "lamp", "arguments": {"on": true}}</tool_call>'


@pytest.mark.parametrize(
    ("text", "content", "reasoning", "names"),
    [
        ("nothing", "nothing", "", []),
        (f"so: {CALL} and{CALL}", "so:  and", "", ["lamp", "lamp"]),
        (CALL[:-12], "", "", ["lamp"]),  # the model ended without the mark
        (f"<think>so</think>\n{CALL}\n{CALL}", "", "so", ["lamp", "lamp"]),
        ("a <tool_call>3</tool_call> b", "a <tool_call>3</tool_call> b", "", []),
        ('<tool_call>[{"name": "f", "arguments": "{}"}, {"name": "g"}]</tool_call>', "", "", ["f", "g"]),
    ],
)
def test_calls_and_reasoning_are_parted_from_text_at_any_split(text, content, reasoning, names):
    for size in range(1, len(text) + 1):
        reader = _fovea.AnswerReader.plain(json.dumps(TOOLS), "")
        parts = [reader.add(text[at : at + size]) for at in range(0, len(text), size)] + [reader.finish()]
        assert ["".join(some) for some in zip(*parts)] == [content, reasoning]
        assert [name for name, _ in reader.calls] == names
    assert _fovea.AnswerReader.plain("null", "").calls == []


def test_a_template_shows_how_calls_are_written(talker):
    """A template of Mistral's and one of channels: a call that is asked for is begun in the prompt, and read."""
    mistral = "{% for m in messages %}[INST]{{ m.content }}[/INST]{% endfor %}{# [TOOL_CALLS]f[ARGS] #}"
    channels = "{% for m in messages %}<|start|>user<|message|>{{ m.content }}<|end|>{% endfor %}<|start|>assistant"
    channels += "{# <|channel|> #}"
    reads = "{{ tools[0].function.name }}"  # else a text would list them
    for template in (mistral + reads, channels, "{{ messages[0].content }}{# <|tool_call_start|> #}" + reads):
        for choice in ("required", "lamp", "clock"):
            options = {"tools": TOOLS, "tool_choice": choice, "chat_template": template, "temperature": 2.0}
            answer = talker.chat(says("light"), **options)
            assert (answer.content, answer.reasoning, len(answer.tool_calls)) == ("", "", 1)
            assert answer.tool_calls[0].name in (("lamp", "clock") if choice == "required" else (choice,))


def test_conversations_that_are_refused(demo, talker, bert):
    for messages, options, error in [
        ([], {}, ValueError),
        (["hello"], {}, TypeError),
        ([{"content": "x"}], {}, ValueError),
        ([{"role": "user", "content": "\ud800"}], {}, ValueError),
        ([{"role": "user", "content": float("inf")}], {}, TypeError),
        ([{"role": "user", "content": {1, 2}}], {}, TypeError),
        (says("x"), {"tools": [3]}, ValueError),
        (says("x"), {"tools": 5}, TypeError),
        (says("x"), {"stop": 5}, TypeError),
        (says("x"), {"tools": TOOLS, "tool_choice": "door"}, ValueError),
        (says("x"), {"tool_choice": "required"}, ValueError),
        (says("x"), {"tools": TOOLS, "tool_choice": "lamp", "regex": "a"}, ValueError),
        (says("x"), {"max_new_tokens": -1}, ValueError),
        (says("word " * 2000), {}, fovea.FullError),
    ]:
        with pytest.raises(error) as refused:
            talker.chat(messages, **options)
        assert str(refused.value)
    with pytest.raises(ValueError, match="role user"):
        demo.chat([{"role": "system", "content": "x"}])
    with pytest.raises(ValueError, match="logits"):
        bert.chat(says("x"))
    with fovea.Model(DEMO) as closed:
        pass
    with pytest.raises(ValueError, match="closed"):
        closed.chat(says("x"))


def test_a_model_without_a_template_answers_the_last_that_was_said(demo):
    messages = [*says("lock the front door"), {"role": "assistant", "content": "{}"}, *says(COMMAND)]
    assert demo.chat(messages).content == demo.generate(COMMAND)
    assert demo.chat(messages, schema=SCHEMA).content == demo.generate(COMMAND, schema=SCHEMA)


def test_an_answer_that_was_broken_off(demo):
    stream = demo.stream_chat(says(COMMAND))
    assert next(iter(stream))
    assert stream.answer.content == demo.generate(COMMAND)
    broken = demo.stream_chat(says(COMMAND))
    next(iter(broken))
    broken._pieces.close()
    with pytest.raises(ValueError, match="has ended"):
        _ = broken.answer


def test_options_are_checked_before_the_first_piece(talker, bert):
    words = r"^options: expected some of max_new_tokens, temperature, .*, got max_tokens$"
    for call in (talker.stream, lambda text, **options: talker.stream_chat(says(text), **options)):
        with pytest.raises(TypeError, match=words):
            call("a", max_tokens=3)
        with pytest.raises(TypeError, match=r"^max_new_tokens: expected a whole number, got str$"):
            call("a", max_new_tokens="3")
    with pytest.raises(ValueError, match="logits"):
        bert.stream("a")


def test_a_stream_is_an_iterator(demo):
    stream = demo.stream_chat(says(COMMAND))
    assert iter(stream) is stream
    first = next(stream)
    assert first + "".join(stream) == demo.generate(COMMAND) == stream.answer.content
    assert next(stream, None) is None


def told(*calls):
    """The warnings of calls."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for call in calls:
            call()
    assert all(warning.category is UserWarning for warning in seen)
    return [str(warning.message) for warning in seen]


def test_what_a_template_does_not_say_is_warned_of_once(tmp_path):
    model = fovea.Model(write_talker(tmp_path), n_threads=1)
    few, deaf = {"max_new_tokens": 2}, {"chat_template": "{{ messages[0].content }}", "max_new_tokens": 2}
    not_read = "tools: the model answers each message by itself, and so it is told of none"
    assert told(lambda: model.chat(says("light"), **few), lambda: model.chat(says("light"), tools=TOOLS, **few)) == []
    assert told(*[lambda: model.chat(says("light"), tools=TOOLS, **deaf)] * 2) == []
    (tmp_path / "tokenizer_config.json").unlink()
    model = fovea.Model(tmp_path, n_threads=1)
    words = f"{tmp_path}: no chat template: ChatML, for which it has tokens"
    assert told(*[lambda: model.chat(says("light"), **few)] * 2) == [words]
    demo = fovea.Model(DEMO, n_threads=1)
    words = f"{DEMO}: no chat template: it answers each message by itself, without a system text"
    assert told(*[lambda: demo.chat(says(COMMAND), tools=TOOLS)] * 2) == [words, not_read]


def test_a_template_that_knows_no_tools_gets_them_as_a_text(tmp_path):
    model = fovea.Model(write_talker(tmp_path), n_threads=1)
    plain = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"

    def prompt(messages, tools):
        chat = model._chat(plain)
        return model.detokenize(chat.prompt(json.dumps(messages), json.dumps(tools), "{}"))

    told = prompt(says("light"), TOOLS)
    assert told.startswith("<system>You may call functions.")
    assert '{"name": "lamp", ' in told
    assert told.endswith("<user>light")
    call = {"function": {"name": "lamp", "arguments": {"on": True}}}
    back = [
        *says("light"),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "lit"},
    ]
    assert prompt(back, None) == (
        '<user>light<assistant><tool_call>\n{"name": "lamp", "arguments": {"on": true}}\n</tool_call>'
        "<user><tool_response>\nlit\n</tool_response>"
    )
    answer = model.chat(says("time"), tools=TOOLS[1:], tool_choice="clock", chat_template=plain, max_new_tokens=20)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("clock", {})]


def test_what_is_not_named_is_sampled_as_the_file_says(tmp_path):
    folder = write_talker(tmp_path)
    plain = fovea.Model(folder, n_threads=1)
    said = {"temperature": 1.5, "top_k": 40, "repeat_penalty": 1.3, "repeat_last_n": -1}
    own = {"do_sample": True, "temperature": 1.5, "top_k": 40, "repetition_penalty": 1.3}
    (folder / "generation_config.json").write_text(json.dumps(own))
    model = fovea.Model(folder, n_threads=1)
    assert model.config["sampling"] == pytest.approx(said)
    assert plain.config["sampling"] == {}

    def answer(of, **options):
        return of.chat(says("hello"), max_new_tokens=12, **options).content

    assert answer(model, seed=5) == answer(plain, seed=5, **said)
    assert answer(model, seed=5, temperature=0.0) == answer(plain, **{**said, "temperature": 0.0})
    assert model.generate("hello", max_new_tokens=12) == plain.generate("hello", max_new_tokens=12)
    for more in ({"top_n_sigma": 0.1}, {"typical_p": 0.01}, {"mirostat": 2, "mirostat_tau": 0.5}):
        assert answer(plain, seed=5, **said) != answer(plain, seed=5, **said, **more)
    assert plain.chat(says("hello"), max_new_tokens=40, min_tokens=40).n_tokens == 40
    with pytest.raises(ValueError, match="mirostat: 0 or 2"):
        answer(plain, mirostat=1)

#!/usr/bin/env python3
"""Writes chat/conversations.json: 200 conversations, and what transformers makes of each with every template in chat/templates.

    pip install transformers jinja2
    tests/golden/make_chat.py

A rendering is kept as the CRC-32C of its text, some as the text itself. Where the template refuses, the refusal is kept."""

import datetime
import json
import pathlib
import random

import jinja2
import transformers.utils.chat_template_utils as chat_template_utils
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

FOLDER = pathlib.Path(__file__).parent / "chat"
NOW = 1720180800  # the 5th of July 2024, noon in Greenwich: the same day nearly everywhere
N_CONVERSATIONS = 200

WORDS = ["the", "kettle", "of", "Zürich", "naïve", "日本語", "🙂", "x < y && z", "\"quoted\"", "it's", "\\n", "a\tb", "two\nlines",
         "</think>", "{{ no }}", "{% raw %}", "/no_think", "/think", "<|im_end|>", "100%", "é", "\u00a0", "-", "end.", "Ends\n",
         "ends\r\n", " lead", "C:\\path", "0", "[INST]", "'''", "\u2028", "tool", "\x07", "\x7f"]


# Small templates, each with the same variables; a name that stands in none of them is undefined.
VARIABLES = {"n": 7, "x": 2.5, "s": " Ab\tcé ", "l": [3, 1, 2], "d": {"b": 1, "a": [1, {"c": None}], "items": "own"}, "t": True,
             "o": [{"k": "B", "v": 2, "w": {"z": 1}}, {"k": "a", "v": 1, "w": {"z": 2}}, {"k": "b"}], "e": "", "none_": None,
             "text": "one two\n  three\n\nfour\n"}
SNIPPETS = r"""
{{ n + 1 }} {{ n - 10 }} {{ n * 2 }} {{ n / 2 }} {{ n // 2 }} {{ -n // 2 }} {{ -n % 3 }} {{ n ** 2 }} {{ 2 ** -1 }} {{ x * 2 }} {{ -x }} {{ +n }}
{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 'a' ~ 1 ~ none ~ true ~ 1.0 }} {{ 2 * 'ab' }} {{ [1] * 2 }} {{ [1] + [2] }} {{ 7 // 2.0 }} {{ -7 % 2.5 }}
{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ none == none }} {{ l == [3, 1, 2] }} {{ (1, 2) == [1, 2] }}
{{ 1 in l }} {{ 5 not in l }} {{ 'A' in s }} {{ 'b' in d }} {{ 'x' in nothing }} {{ not 1 in l }} {{ not e and n }} {{ e or 'fallback' }} {{ n and s }} {{ none or 0 }}
{{ 'yes' if n > 5 else 'no' }} {{ 'yes' if n > 9 }} {{ 1 if false else 2 if false else 3 }} {{ nothing }} {{ nothing is defined }} {{ d.nothing is defined }} {{ nothing == other }}
{{ l[0] }} {{ l[-1] }} {{ l[9] }} {{ l[1:] }} {{ l[::-1] }} {{ l[-2:] }} {{ l[:1] }} {{ l[5:] }} {{ l[::2] }} {{ s[1] }} {{ s[1:3] }} {{ s[::-1] }} {{ s[-3:-1] }} {{ s[4] }} {{ l[-9:2] }} {{ l[2:-9:-1] }}
{{ d.b }} {{ d['b'] }} {{ d['items'] }} {{ d.items() | list }} {{ d.a[1].c }} {{ d.get('z') }} {{ d.get('z', 5) }} {{ d.keys() | list }} {{ d.values() | list }} {{ d['a'][0] }} {{ o[0].w.z }} {{ o.0.k }}
{{ d }} {{ l }} {{ (1,) }} {{ (1, 'b') }} {{ () }} {{ [] }} {{ {} }} {{ {'a': 1, 2: [none, true, 1.5]} }} {{ [s, "it's", 'q"', "'\""] }} {{ 1, 2 }}
{{ 1e16 }} {{ 1e15 }} {{ 1.5e-5 }} {{ 0.0001 }} {{ 123456789.123 }} {{ 1_000 }} {{ 1.0 }} {{ 100000000000000000000.0 }} {{ 3.0 * 1.1 }}
{{ s | trim }}|{{ 'aBc' | upper }}|{{ 'aBc' | lower }}|{{ 'hello wORLD-foo (bar' | title }}|{{ 'hELLO' | capitalize }}|{{ s | length }}|{{ s | list }}|{{ '--a-' | trim('-') }}|{{ none | trim }}
{{ l | sort }} {{ l | sort(reverse=true) }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }} {{ o | sort(attribute='k') | map(attribute='k') | join(',') }}
{{ l | join }} {{ l | join('-') }} {{ o | join(', ', attribute='k') }} {{ 'abc' | join('.') }} {{ l | first }} {{ l | last }} {{ [] | first }} {{ l | reverse | list }} {{ 'abc' | reverse }} {{ l | sum }} {{ o[:2] | sum(attribute='v') }}
{{ l | map('string') | list }} {{ o[:2] | map(attribute='w.z') | list }} {{ o | map(attribute='v', default=0) | list }} {{ ['a', 'b'] | map('upper') | join }} {{ ['a-b'] | map('replace', '-', '+') | first }}
{{ l | select('gt', 1) | list }} {{ l | reject('odd') | list }} {{ [0, 1, ''] | select | list }} {{ o | selectattr('v') | list | length }} {{ o | selectattr('v', 'defined') | map(attribute='k') | list }} {{ o | rejectattr('k', 'equalto', 'b') | list | length }} {{ o[:2] | selectattr('w.z', '==', 2) | map(attribute='k') | first }}
{{ none_ | selectattr('v', 'equalto', 1) | list }} {{ none_ | map(attribute='v') | list }} {{ false | reject | list }} {{ 0 | select('odd') | list }} {{ none_ | rejectattr('v') | join }} {{ -0.0 }} {{ -x }} {{ -(1 - 1.0) }}
{{ nothing | default('d') }} {{ e | default('d') }} {{ e | default('d', true) }} {{ none | default('d') }} {{ none | d('d', boolean=true) }} {{ nothing | length }} {{ nothing | upper }} {{ nothing | list }} {{ nothing | join }} {{ nothing | default }}|
{{ d | tojson }} {{ s | tojson }} {{ l | tojson(indent=2) }} {{ {} | tojson(indent=2) }} {{ '<&> é' | tojson }} {{ 'é🙂' | tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ [1, 2] | tojson(separators=(',', ':')) }} {{ 1e100 | tojson }} {{ {1: none, true: 2} | tojson }}
{{ d | dictsort | map('first') | list }} {{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) }} {{ [1, 2, 1, 'a', 'A'] | unique | list }} {{ l | min }} {{ l | max }} {{ ['b', 'A'] | min }} {{ d | items | list }} {{ nothing | items | list }}
{{ '42' | int }} {{ ' 42 ' | int }} {{ '4.7' | int }} {{ 'x' | int }} {{ 'x' | int(3) }} {{ 4.7 | int }} {{ '0x1f' | int(base=16) }} {{ none | int }} {{ '1.5' | float }} {{ 'x' | float }} {{ 3 | float }} {{ -3 | abs }} {{ 2.5 | round }} {{ 3.456 | round(2) }} {{ 2.1 | round(method='ceil') }} {{ 7 | round }} {{ true | int }}
{{ '<a href="x">' | e }} {{ 'x' | safe }} {{ 12 | string + '3' }} {{ text | indent }}| {{ text | indent(2, true) }}| {{ text | indent(2, blank=true) }}| {{ text | wordcount }} {{ 'ab' | center(7) }}| {{ 'abc' | center(6) }}|
{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ text.split() }}|{{ text.split('\n') }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ text.splitlines() }}|{{ ' a  b c '.split(none, 1) }}|{{ 'abc'.partition('b') }}|{{ 'abcb'.rpartition('b') }}|{{ 'abc'.partition('x') }}
{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'é'.replace('', '.') }} {{ 'abc'.startswith('ab') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('bc') }} {{ 'ééb'.find('b') }} {{ 'ab'.find('z') }} {{ 'abab'.rfind('b') }} {{ 'abab'.count('ab') }} {{ '-'.join(['a', 'b']) }} {{ 'unhappy'.removeprefix('un') }} {{ 'a.b'.removesuffix('.b') }} {{ 'they are'.title() }} {{ 'x1'.isalnum() }} {{ '12'.isdigit() }} {{ 'ab'.isupper() }} {{ ' '.isspace() }} {{ l.index(1) }} {{ l.count(1) }}
{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }} {{ n is number }} {{ n is integer }} {{ x is float }} {{ t is boolean }} {{ t is integer }} {{ s is string }} {{ d is mapping }} {{ l is iterable }} {{ s is iterable }} {{ n is iterable }} {{ d is sequence }} {{ none is none }} {{ n is not none }} {{ t is true }} {{ n is eq 7 }} {{ n is in [7] }} {{ n is not in [7] }} {{ 'a' is lower }} {{ 'A1' is upper }} {{ t is sameas true }} {{ nothing is none }} {{ range is callable }} {{ 'upper' is filter }} {{ l is not defined or n is gt 3 }}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.changed(i > 1) }};{% endfor %}
{% for i in l if i > 1 %}{{ loop.length }}{{ i }}{% else %}none{% endfor %}{% for i in [] %}x{% else %}none{% endfor %}{% for i in nothing %}x{% else %}undefined{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'aé' %}{{ c }}.{% endfor %}{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% for (a, b) in [[1, 2]] %}{{ a + b }}{% endfor %}
{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %} {{ range(3, 9, 3) | list }} {{ range(3, 0, -1) | list }}
{% for i in [[1, [2]], [3]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ loop.depth }}:{{ i }}{% endif %}{% endfor %}
{% set a = 1 %}{% for i in l %}{% set a = a + i %}{{ a }},{% endfor %}{{ a }}{% set ns = namespace(a=1) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }} {{ ns.nothing is defined }} {% if true %}{% set a = 9 %}{% endif %}{{ a }}
{% set a, b = 1, 'x' %}{{ a }}{{ b }}{% set block %}  in {{ a }} {% endset %}[{{ block }}]{% set up | upper | trim %} low {% endset %}[{{ up }}]{% with c = a, a = 5 %}{{ a }}{{ c }}{% endwith %}{{ a }}{{ c is defined }}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m('x', 'y') | upper }} {{ m() }} {{ m(b=1, a=0) }}
{% macro outer(title) %}<{{ title }}>{{ caller('in', 1) }}</{{ title }}>{% endmacro %}{% call(a, b) outer('t') %}{{ a }}{{ b }}{{ n }}{% endcall %}
{% macro count_down(i) %}{{ i }}{% if i %} {{ count_down(i - 1) }}{% endif %}{% endmacro %}{{ count_down(5) }}{% set late = 'seen' %}{% macro uses() %}{{ late }}{{ later }}{% endmacro %}{% set later = '!' %}{{ uses() }}
{% filter upper | replace('B', '-') %}ab{{ 'b' }}{% endfilter %}{% generation %}gen{% set inner = 1 %}{% endgeneration %}{{ inner is defined }}
a {#- c -#} b {# x #} c{#+ y +#}   {% raw %}{{ raw }}{% endraw %} {%- raw -%}  {% x %}  {%- endraw -%}  end
{{ "a	bAé\n'"\q" }}{{ 'a' 'b' "c" }}{{ 'multi
line' }}
{{ nothing.x }}
{{ nothing + 1 }}
{{ 'a' + 1 }}
{{ n / 0 }}
{{ l.nothing() }}
{{ nothing() }}
{{ none.x }}|{{ none.x.y }}
{{ n | nofilter }}
{{ n is notest }}
{{ 1 in 'abc' }}
{{ 1 < 'a' }}
{{ l.append(1) }}
{{ m(1) }}{% macro m() %}x{% endmacro %}
{% for i in n %}{% endfor %}
{% for a, b in [[1]] %}{% endfor %}
{% set d.x = 1 %}
{{ raise_exception('no ' ~ n) }}
{{ {'a': 1}.a }} {{ {'a': 1}['a'] }} {{ [1, 2][0] }} {{ 'abc'[1] }} {{ ('a' ~ 'b') | upper }} {{ (n if t else 0) + 1 }} {{ -n | abs }} {{ not t }} {{ n.x is defined }} {{ {'a': {'b': 2}}.a.b }}
{{ dict(a=1, b='x') }} {{ dict({'a': 1}, b=2) }} {{ namespace(a=1).a }} {{ [1, 2, 3, 4, 5] | batch(2) | list }} {{ [1, 2, 3] | batch(2, 0) | list }} {{ d | attr('b') }} {{ '%s' | replace('%s', n) }} {{ l | string }} {{ [[1, 'a'], {'k': [2]}] | string | length }}
""".strip("\n").split("\n")
# What is about lines: white space around tags.
LINES = [
    "a\n  {% if t %}\n    b\n  {% endif %}\n  c\n", "{% if t %}  \n b{% endif %}\n\n", "a\n{%- if t -%}\n  b\n{%- endif +%}\n c\n\n",
    "a  {%+ if t %}\nb{% endif %}  \n", "x\n   {# note #}\n  y {# note #}\nz", "  {{ n }}\n  {{- n -}}  \n{{ n }}\n", "\r\na\rb\r\n{% if t %}\r\nc{% endif %}",
    "{% for i in l %}\n  {{ i }}\n{% endfor %}\n", "{% for i in l -%}\n  {{ i }}\n{%- endfor %}\n-", "\t{% set a = 1 %}\n\t{{ a }}\t{% set b = 2 %}\nq",
    "a\u00a0{%- if t %}b{% endif %}\u00a0\n", "  {%- raw %}\n x\n  {% endraw %}\n y", "{{ n -}}\n  {% if t %}b{% endif %}", "{% if t -%}\n   {% endif %}x\n",
]


def text(rng, most=9):
    words = [rng.choice(WORDS) for _ in range(rng.randrange(most))]
    return rng.choice(["", "", " ", "\n"]) + " ".join(words) + rng.choice(["", "", "", " ", "\n", "\n\n"])


def value(rng, depth=0):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.randrange(-1000, 10**rng.randrange(1, 16))
    if kind == 1:
        return rng.choice([0.5, 1e21, -2.25e-7, 3.0, 1e16, 123456.789, 1e-4, 0.1])
    if kind == 2:
        return rng.choice([True, False, None])
    if kind < 6:
        return text(rng, 4)
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(["a", "city", "unit", "été", "n"]) + str(i): value(rng, depth + 1) for i in range(rng.randrange(3))}


def tool(rng, i):
    properties = {}
    for name in rng.sample(["place", "unit", "days", "wind", "list", "deep"], rng.randrange(1, 5)):
        kind = rng.choice(["string", "integer", "number", "boolean", "array", "object"])
        properties[name] = {"type": kind, "description": text(rng, 4).strip()}
        if kind == "array":
            properties[name]["items"] = {"type": rng.choice(["string", "integer"])}
        if kind == "string" and rng.random() < 0.3:
            properties[name]["enum"] = ["a", "b'c", 'd"e']
    function = {"name": rng.choice(["weather", "Search", "add"]) + str(i), "description": text(rng, 5),
                "parameters": {"type": "object", "properties": properties,
                               "required": rng.sample(sorted(properties), rng.randrange(len(properties) + 1))}}
    if rng.random() < 0.2:
        function["return"] = {"type": "string"}
    return {"type": "function", "function": function}


def call(rng, tools):
    made = {"type": "function", "function": {"name": rng.choice(tools)["function"]["name"] if tools else "f",
                                             "arguments": {"a": value(rng), "b": value(rng)}}}
    if rng.random() < 0.8:
        made["id"] = "".join(rng.choice("abcdef0123") for _ in range(9))
    return made


def conversation(rng):
    tools = [tool(rng, i) for i in range(rng.randrange(1, 4))] if rng.random() < 0.4 else None
    messages = []
    if rng.random() < 0.4:
        messages.append({"role": "system", "content": text(rng)})
    for _ in range(rng.randrange(1, 5)):
        messages.append({"role": "user", "content": text(rng)})
        if rng.random() < 0.06:
            messages[-1]["content"] = [{"type": "text", "text": text(rng, 4)}, {"type": "image"}]
        if tools and rng.random() < 0.5:
            calls = [call(rng, tools) for _ in range(1 if rng.random() < 0.7 else 2)]
            asks = {"role": "assistant", "tool_calls": calls}
            if rng.random() < 0.6:
                asks["content"] = text(rng, 4) if rng.random() < 0.5 else None
            messages.append(asks)
            for made in calls:
                content = text(rng, 5) if rng.random() < 0.8 else value(rng)
                messages.append({"role": "tool", "content": content, "tool_call_id": made.get("id", "none")})
        if rng.random() < 0.8:
            messages.append({"role": "assistant", "content": text(rng)})
    if rng.random() < 0.05:
        messages.append({"role": rng.choice(["user", "narrator"]), "content": text(rng)})
    made = {"messages": messages, "add_generation_prompt": rng.random() < 0.7, "extra": {}}
    if tools:
        made["tools"] = tools
    if rng.random() < 0.15:
        made["documents"] = [{"title": text(rng, 3), "text": text(rng)} for _ in range(rng.randrange(1, 3))]
    if rng.random() < 0.2:
        made["extra"]["enable_thinking"] = rng.random() < 0.5
    if rng.random() < 0.1:
        made["extra"]["controls"] = {"length": rng.choice(["long", "short"])}
    if rng.random() < 0.1:
        made["extra"]["date_string"] = "1 January 2025"
    return made


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def render(tokenizer, template, case):
    try:
        made = tokenizer.apply_chat_template(
            case["messages"], tools=case.get("tools"), documents=case.get("documents"), chat_template=template,
            add_generation_prompt=case["add_generation_prompt"], tokenize=False, **case["extra"])
    except jinja2.exceptions.TemplateError as error:  # raise_exception's own, or one of an undefined value
        return None, str(error) if type(error) is jinja2.exceptions.TemplateError else ""
    except (TypeError, AttributeError, IndexError, KeyError, ValueError):
        return None, ""
    return made, None


def snippet(template):
    """What a small template gives; None where it fails."""
    compiled = None
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
        return compiled.render(**VARIABLES)
    except (jinja2.exceptions.TemplateError, TypeError, AttributeError, ZeroDivisionError, ValueError):
        return None


def rejoin(lines):
    """The one text of two lines is one template."""
    whole = []
    for line in lines:
        if line.startswith("line'"):
            whole[-1] += "\n" + line
        else:
            whole.append(line)
    return whole


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(NOW, tz)


def main():
    rng = random.Random(17)
    chat_template_utils.datetime = FixedTime
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"a": 0}, "a")), bos_token="<s>", eos_token="</s>")
    cases = [conversation(rng) for _ in range(N_CONVERSATIONS)]
    expected = {}
    for path in sorted((FOLDER / "templates").glob("*.jinja")):
        template = path.read_text()
        rows = []
        for i, case in enumerate(cases):
            made, refusal = render(tokenizer, template, case)
            if made is None:
                rows.append({"refusal": refusal})
            elif i < 8:
                rows.append({"text": made})
            else:
                rows.append(format(crc32c(made.encode()), "08x"))
        expected[path.stem] = rows
        print(path.stem, sum(isinstance(row, dict) and "refusal" in row for row in rows), "refused")
    snippets = [{"template": template, "text": snippet(template)} for template in rejoin(SNIPPETS) + LINES]
    with open(FOLDER / "snippets.json", "w") as out:
        out.write('{"variables": ' + json.dumps(VARIABLES, ensure_ascii=False) + ',\n"snippets": [\n')
        out.write(",\n".join(json.dumps(one, ensure_ascii=False) for one in snippets) + "\n]}\n")
    print("snippets", len(snippets), sum(one["text"] is None for one in snippets), "refused")
    lines = [json.dumps(case, ensure_ascii=False) for case in cases]
    with open(FOLDER / "conversations.json", "w") as out:
        out.write('{"now": %d, "bos_token": "<s>", "eos_token": "</s>",\n"conversations": [\n' % NOW)
        out.write(",\n".join(lines) + '\n],\n"expected": {\n')
        out.write(",\n".join(f'"{name}": ' + json.dumps(rows, ensure_ascii=False) for name, rows in expected.items()) + "\n}}\n")


if __name__ == "__main__":
    main()

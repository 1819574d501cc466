#!/usr/bin/env python3
"""Writes schemas.json: 200 JSON schemas of many shapes, for tests and benchmarks of answers of a form.

    python3 make_schemas.py
"""
import json
import pathlib
import random

N = 200
NOUNS = "name title city street country email phone status kind color size price weight height width count total note tag " \
        "label owner author year month day hour score rank level room device action command target source amount currency " \
        "language version path host port user group role address comment summary reason result answer question".split()
PATTERNS = [r"^[A-Z]{3}$", r"^[a-z][a-z0-9_]*$", r"^\d{4}-\d{2}$", r"^#[0-9a-f]{6}$", r"^(\+\d{1,3} )?\d{3}-\d{4}$", r"^[A-Z]{2}\d{2,6}$",
            r"^v\d+\.\d+(\.\d+)?$", r"ab+c", r"^[^\s@]{1,12}@[a-z]{2,8}\.(com|org)$", r"^(red|green|blue)(-(light|dark))?$",
            r"^[\w.-]{1,20}$", r"^\"[a-z]+\"$", r"^\\[a-z]\\$", r"^[äöü]{2,4}$", r"[0-9]$"]
FORMATS = ["date", "time", "date-time", "uuid", "email", "ipv4", "hostname", "uri", "duration", "ipv6"]


def words(r, n):
    return [r.choice(NOUNS) + r.choice(["", "", "s", " of the " + r.choice(NOUNS), "é", " \"x\"", "\n"]) for _ in range(n)]


def string(r):
    kind = r.randrange(9)
    if kind == 0:
        return {"type": "string", "enum": sorted(set(words(r, r.randint(2, 12))))}
    if kind == 1:
        return {"type": "string", "pattern": r.choice(PATTERNS)}
    if kind == 2:
        low = r.randint(0, 5)
        return {"type": "string", "minLength": low, "maxLength": low + r.choice([0, 3, 10, 60, 400])}
    if kind == 3:
        return {"type": "string", "format": r.choice(FORMATS)}
    if kind == 4:
        return {"type": "string", "pattern": r"^[a-z]+$", "maxLength": r.randint(1, 40)}
    if kind == 5:
        return {"type": "string", "minLength": r.randint(1, 4)}
    return {"type": "string"}


def number(r):
    kind = r.randrange(7)
    if kind == 0:
        low = r.choice([0, 1, -5, -1000, 17])
        return {"type": "integer", "minimum": low, "maximum": low + r.choice([0, 1, 9, 100, 12345])}
    if kind == 1:
        return {"type": "integer", "exclusiveMinimum": r.choice([0, -1, 99])}
    if kind == 2:
        return {"type": "number", "minimum": r.choice([0, -90, 3]), "maximum": r.choice([90, 100, 1000])}
    if kind == 3:
        return {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": r.choice([1, 10])}
    if kind == 4:
        return {"type": "integer", "maximum": r.choice([-1, 0, 12])}
    return {"type": r.choice(["integer", "number"])}


def scalar(r):
    kind = r.randrange(10)
    if kind < 4:
        return string(r)
    if kind < 7:
        return number(r)
    return [{"type": "boolean"}, {"type": "null"}, {"enum": [1, "two", None, True, 3.5, ["x"], {"a": {"b": []}}]}, {"const": r.choice(NOUNS)},
            {"type": ["string", "null"]}, {"type": ["integer", "string", "boolean"]}][r.randrange(6)]


def array(r, depth):
    kind = r.randrange(5)
    if kind == 0:
        return {"type": "array", "prefixItems": [scalar(r) for _ in range(r.randint(1, 3))], "items": False, "minItems": 1}
    if kind == 1:
        return {"type": "array", "prefixItems": [scalar(r)], "items": scalar(r), "minItems": 2, "maxItems": 5}
    out = {"type": "array", "items": schema(r, depth - 1)}
    if r.random() < 0.6:
        out["minItems"] = r.randint(0, 3)
    if r.random() < 0.6:
        out["maxItems"] = r.randint(3, 30)
    return out


def obj(r, depth, n=None):
    names = r.sample(NOUNS, n or r.randint(1, 8))
    out = {"type": "object", "properties": {k: schema(r, depth - 1) for k in names}}
    required = [k for k in names if r.random() < 0.6]
    if required or r.random() < 0.5:
        out["required"] = required
    k = r.random()
    if k < 0.5:
        out["additionalProperties"] = False
    elif k < 0.65:
        out["additionalProperties"] = scalar(r)
    if r.random() < 0.3:
        out["description"] = "A " + r.choice(NOUNS)
    return out


def tagged(r, depth, keyword):
    """Alternatives told apart by a constant."""
    ways = []
    for name in r.sample(NOUNS, r.randint(2, 4)):
        way = obj(r, depth - 1, r.randint(1, 3))
        way["properties"] = {"type": {"const": name}, **way["properties"]}
        way["required"] = ["type", *way.get("required", [])]
        ways.append(way)
    return {keyword: ways}


def schema(r, depth):
    if depth <= 0:
        return scalar(r)
    k = r.random()
    if k < 0.45:
        return scalar(r)
    if k < 0.7:
        return obj(r, depth)
    if k < 0.88:
        return array(r, depth)
    if k < 0.92:
        return tagged(r, depth, "oneOf")
    if k < 0.96:
        return {"anyOf": [scalar(r) for _ in range(r.randint(2, 3))]}
    return {"type": "object", "additionalProperties": scalar(r)}


def recursive(r):
    kind = r.randrange(4)
    leaf = scalar(r)
    if kind == 0:  # a tree
        node = {"type": "object", "properties": {"value": leaf, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 4}},
                "required": ["value", "children"], "additionalProperties": False}
        return {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    if kind == 1:  # a list
        node = {"type": "object", "properties": {"head": leaf, "tail": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["head", "tail"]}
        return node
    if kind == 2:  # an expression
        return {"definitions": {"expression": {"anyOf": [{"type": "number"}, {"type": "object", "properties": {
            "op": {"enum": ["+", "-", "*", "/"]}, "left": {"$ref": "#/definitions/expression"}, "right": {"$ref": "#/definitions/expression"}},
            "required": ["op", "left", "right"], "additionalProperties": False}]}},
            "type": "object", "properties": {"formula": {"$ref": "#/definitions/expression"}}, "required": ["formula"]}
    return {"$defs": {"a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}, "x": leaf}, "required": ["x"]},
                      "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 3}}, "$ref": "#/$defs/b"}


def shared(r, depth):
    point = obj(r, 1, 2)
    out = obj(r, depth)
    out["$defs"] = {"point": point}
    for k in list(out["properties"])[:2]:
        out["properties"][k] = {"$ref": "#/$defs/point"}
    return out


def merged(r):
    a, b = obj(r, 1, 3), obj(r, 1, 3)
    for s in (a, b):
        s.pop("additionalProperties", None)
    for k in list(b["properties"]):
        if k in a["properties"]:
            b["properties"].pop(k)
            b["required"] = [x for x in b.get("required", []) if x != k]
    return {"allOf": [a, b, {"required": [next(iter(a["properties"]))]}], "properties": {"extra": {"type": "boolean"}}}


def tool(r):
    """What a call of a function looks like."""
    return {"type": "object", "properties": {"name": {"const": "set_" + r.choice(NOUNS)}, "arguments": obj(r, 2)},
            "required": ["name", "arguments"], "additionalProperties": False}


def any_schema(r, i):
    kinds = [lambda: obj(r, 1), lambda: obj(r, 2), lambda: obj(r, 3), lambda: array(r, 2), lambda: recursive(r), lambda: shared(r, 2),
             lambda: merged(r), lambda: tagged(r, 2, "oneOf"), lambda: tagged(r, 2, "anyOf"), lambda: tool(r), lambda: scalar(r),
             lambda: obj(r, 1, 25), lambda: {"type": "object"} if r.random() < 0.3 else obj(r, 2)]
    return kinds[i % len(kinds)]()


if __name__ == "__main__":
    r = random.Random(19)
    lines = [json.dumps(any_schema(r, i), ensure_ascii=False, separators=(",", ":")) for i in range(N)]
    path = pathlib.Path(__file__).parent / "schemas.json"
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")

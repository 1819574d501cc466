#!/usr/bin/env python3
"""Random walks of schemas' forms, held against Python's jsonschema: answers validate, refusals name a place.

    python3 schema_walks.py WALKS [--every N] [FOLDER...]

WALKS is the program fovea_schema_walks. Without a FOLDER the schemas are all pairs of keywords, none of them with a type, in
each way that two schemas can hold together; --every takes one of N. Else those of the folders' .json files: schemas, or groups
as JSON-Schema-Test-Suite has them, or objects with a "json_schema". A refusal begins with a JSON pointer to something that is in
the schema, unless it speaks of the whole grammar. Exit status 77 where jsonschema is not installed.
"""
import argparse
import fractions
import itertools
import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
    from referencing import Registry
except ImportError:
    print("skipped: no jsonschema")
    sys.exit(77)

# What may be said without a type. Values are such that two keywords of one kind meet: the same names, bounds that overlap.
KEYWORDS = [
    ("minimum", 3), ("maximum", 5), ("exclusiveMinimum", 2.5), ("exclusiveMaximum", 4), ("multipleOf", 2), ("multipleOf", 0.5), ("multipleOf", 0.03),
    ("minLength", 2), ("maxLength", 3), ("pattern", "^a"), ("pattern", "b+$"), ("format", "date"), ("format", "iri"),
    ("minItems", 1), ("maxItems", 2), ("items", {"enum": [1, "a", None]}), ("prefixItems", [{"const": 1}, {"type": "string"}]),
    ("contains", {"const": 1}), ("uniqueItems", True), ("unevaluatedItems", False), ("unevaluatedItems", {"type": "null"}),
    ("properties", {"a": {"type": "integer"}, "b": {"type": "string"}}), ("properties", {"a": {"minimum": 3}}),
    ("required", ["a"]),
    ("required", ["b", "c"]), ("additionalProperties", False), ("additionalProperties", {"type": "boolean"}),
    ("patternProperties", {"^a": {"maximum": 4}}), ("patternProperties", {"b$": {"type": "string"}, "^c": {"type": "null"}}),
    ("propertyNames", {"maxLength": 1}), ("propertyNames", {"enum": ["a", "c"]}), ("minProperties", 1), ("minProperties", 2),
    ("maxProperties", 0), ("maxProperties", 1), ("unevaluatedProperties", False), ("unevaluatedProperties", {"type": "null"}),
    ("dependentRequired", {"a": ["b"]}), ("dependentSchemas", {"a": {"properties": {"c": {"type": "null"}}, "required": ["c"]}}),
    ("enum", [1, "ab", None, [1], {"a": 4}]), ("const", "abb"), ("const", {"a": 3}),
    ("type", "object"), ("type", ["string", "integer"]),
    ("not", {"required": ["b"]}), ("not", {"properties": {"a": {"const": 3}}, "required": ["a"]}), ("not", {"pattern": "a"}),
    ("not", {"type": ["number", "array"]}), ("not", {"not": {"properties": {"d": {"const": 1}}, "required": ["d"]}}),
    ("anyOf", [{"properties": {"c": {"type": "null"}}, "required": ["c"]}, {"maxLength": 2}]),
    ("oneOf", [{"required": ["a"]}, {"required": ["b"]}]),
    ("allOf", [{"properties": {"a": {"maximum": 9}}}, {"properties": {"e": {"type": "boolean"}}}]),
    ("if", {"properties": {"a": {"const": 3}}, "required": ["a"]}), ("$ref", "#/$defs/x"),
]
DEFS = {"x": {"properties": {"b": {"maxLength": 2}}, "maxProperties": 3, "unevaluatedProperties": False}}
WHOLE = re.compile("expected (a grammar of|rules at most|expressions at most)|rule .*: expected a character before")


def keyword(pair):
    """A schema of one keyword; `if` has what follows from it."""
    name, value = pair
    follows = {"then": {"properties": {"f": {"const": 1}}}, "else": {"properties": {"g": {"const": 2}}}} if name == "if" else {}
    return {name: value} | follows


def pairs():
    """Each two of the keywords, as schemas that hold together in each way that there is."""
    for x, y in itertools.combinations_with_replacement(KEYWORDS, 2):
        a, b = keyword(x), keyword(y)
        together = [{"allOf": [a, b]}, {"allOf": [{"properties": {"a": a}}, {"properties": {"a": b}, "required": ["a"]}]},
                    {"oneOf": [a, b]}, {"not": a} | b, {"not": b} | a, {"if": a, "then": b}, {"if": b, "else": a},
                    {"anyOf": [a, b], "unevaluatedProperties": False},
                    {"properties": {"p": a}, "required": ["p"], "not": {"properties": {"p": b}}},
                    {"contains": a, "items": b}, {"patternProperties": {"^[ab]": a}, "properties": {"a": b}, "required": ["a"]}]
        yield from [a | b] + together
        yield {"unevaluatedProperties": False, "allOf": [a], "anyOf": [b]}
        yield {"allOf": [{"unevaluatedProperties": False, "allOf": [a]}, b]}


def drawn(every):
    for i, schema in enumerate(pairs()):
        if i % every == 0:
            yield "pairs", {"$defs": DEFS} | schema if "#/$defs" in json.dumps(schema) else schema


def in_folders(folders):
    for path in sorted(path for folder in folders for path in pathlib.Path(folder).rglob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        is_suite = isinstance(content, list) and all("schema" in group for group in content)
        for group in content if is_suite else [content]:
            yield path.stem, group.get("schema", group) if is_suite else group.get("json_schema", group)


def place_in(schema, refusal):
    """Whether a refusal begins with the place of something in the schema."""
    if WHOLE.search(refusal):
        return True
    match = re.match(r"schema((?:/.*?)?)(?:, column \d+)?(?:: [a-zA-Z]+)?: expected ", refusal)
    at = schema
    for step in match[1].split("/")[1:] if match else []:
        step = step.replace("~1", "/").replace("~0", "~")
        try:
            # A line of an error shows control characters as question marks.
            shown = {} if isinstance(at, list) else {re.sub("[\0-\x1f]", "?", key): at[key] for key in at}
            at = at[int(step)] if isinstance(at, list) else shown[step]
        except (LookupError, TypeError, ValueError):
            return False
    return match is not None


def multiple_of(validator, step, instance, schema):
    """By the decimals that are written, as JSON Schema means it: jsonschema divides doubles, which 19.99 fails for 0.01."""
    if validator.is_type(instance, "number") and fractions.Fraction(repr(instance)) % fractions.Fraction(repr(step)):
        yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {step}")


def validator_of(schema):
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    if "multipleOf" in kind.VALIDATORS:
        kind = jsonschema.validators.extend(kind, {"multipleOf": multiple_of})
    return kind(schema, registry=Registry())


def validates(validator, text):
    try:
        value = json.loads(text)
    except ValueError:
        return "no JSON"
    return next((error.message for error in validator.iter_errors(value)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walks")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("-n", type=int, default=8, help="walks of each form")
    parser.add_argument("--refusals", help="a file for the refusals, one a line")
    parser.add_argument("folders", nargs="*")
    options = parser.parse_intermixed_args()
    cases = list(in_folders(options.folders) if options.folders else drawn(options.every))
    lines = "".join(json.dumps(schema) + "\n" for _, schema in cases)
    command = [options.walks, str(options.n)]
    out = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    n_answers = n_refused = n_invalid = n_silent = 0
    faults, refusals = [], []
    for (name, schema), line in zip(cases, out, strict=True):
        result = json.loads(line)
        if "refused" in result:
            n_refused += 1
            refusals.append(f"{name}\t{result['refused']}\t{json.dumps(schema)}")
            if not place_in(schema, result["refused"]):
                n_silent += 1
                faults.append(f"{name}: a refusal without a place: {result['refused']}: {json.dumps(schema)}")
            continue
        validator = validator_of(schema)
        for text in dict.fromkeys(result["answers"]):
            n_answers += 1
            if why := validates(validator, text):
                n_invalid += 1
                faults.append(f"{name}: {text} does not fit: {why}: {json.dumps(schema)}")
    if options.refusals:
        pathlib.Path(options.refusals).write_text("\n".join(refusals), encoding="utf-8")
    print("\n".join(sorted(faults, key=lambda fault: "does not fit" not in fault)[:40]))
    print(f"{len(cases)} schemas, {n_refused} refused, {n_silent} of them without a place; "
          f"{n_answers} answers, {n_invalid} invalid")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

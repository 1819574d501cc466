#!/usr/bin/env python3
"""The Berkeley Function Calling Leaderboard's calls in every dialect: what templates write is read back, and forms take it.

    bfcl_calls.py CALLS FOLDER [--every N]

CALLS is the program fovea_tool_calls, FOLDER has the package bfcl_eval (pip install --no-deps --target FOLDER bfcl-eval). Of each
entry of the data the first of the possible answers is written, turn by turn where there are several. Types become those of JSON
Schema as the package's own table has them. Calls that do not keep to their tool's schema are read back, but forms do not take
them. Exit status 77 where jsonschema is not installed.
"""
import argparse
import ast
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: no jsonschema")
    sys.exit(77)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Data:
    """The package's entries as (tools, calls, whether the calls keep to the tools' schemas)."""

    def __init__(self, folder):
        sys.path.append(str(folder))
        from bfcl_eval.constants.executable_backend_config import MULTI_TURN_FUNC_DOC_FILE_MAPPING
        from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
        self.types = {**GORILLA_TO_OPENAPI, "Boolean": "boolean"}  # JavaScript's, which the table lacks
        self.data = folder / "bfcl_eval/data"
        self.classes = {name: lines(self.data / "multi_turn_func_doc" / file) for name, file in MULTI_TURN_FUNC_DOC_FILE_MAPPING.items()}

    def cases(self):
        for answers in sorted((self.data / "possible_answer").glob("*.json")):
            entries = {entry["id"]: entry for entry in lines(self.data / answers.name)}
            for answer in lines(answers):
                entry = entries[answer["id"]]
                if "function" in entry:
                    yield from self.case(entry["function"], [next(iter(call.items())) for call in answer["ground_truth"]])
                elif "involved_classes" in entry and isinstance(answer["ground_truth"][0], list):
                    functions = [function for name in entry["involved_classes"] for function in self.classes[name]]
                    for turn in answer["ground_truth"]:
                        yield from self.case(functions, [self.parsed(call, functions) for call in turn])

    def case(self, functions, calls):
        if not calls:
            return
        tools = [{"type": "function", "function": {**function, "parameters": self.schema(function["parameters"])}}
                 for function in functions]
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
        made = []
        for name, arguments in calls:
            arguments = {key: chosen(value) for key, value in arguments.items() if value != [""]}
            made.append({"name": name, "arguments": in_order(schemas[name], arguments)})
        yield {"tools": tools, "calls": made, "fits": all(keeps_to(schemas[call["name"]], call["arguments"]) for call in made)}

    def schema(self, given):
        made = {key: value for key, value in given.items() if key not in ("optional", "default", "type")}
        if kind := self.types.get(given.get("type")):
            made["type"] = kind
        if "properties" in given:
            made["properties"] = {name: self.schema(value) for name, value in given["properties"].items()}
        if isinstance(given.get("items"), dict):
            made["items"] = self.schema(given["items"])
        return made

    @staticmethod
    def parsed(text, functions):
        """f(a, b=1) with the names of what stands in order; each value as the only choice."""
        call = ast.parse(text, mode="eval").body
        name = call.func.id
        order = next(list(function["parameters"]["properties"]) for function in functions if function["name"] == name)
        arguments = dict(zip(order, call.args)) | {each.arg: each.value for each in call.keywords}
        return name, {key: [ast.literal_eval(value)] for key, value in arguments.items()}


def chosen(choices):
    """The first possible value that is not the empty text of what may be left out; objects have choices within."""
    value = next((choice for choice in choices if choice != ""), "")
    return inner(value)


def inner(value):
    if isinstance(value, dict):
        return {key: chosen(choices) if isinstance(choices, list) else choices for key, choices in value.items() if choices != [""]}
    return [inner(each) for each in value] if isinstance(value, list) else value


def in_order(schema, value):
    """Objects' members as the schema has them, as forms write them."""
    if isinstance(value, dict):
        of = schema.get("properties", {})
        return {key: in_order(of.get(key, {}), value[key]) for key in [*(name for name in of if name in value), *(
            name for name in value if name not in of)]}
    return [in_order(schema.get("items", {}), each) for each in value] if isinstance(value, list) else value


def keeps_to(schema, arguments):
    """Whether the schema takes them, and names them all and those of their objects."""
    return jsonschema.Draft202012Validator(closed(schema)).is_valid(arguments)


def closed(schema):
    made = dict(schema)
    if "properties" in schema:
        made |= {"properties": {name: closed(value) for name, value in schema["properties"].items()}, "additionalProperties": False}
    if isinstance(schema.get("items"), dict):
        made["items"] = closed(schema["items"])
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    texts = list(dict.fromkeys(json.dumps(case) for case in Data(options.folder).cases()))[:: options.every]
    cases = [json.loads(text) for text in texts]
    n_calls, n_fit = sum(len(case["calls"]) for case in cases), sum(len(case["calls"]) for case in cases if case["fits"])
    process = subprocess.Popen([options.calls], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write("".join(text + "\n" for text in texts))
    process.stdin.close()
    n_templates = n_forms = n_faults = 0
    for line in process.stdout:
        result = json.loads(line)
        print(f"{result['dialect']:16} {result['calls']} calls, {result['forms']} forms, {result['n_faults']} faults",
              *(fault[:1500] for fault in result["faults"]), sep="\n    ", flush=True)
        n_templates, n_forms, n_faults = n_templates + 1, n_forms + result["forms"], n_faults + result["n_faults"]
    if process.wait() or not n_forms:
        sys.exit("bfcl_calls: expected results of all dialects, got none")
    print(f"{len(cases)} answers of {n_calls} calls ({n_fit} keep to their schemas) in {n_templates} templates: "
          f"{n_forms} forms, {n_faults} faults")
    sys.exit(n_faults != 0)


if __name__ == "__main__":
    main()

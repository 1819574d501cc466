#!/usr/bin/env python3
"""Answers of `fovea run --json-schema` to 200 schemas, held against Python's jsonschema: all that end by themselves must validate.

    python3 validate_answers.py FOVEA SCHEMAS.json [EVERY]

Exit status 77 where jsonschema is not installed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: no jsonschema")
    sys.exit(77)


def main(fovea, schemas, every=1):
    schemas = json.loads(pathlib.Path(schemas).read_text(encoding="utf-8"))
    n_complete = n = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, schema in enumerate(schemas):
            if i % int(every):
                continue
            path = pathlib.Path(folder) / "schema.json"
            path.write_text(json.dumps(schema), encoding="utf-8")
            # At this temperature the model says anything.
            out = subprocess.run([fovea, "run", "-p", "any answer", "--json-schema", path, "--temp", "3", "--seed", str(i), "-n", "480", "--json",
                                  "--compact"], capture_output=True, check=True).stdout
            answer = json.loads(out)
            n += 1
            assert answer["complete"] == (answer["finish"] == "end") or answer["finish"] != "end", answer
            if answer["finish"] != "end":
                continue
            n_complete += 1
            value = json.loads(answer["text"])
            errors = list(jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema).iter_errors(value))
            if errors:
                sys.exit(f"schema {i}: expected an answer that validates, got {answer['text']}: {errors[0].message}\n{json.dumps(schema)}")
    print(f"{n} schemas, {n_complete} complete answers, all validate")
    if n_complete < n * 0.6:
        sys.exit(f"expected most answers complete, got {n_complete} of {n}")


if __name__ == "__main__":
    main(*sys.argv[1:])

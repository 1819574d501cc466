"""The page of the Python package's reference: signatures and docstrings, without a build of the extension."""

import dataclasses
import inspect
import re
import sys
import types

from headers import prose

ARGUMENT = re.compile(r"(?:\w+, )*\w+: ")  # begins what a docstring says of one
MOST = 100  # characters of a signature in one line


class Plain:
    """An annotation as its source spells it."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def load(tree):
    """The package over its extension's stub, which is Python too."""
    folder = tree / "bindings/python"
    extension = types.ModuleType("fovea._fovea")
    source = "from __future__ import annotations\n" + (folder / "fovea/_fovea.pyi").read_text()
    exec(compile(source, "_fovea.pyi", "exec"), vars(extension))
    for name in extension.__annotations__:
        setattr(extension, name, None)
    sys.modules[extension.__name__] = extension
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    import fovea

    return fovea


def plain(annotation):
    if annotation is inspect.Parameter.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return Plain(re.sub(r"\b(npt|np|_fovea|Any)\.", "", text))


def signature(name, function, skipped):
    """`name(arguments) -> result`; `skipped` first arguments are Python's own."""
    known = inspect.signature(function)
    arguments = [each.replace(annotation=plain(each.annotation)) for each in known.parameters.values()][skipped:]
    result = plain(known.return_annotation)
    made = inspect.Signature(arguments, return_annotation=result)
    line = name + str(made)
    if len(line) <= MOST:
        return line
    shown, star = [], False
    for each in arguments:
        if each.kind is each.KEYWORD_ONLY and not star:
            shown.append("    *,")
        star = star or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        shown.append(f"    {each},")
    return "\n".join([f"{name}(", *shown, str(inspect.Signature(return_annotation=result)).replace("()", ")", 1)])


def docstring(what):
    """Markdown of a docstring: arguments as a list, examples as code."""
    made, in_code = [], False
    text = re.sub(r":\w+:`([^`]+)`|``([^`]+)``", lambda match: f"`{match[1] or match[2]}`", inspect.getdoc(what) or "")
    if not text:
        raise SystemExit(f"{what}: expected a docstring, got none")
    for line in text.split("\n"):
        is_code = line.startswith(">>>") or (in_code and bool(line.strip()))
        if is_code != in_code:
            made += ["```python" if is_code else "```"]
        in_code = is_code
        begins = ARGUMENT.match(line)
        if is_code:
            made.append(line)
        elif begins:
            names = begins[0][:-2].split(", ")
            made += ["- " + ", ".join(f"`{name}`" for name in names) + ": " + prose(line[begins.end() :])]
        else:
            made.append(("  " if line.startswith(" ") else "") + prose(line.strip()))
    return [*made, *(["```"] if in_code else []), ""]


def members(of):
    """Public members of a class with those of the package's classes that it stands on: {name: value}."""
    found = {}
    for each in of.__mro__:
        if each.__module__.startswith("fovea"):
            for name, value in vars(each).items():
                if (not name.startswith("_") or name == "__call__") and name not in found:
                    found[name] = value
    fields = {field.name for field in dataclasses.fields(of)} if dataclasses.is_dataclass(of) else ()
    return {name: value for name, value in found.items() if name not in fields}


def show_member(of, name, value):
    made = [f"#### `{of.__name__}.{name}`", "", "```python"]
    if isinstance(value, property):
        annotation = inspect.signature(value.fget).return_annotation
        made += [f"{name}: {plain(annotation)}"]
    elif isinstance(value, (staticmethod, classmethod)):
        kind = type(value).__name__
        made += [f"@{kind}", signature(name, value.__func__, kind == "classmethod")]
    else:
        made += [signature(name, value, 1)]
    return [*made, "```", "", *docstring(value)]


def show(name, what):
    made = [f"### `fovea.{name}`", ""]
    if not inspect.isclass(what):
        return [*made, "```python", signature(name, what, 0), "```", "", *docstring(what)]
    if not issubclass(what, BaseException) and "native" not in inspect.signature(what).parameters:
        made += ["```python", signature(name, what, 0).removesuffix(" -> None"), "```", ""]
    made += docstring(what)
    for own, value in members(what).items():
        if isinstance(value, (property, staticmethod, classmethod)) or inspect.isfunction(value):
            made += show_member(what, own, value)
    return made


def page(tree):
    """Markdown of all that the package shows."""
    fovea = load(tree)
    shown = {name: getattr(fovea, name) for name in fovea.__all__}
    kinds = {"Functions": [], "Classes": [], "Errors": []}
    for name, what in shown.items():
        if inspect.isclass(what):
            kinds["Errors" if issubclass(what, BaseException) else "Classes"] += show(name, what)
        elif callable(what):
            kinds["Functions"] += show(name, what)
    made = ["# Python's reference", "", *docstring(fovea)]
    for kind, text in kinds.items():
        made += [f"## {kind}", "", *text]
    return "\n".join(made)

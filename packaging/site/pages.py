#!/usr/bin/env python3
"""Lays out the site's pages for Sphinx, from the texts of the tree as they stand.

    pages.py TREE FOLDER

Links go to pages. What a text links to and no page has (an example, a header, a folder) gets one of its own.
"""

import argparse
import pathlib
import posixpath
import re

import figures
import headers
import manual
import python_api
from latex2mathml.converter import convert as mathml

# What people start with: passages of the texts, FILE#HEADING, or what stands before a file's second heading.
START = {
    "start/command_line": ("The command line", "README.md#From a checkpoint to text", "docs/chat.md"),
    "start/python": ("Python", "README.md#From Python", "bindings/python/README.md"),
    "start/javascript": ("JavaScript", "bindings/web/README.md"),
    "start/server": ("A server", "docs/server.md", "docs/server.md#Chat: `POST /v1/chat/completions`"),
    "start/cpp": ("C++", "README.md#From a file to logits in C++", "README.md#Building and linking"),
    "start/rust": ("Rust", "bindings/rust/README.md"),
    "start/c": ("C, with a heap", "README.md#From C and C++, and on a microcontroller"),
    "start/boards": ("Boards", "README.md#For ARM boards", "docs/boards.md#Microcontrollers"),
}
SECTIONS = {
    "Start in five minutes": ["docs/install.md", *START],
    "Lessons": ["docs/attention.py", "docs/chat.md", "docs/forms.md", "docs/translation.md", "docs/speech.md"],
    "Reference": [
        "reference",
        "command_line",
        "docs/server.md",
        "bindings/python/README.md",
        "python_api",
        "bindings/web/README.md",
        "bindings/rust/README.md",
        "docs/families.md",
        "docs/format.md",
    ],
    "Results": ["figures", "docs/results.md", "docs/models.md", "bench/README.md"],
    "How it works": [
        "docs/architecture.md",
        "docs/numerics.md",
        "docs/kernels.md",
        "docs/machines.md",
        "docs/boards.md",
    ],
    "Trust": ["docs/reliability.md", "docs/SECURITY.md", "docs/CHANGELOG.md", "docs/CONTRIBUTING.md"],
}
LANGUAGES = {
    ".c": "c",
    ".h": "cpp",
    ".inc": "cpp",
    ".cpp": "cpp",
    ".py": "python",
    ".mts": "typescript",
    ".mjs": "javascript",
    ".yaml": "yaml",
    ".sh": "bash",
    ".json": "json",
}
HEADING = re.compile(r"^(#+) (.*)$")


def page_of(path):
    """The page of a file that has one by its name; index has README.md."""
    if path == "README.md":
        return "index"
    if path.endswith("README.md"):
        return posixpath.dirname(path).replace("bindings/", "")
    if path.startswith("docs/"):
        return posixpath.splitext(path)[0].lower()
    return path


def outside_code(text, change):
    """Applies `change` to what is neither a block of code nor code within a line."""
    made, fence = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fence = not fence
        if fence or line.startswith("    "):
            made.append(line)
        else:
            made.append(
                "".join(part if part.startswith("`") else change(part) for part in re.split(r"(`[^`]+`)", line))
            )
    return "\n".join(made)


def passage(text, heading=None):
    """What stands under a heading, which becomes a second one, or between a text's first two headings."""
    lines, fence, marks = text.split("\n"), False, []
    for i, line in enumerate(lines):
        fence ^= line.startswith("```")
        match = HEADING.match(line)
        if match and not fence:
            marks.append((i, len(match[1]), match[2]))
    at = next((m for m in range(len(marks)) if marks[m][2] == heading), None) if heading else 0
    if at is None:
        raise SystemExit(f"expected a heading {heading!r}, got none")
    level = marks[at][1] if heading else 6
    end = next((i for i, deep, _ in marks[at + 1 :] if deep <= level), len(lines))
    kept = lines[marks[at][0] + 1 : end]
    cut = marks[at][1] - 2 if heading else 0
    kept = [line[cut:] if line.startswith("#" * (cut + 3)) else line for line in kept]
    return "\n".join([f"## {heading}", *kept] if heading else kept)


def lesson(text):
    """Markdown of a notebook as text: cells of words, with formulas as MathML, and of code."""
    made = []
    for cell in re.split(r"^# %%", text, flags=re.M)[1:]:
        first, _, body = cell.partition("\n")
        if "[markdown]" in first:
            words = re.sub(r"^# ?", "", body, flags=re.M).strip()
            words = re.sub(
                r"\$\$(.+?)\$\$", lambda m: mathml(m[1].replace("\n", " "), display="block"), words, flags=re.S
            )
            made += [re.sub(r"\$([^$]+)\$", lambda m: mathml(m[1]), words), ""]
        else:
            made += ["```python", body.strip(), "```", ""]
    return "\n".join(made)


class Site:
    def __init__(self, tree, folder):
        self.tree, self.folder = tree, folder
        self.named = {path for paths in SECTIONS.values() for path in paths if (tree / path).is_file()} | {"README.md"}
        self.headers = [h.relative_to(tree).as_posix() for h in sorted((tree / "include/fovea").rglob("*.h"))]
        self.shown = {}  # what is linked and has no page by itself

    def read(self, path):
        return (self.tree / path).read_text()

    def write(self, page, text):
        path = self.folder / f"{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def target(self, path):
        """The page that a link to `path` leads to."""
        if path in self.named:
            return page_of(path)
        if path in self.headers:
            return "reference/" + path.removeprefix("include/").removesuffix(".h")
        if path == "include/fovea/host":
            return "reference"
        self.shown[path] = f"files/{path.replace('.', '_')}"
        return self.shown[path]

    def linked(self, text, source, page):
        """The text of `source` with its links as `page` wants them."""

        def linked(target):
            there, _, anchor = target.partition("#")
            if ":" in there:
                return target
            path = posixpath.normpath(posixpath.join(posixpath.dirname(source), there)) if there else source
            if not (self.tree / path).exists():
                raise SystemExit(f"{source}: expected the link's file, got none: {target}")
            if path.endswith(".svg"):
                image = self.folder / path
                image.parent.mkdir(parents=True, exist_ok=True)
                image.write_bytes((self.tree / path).read_bytes())
                goal = path
            else:
                goal = self.target(path) + ".md"
            return posixpath.relpath(goal, posixpath.dirname(page) or ".") + ("#" + anchor if anchor else "")

        return outside_code(text, lambda part: re.sub(r"\]\(([^)\s]+)\)", lambda m: f"]({linked(m[1])})", part))

    def title(self, path):
        return next(line[2:] for line in self.read(path).split("\n") if line.startswith("# "))

    def start(self, page, title, *passages):
        made = [
            f"# {title}",
            "",
            f"[Installing]({posixpath.relpath('docs/install.md', 'start')}) has the packages.",
            "",
        ]
        for what in passages:
            path, _, heading = what.partition("#")
            made += [self.linked(passage(self.read(path), heading), path, page), ""]
        for path in dict.fromkeys(what.partition("#")[0] for what in passages):
            made += [f"- [{self.title(path)}]({posixpath.relpath(page_of(path), 'start')}.md)"]
        self.write(page, "\n".join(made))

    def reference(self):
        names = []
        for path in self.headers:
            name = path.removeprefix("include/")
            self.write(f"reference/{name.removesuffix('.h')}", headers.page(name, self.read(path)))
            names.append(f"reference/{name.removesuffix('.h')}")
        kinds = {"For C": [], "For C++, the engine": [], "For C++, the host library": []}
        for name in names:
            kind = "host library" if "/host/" in name else "engine"
            kinds["For C" if name.startswith("reference/fovea/fovea") else f"For C++, the {kind}"].append(name)
        made = ["# Headers", ""]
        for kind, pages in kinds.items():
            made += [f"## {kind}", ""]
            for page in pages:
                name = f"{page.removeprefix('reference/')}.h"
                summary = headers.summary(self.read(f"include/{name}"))
                made += [f"- [`{name}`]({page}.md): {summary}"]
            made += [""]
        lists = sorted((self.tree / "include/fovea").glob("*.inc"))
        made += ["## Lists that headers include", ""]
        made += [f"- [`{each.name}`]({self.target(each.relative_to(self.tree).as_posix())}.md)" for each in lists] + [
            ""
        ]
        self.write("reference", "\n".join([*made, "```{toctree}", ":hidden:", "", *names, "```", ""]))

    def file(self, path, page):
        at = self.tree / path
        files = (
            sorted(f for f in at.rglob("*") if f.is_file() and "__pycache__" not in f.parts) if at.is_dir() else [at]
        )
        made = ["---", "orphan: true", "---", f"# `{path}`", ""]
        for each in files:
            if at.is_dir():
                made += [f"## `{each.relative_to(at).as_posix()}`", ""]
            made += [f"``````{LANGUAGES.get(each.suffix, 'text')}", each.read_text(), "``````", ""]
        self.write(page, "\n".join(made))

    def make(self):
        for path in sorted(self.named):
            page = page_of(path)
            text = lesson(self.read(path)) if path.endswith(".py") else self.linked(self.read(path), path, page)
            if page == "index":
                for caption, inside in SECTIONS.items():
                    names = [page_of(each) if each in self.named else each for each in inside]
                    text += "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""])
            self.write(page, text)
        for page, (title, *passages) in START.items():
            self.start(page, title, *passages)
        self.reference()
        self.write("command_line", manual.page(self.read("docs/fovea.1")))
        self.write("python_api", python_api.page(self.tree))
        self.write("figures", figures.page(sorted((self.tree / "bench/results").glob("*.csv"))))
        for path, page in sorted(self.shown.items()):
            self.file(path, page)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    given = parser.parse_args()
    Site(given.tree.resolve(), given.folder).make()


if __name__ == "__main__":
    main()

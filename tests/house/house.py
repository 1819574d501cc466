#!/usr/bin/env python3
"""Holds a checkout to what docs/CONTRIBUTING.md says of sizes, names, files touched and prose.

    house.py CHECKOUT [--counts]

Sizes: lines of a file, a class and a function; lines of code of a folder, which are neither blank nor a comment of their own
line; no files beside subfolders. Names: one type for each, in sources too. Files touched: the newest of each kind of addition is
named in the files of its row and in no other. Prose: no sentence of a comment or a document opens with "Of". Faults: what
tests/README.md names as a check is there. What is above a
limit today is listed as a debt, whose number may only fall. --counts prints lines of code, folder by folder.
"""
import argparse, collections, pathlib, re, sys

from arrows import SOURCES, sources

MOST_LINES, MOST_CLASS, MOST_FUNCTION = 500, 250, 60
MOST_CODE, MOST_ENGINE_CODE = 6000, 2500
# People read programs one by one; kernels.h, math.h and select.cpp are what all rooms of kernels share; include/fovea/host is for heaps.
FLAT = ("tests/", "examples", "bench/", "engine/kernels", "include/")
KERNELS = "engine/kernels"  # one name in each instruction set's namespace is how kernels are written

DEBTS = {}

# To add one of a kind is to touch these files: what to search for names the last one that was added.
TOUCHED = {
    "quick_gelu": "include/fovea/type.h engine/kernels/math.h convert/families/reading.cpp host/model/report.cpp",
    "q5_1": "include/fovea/type.h engine/format/panel.h engine/kernels/isa/quants_5.cpp host/base/words.cpp"
    " convert/quantize/format_lanes.h convert/formats/gguf_blocks.cpp bindings/python/fovea/_convert.py",
    "VERSION_UNSUPPORTED": "include/fovea/codes.inc",
    "appended_value": "engine/format/roles.inc engine/blocks/qkv.cpp convert/sources/torch_module.cpp",
    # A block's part: what finds its tensors; the rest of its row is named after no part.
    "DistanceTensors|FOVEA_DISTANCE_TENSORS": "engine/format/roles.inc engine/model/layers.h engine/pass/parts.inc"
    " engine/blocks/distances.cpp",
    "add_tokenize[^r]": "tools/verbs/verbs.h tools/verbs/tokenize.cpp",
    r"isa\(avxvnni|Isa.*avxvnni|\n    avxvnni,": "CMakeLists.txt engine/kernels/kernels.h engine/kernels/select.cpp",
    "top_p": "include/fovea/sampler.h include/fovea/sampler_options.inc include/fovea/fovea.h engine/text/sampler.cpp"
    " bindings/python/fovea/_options.py",
    r"endpoints::rerank|post, rerank": "serve/api/endpoints.inc serve/api/rerank.cpp",
    r"nemotron\b(?!_)": "convert/families/nemotron.cpp convert/families/families.inc convert/gguf/architectures.cpp",
}


def is_code(line):
    return bool(line.strip()) and not line.strip().startswith("//")


def blocks(lines, opens):
    """(first line, lines, match) of each block at the margin whose opening line matches, up to its closing brace."""
    at = 0
    while at < len(lines):
        match = opens(lines, at)
        if not match:
            at += 1
            continue
        end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("}")), len(lines))
        yield at, end - at + 1, match
        at = end + 1


def class_opening(lines, at):
    return re.match(r"(?:class|struct|union) (\w+)[^;]*\{$", lines[at])


def function_opening(lines, at):
    line = lines[at]
    if not line.endswith("{") or not line[:1].strip() or re.match(r"(class|struct|enum|union|namespace|extern|#|//|\})", line):
        return None
    return re.search(r"(\w+)\(", " ".join(lines[max(0, at - 3) : at + 1]))


def sentences(text, marker):
    """Sentences of comments (marker "//" or "#"), or of a document, each paragraph joined first."""
    paragraph = []
    for line in [*text.split("\n"), ""]:
        if marker:
            match = re.search(rf"(?:^|[^:\"']){marker}[/!<]*(?: (.*))?$", line)
            own = line.strip().startswith(marker)
            words = (match[1] or "") if match else ""
        else:
            own, words = True, re.sub(r"^[\s>|*#-]*(\d+\. )?", "", line)
        if paragraph and (not words or not own or (not marker and re.match(r"\s*([|*#-]|\d+\.)", line))):
            yield from re.split(r"(?<=[.:;!?|]) +", " ".join(paragraph))
            paragraph = []
        if words:
            paragraph.append(words)


def check_sizes(root, files, say):
    code, loose = collections.Counter(), collections.Counter()
    for file, text in files.items():
        lines = text.split("\n")
        folder = file.rpartition("/")[0]
        code[folder] += sum(map(is_code, lines))
        loose[folder] += 1
        say(file, "lines", len(lines) - 1, MOST_LINES)
        if folder.startswith("tests"):
            continue
        for _, n_lines, match in blocks(lines, class_opening):
            say(f"{file}: {match[1]}", "lines of a class", n_lines, MOST_CLASS)
        for _, n_lines, match in blocks(lines, function_opening):
            say(f"{file}: {match[1]}", "lines of a function", n_lines, MOST_FUNCTION)
    for folder, n in sorted(code.items()):
        say(folder, "lines of code", n, MOST_ENGINE_CODE if folder.startswith("engine") else MOST_CODE)
    for folder in sorted(loose):
        if not folder.startswith(FLAT) and any(other.startswith(folder + "/") for other in loose):
            say(folder, "files beside subfolders", loose[folder], 0)
    return code


def check_names(files, say):
    """One type for a name in a namespace, and one constant in a room. What a source keeps to itself counts too, so that sources
    may be compiled together."""
    seen = collections.defaultdict(set)
    opening = re.compile(r"^(?:namespace ([\w:]+).*\{|(?:class|struct|union|enum class|enum) ([A-Z]\w+)(?: final)?(?: [:{].*)?)$", re.M)
    for file, text in files.items():
        if file.startswith(("tests/", "bench/", "examples/", KERNELS)):
            continue
        spaces = ["fovea"]
        for match in opening.finditer(text):
            if match[1]:
                spaces = [match[1].replace("fovea::", "")] if "::" in match[1] else [match[1]]
            else:
                seen[spaces[-1], match[2]].add(file)
    for (space, name), places in sorted(seen.items()):
        say(f"{space}::{name} ({', '.join(sorted(places))})", "files that define the type", len(places), 1)
    constants = collections.defaultdict(set)
    for file, text in files.items():
        if file.endswith(".cpp") and not file.startswith(("tests/", "bench/", "examples/", KERNELS)):
            for name in re.findall(r"^(?:const|constexpr) [^=({;\n]*?\b(k[A-Z]\w*)(?: =|\[|\{)", text, re.M):
                constants[file.rsplit("/", 1)[0], name].add(file)
    for (room, name), places in sorted(constants.items()):
        say(f"{room}: {name} ({', '.join(sorted(places))})", "sources that define the constant", len(places), 1)


def check_touched(root, say_wrong):
    endings = (".h", ".c", ".cpp", ".inc", ".py", ".pyi", ".html", ".S")
    rooms = "include engine platform host convert ranks serve tools bindings".split()
    texts = {"CMakeLists.txt": (root / "CMakeLists.txt").read_text()}
    for room in rooms:
        for path in (root / room).rglob("*"):
            name = path.relative_to(root).as_posix()
            if path.suffix in endings and "/tests/" not in name:
                texts[name] = path.read_text(errors="replace")
    for witness, expected in TOUCHED.items():
        found = sorted(name for name, text in texts.items() if re.search(witness, text))
        if found != sorted(expected.split()):
            say_wrong(f"{witness}: expected in {', '.join(sorted(expected.split()))}; got {', '.join(found)}")


def check_prose(root, files, say):
    texts = {file: (text, "//") for file, text in files.items()}
    for pattern, marker in (("*.py", "#"), ("*.cmake", "#"), ("CMakeLists.txt", "#"), ("*.md", "")):
        for path in root.rglob(pattern):
            name = path.relative_to(root).as_posix()
            if not name.startswith(("build", ".", "tests/golden")) and "/build" not in name:
                texts[name] = (path.read_text(errors="replace"), marker)
    for file, (text, marker) in sorted(texts.items()):
        opened = [sentence for sentence in sentences(text, marker) if sentence.startswith("Of ")]
        say(f"{file} ({opened[0][:50]}…)" if opened else file, 'sentences that open with "Of"', len(opened), 0)


def check_table(root, wrong):
    page = root / "tests/README.md"
    for file, *names in re.findall(r'\]\(([^)]+)\)(?: "([^"]+)")?(?: `([^`]+)`)?', page.read_text()):
        target = page.parent / file
        if not target.exists():
            wrong(f"tests/README.md: {file}: no such file")
            continue
        text = re.sub(r'"\s*\n\s*"', "", target.read_text(errors="replace"))  # a name of several literals
        for name in (name for name in names if name and name not in text):
            wrong(f'tests/README.md: {file}: expected a test "{name}", got none')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--counts", action="store_true")
    given = parser.parse_args()
    root = given.checkout.resolve()
    files = {file: (root / file).read_text(errors="replace") for file in sources(root)}
    wrong, owed = [], dict(DEBTS)

    def say(what, unit, had, limit):
        key = what.split(" (")[0], unit
        debt = owed.pop(key, None)
        if debt is not None and had < debt and had >= limit:
            wrong.append(f"{what}: the list has a debt of {debt} {unit}, the tree of {had}: lower it")
        elif had > (debt or limit):
            wrong.append(f"{what}: expected at most {debt or limit} {unit}, got {had}")

    code = check_sizes(root, files, say)
    check_names(files, say)
    check_touched(root, wrong.append)
    check_prose(root, files, say)
    check_table(root, wrong.append)
    wrong += [f"{what}: the list has a debt of {unit} that the tree no longer has" for what, unit in owed]
    if given.counts:
        print("".join(f"{n:7} lines of code  {folder}\n" for folder, n in sorted(code.items())), end="")
    print("".join(f"{line}\n" for line in wrong), end="")
    print(f"{len(files)} files, {sum(code.values())} lines of code: {len(wrong)} against docs/CONTRIBUTING.md, {len(DEBTS)} owed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

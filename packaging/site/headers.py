"""Pages of the reference from the public headers: each declaration as it stands, with the comment before it."""

import re

PARAGRAPH = re.compile(
    r"(Errors|Threads|Source|Throws|Results|Memory|On success|Time)\b"
)  # begins one, at a line's start
MARKED = re.compile(r"([\\*_\[\]<>|#$&{}~])")


def prose(text):
    """Text of a comment as Markdown: nothing but `code` means anything there."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return MARKED.sub(r"\\\1", text).replace("`", r"\`")
    return "`".join(part if i % 2 else MARKED.sub(r"\\\1", part) for i, part in enumerate(parts))


def comment(lines, indent, language):
    """Paragraphs of comment lines; those indented by at least `indent` are shown as they stand."""
    made, at = [], 0
    while at < len(lines):
        end = at
        shown = lines[at].startswith(" " * indent)
        while end < len(lines) and (lines[end].startswith(" " * indent) == shown or not lines[end].strip()):
            end += 1
        block = lines[at:end]
        if shown:
            cut = min(len(line) - len(line.lstrip()) for line in block if line.strip())
            made += [f"```{language}", *"\n".join(line[cut:].rstrip() for line in block).rstrip().split("\n"), "```"]
        else:
            made += [("\n" if PARAGRAPH.match(line) else "") + prose(line) for line in block]
        made += [""]
        at = end
    return made


def without_comment(line):
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', line).split("//")[0].rstrip()


def declaration(lines, at):
    """The line after the declaration that begins at `at`: where no bracket is open and a semicolon or brace ends it."""
    depth = 0
    for end in range(at, len(lines)):
        code = without_comment(lines[end])
        if lines[at].startswith("#"):
            if not code.endswith("\\"):
                return end + 1
            continue
        if not code.startswith("#"):
            depth += sum(map(code.count, "({[")) - sum(map(code.count, ")}]"))
        if depth == 0 and code.endswith((";", "}")):
            return end + 1
    raise ValueError(f"expected the end of a declaration, got none: {lines[at]}")


def name_of(lines):
    text = " ".join(map(without_comment, lines))
    text = re.sub(r"\[\[\w+\]\]|alignas\(\w+\)|template ?<[^>]*>", "", text).strip()
    for pattern in (
        r"^typedef [\w ]+\(\*(\w+)\)",
        r"^typedef .*[ }](\w+);$",
        r"^(?:class|struct|union|enum class|enum|using|#define) +(\w+)",
        r"^enum \{ *(?:#.*? )?(FOVEA_[A-Z]\w+)",
        r"constexpr [\w:]+ (k\w+)",
        r"(operator\W+|\w+)\(",
    ):
        match = re.search(pattern, text)
        if match:
            return match[1]
    raise ValueError(f"expected a declaration, got {text}")


def shown(lines):
    """A declaration without what a class keeps to itself."""
    kept, private = [], False
    for line in lines:
        private = (private or line == "private:") and not line.startswith("}")
        if not private:
            kept.append(line)
    return kept


def summary(text):
    """The first sentence of a header's comment."""
    words = " ".join(re.match(r"(?:// \S.*\n)*", text)[0].replace("// ", "").split("\n"))
    return prose(re.match(r".*?(?:[.](?= [A-Z])|$)", words.strip())[0])


def page(name, text):
    """Markdown of the header `name`, such as fovea/session.h."""
    lines = text.split("\n")
    intro = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    title, language = f"`{name}`", "c" if 'extern "C"' in text else "cpp"
    made = [f"# {title}", "", *comment([line[3:] for line in lines[:intro]], 4, language)]
    at, words, last = intro, [], None
    while at < len(lines):
        line = lines[at]
        heading = re.match(r"// -{4} (.*?) -+$", line)
        if heading:
            made += [f"## {prose(heading[1][0].upper() + heading[1][1:])}", ""]
        elif line.startswith("///"):
            words.append(line[4:])
        elif not line.strip():
            words = []
        elif words or not re.match(r"//|namespace |extern |#|\}|(class|struct) \w+;|friend ", line):
            end = declaration(lines, at)
            called = name_of(lines[at:end])
            if called != last:
                made += [f"### `{called}`", ""]
            made += [f"```{language}", *shown(lines[at:end]), "```", "", *comment(words, 2, "text")]
            words, last, at = [], called, end
            continue
        at += 1
    return "\n".join(made)

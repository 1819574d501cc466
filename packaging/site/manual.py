"""The man page as Markdown: the macros that docs/fovea.1 uses, and no others."""

import re

from headers import prose

MARKS = {"B": "**", "I": "*", "R": ""}
WORD = re.compile(r'"([^"]*)"|(\S+)')


def spoken(text):
    return prose(text.replace(r"\-", "-"))


def in_fonts(fonts, rest):
    """Words in one font, or in two by turns without spaces between."""
    if len(fonts) == 1:
        return f"{MARKS[fonts]}{spoken(rest)}{MARKS[fonts]}"
    made = []
    for i, (quoted, bare) in enumerate(WORD.findall(rest)):
        word, mark = quoted or bare, MARKS[fonts[i % 2]]
        made.append(" " * word.startswith(" ") + mark + spoken(word.strip()) + mark)
    return "".join(made)


def page(text):
    """Markdown of a page in man's macros."""
    made, is_code, is_term, margin = [], False, False, ""
    for line in text.rstrip("\n").split("\n"):
        macro, rest = re.match(r"\.(\w+) ?(.*)", line).groups() if line.startswith(".") else ("", line)
        if macro in ("SH", "PP", "TP"):
            is_term, margin = macro == "TP", ""
        if macro == "TH":
            made += [f"# `{rest.split()[0].lower()}`, the command", ""]
        elif macro == "SH":
            made += ["", f"## {rest.capitalize()}", ""]
        elif macro in ("nf", "fi"):
            is_code = macro == "nf"
            made += ["```sh" if is_code else "```"]
        elif is_code:
            made += [line.replace(r"\-", "-")]
        elif macro in ("PP", "TP"):
            made += [""]
        elif macro == "br":
            made[-1] += "\\"
        elif macro and not set(macro) <= set(MARKS):
            raise SystemExit(f"expected a macro that manual.py knows, got .{macro}")
        else:
            words = in_fonts(macro, rest) if macro else spoken(rest)
            made += [f"- {words}:" if is_term else margin + words]
            margin, is_term = "  " if is_term else margin, False
    return "\n".join([*made, ""])

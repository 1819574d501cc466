#!/usr/bin/env python3
"""Holds pages to HTML, and their links, anchors and pictures to what is there; nothing comes from another host.

check.py FOLDER
"""

import argparse
import collections
import pathlib
import re
import sys
import urllib.parse

import html5lib

LOADS = {
    "script": "src",
    "img": "src",
    "link": "href",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
}
NOT_LOADED = {"canonical", "index", "search", "next", "prev", "author", "license"}


class Page:
    """A page's elements and what is wrong with its HTML."""

    def __init__(self, path):
        parser = html5lib.HTMLParser(namespaceHTMLElements=False)
        self.root = parser.parse(path.read_bytes(), transport_encoding="utf-8")
        self.wrong = [f"line {place[0]}: {html5lib.constants.E[code] % facts}" for place, code, facts in parser.errors]
        self.elements = [each for each in self.root.iter() if isinstance(each.tag, str)]
        ids = collections.Counter(each.get("id") for each in self.elements if each.get("id"))
        self.ids = set(ids)
        self.wrong += [f"id {name}: expected one element, got {n}" for name, n in ids.items() if n > 1]

    def check_words(self):
        if not self.root.get("lang"):
            self.wrong.append("html: expected a language, got none")
        if not (self.root.findtext("head/title") or "").strip():
            self.wrong.append("title: expected one, got none")
        for each in self.elements:
            if each.tag == "img" and not (each.get("alt") or "").strip():
                self.wrong.append(f"img {each.get('src')}: expected what it shows in words, got none")
            if each.get("role") == "img" and not (each.get("aria-label") or "").strip():
                self.wrong.append(f"{each.tag}: expected what the picture shows in words, got none")


def check_links(page, path, folder, pages, wrong):
    for each in page.elements:
        loaded = LOADS.get(each.tag) if each.get("rel") not in NOT_LOADED else None
        for name in ("href", "src"):
            goal = each.get(name)
            if goal is None or goal.startswith(("data:", "mailto:")):
                continue
            parts = urllib.parse.urlsplit(goal)
            if parts.scheme or parts.netloc:
                if name == loaded:
                    wrong.append(f"{each.tag}: expected nothing from another host, got {goal}")
                continue
            there = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not there.is_file():
                wrong.append(f"{each.tag}: expected a file, got none: {goal}")
            elif parts.fragment and there in pages and urllib.parse.unquote(parts.fragment) not in pages[there].ids:
                wrong.append(f"{each.tag}: expected an anchor, got none: {goal}")
            elif not there.is_relative_to(folder):
                wrong.append(f"{each.tag}: expected a file of the site, got {goal}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder.resolve()
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    n_wrong, n_links = 0, 0
    for path, page in pages.items():
        page.check_words()
        check_links(page, path, folder, pages, page.wrong)
        n_links += sum(1 for each in page.elements if each.get("href"))
        n_wrong += len(page.wrong)
        for line in page.wrong:
            print(f"{path.relative_to(folder)}: {line}")
    for path in sorted(folder.rglob("*.css")):
        for goal in re.findall(r"url\(['\"]?(https?:|//)[^)]*\)|@import", path.read_text()):
            n_wrong += 1
            print(f"{path.relative_to(folder)}: expected nothing from another host, got {goal}")
    if not pages:
        sys.exit(f"expected pages in {folder}, got none")
    print(f"{len(pages)} pages, {n_links} links: {n_wrong} findings")
    sys.exit(1 if n_wrong else 0)


if __name__ == "__main__":
    main()

"""Sphinx's settings: ./dev site."""

import pathlib

project = "Fovea"
author = "the Fovea authors"
extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 6
# A passage of a text on another page begins at another depth; a lexer that knows no newer word shows the code plain.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
highlight_language = "text"
html_theme = "furo"
html_title = "Fovea"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_permalinks_icon = "#"
html_use_index = False

# What the theme leaves out for readers of screens and keyboards.
MENDED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
}


def mend(app, failed):
    for path in pathlib.Path(app.outdir).rglob("*.html"):
        text = path.read_text()
        for before, after in MENDED.items():
            text = text.replace(before, after)
        path.write_text(text)


def setup(app):
    app.connect("build-finished", mend)

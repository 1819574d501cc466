"""Figures and tables of bench/results: shares of what the machine itself could do in the same run."""

import csv
import html
import statistics

BAR, GAP, LEFT, WIDTH = 22, 8, 70, 640


def rows_of(path):
    """The comments of a file of results, and its rows."""
    lines = path.read_text().splitlines()
    said = [line[2:] for line in lines if line.startswith("#")]
    return said, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def bars(title, values):
    """A picture of shares: a bar for each median, a mark for each run."""
    height = len(values) * (BAR + GAP) + 24
    scale = WIDTH - LEFT - 110
    told = "; ".join(f"{name} {statistics.median(shares):.0%}" for name, shares in values.items())
    made = [
        f'<svg class="bars" role="img" viewBox="0 0 {WIDTH} {height}" aria-label="{html.escape(f"{title}: {told}")}">'
    ]
    for i in range(5):
        x = LEFT + scale * i / 4
        made.append(f'<line class="grid" x1="{x:g}" x2="{x:g}" y1="0" y2="{height - 20}"/>')
        made.append(f'<text x="{x:g}" y="{height - 4}" text-anchor="middle">{25 * i} %</text>')
    for i, (name, shares) in enumerate(values.items()):
        y, middle = i * (BAR + GAP), statistics.median(shares)
        made.append(f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{html.escape(name)}</text>')
        made.append(f'<rect x="{LEFT}" y="{y}" width="{scale * middle:.1f}" height="{BAR}"/>')
        for share in shares if len(shares) > 1 else ():
            x = LEFT + scale * share
            made.append(f'<line class="run" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + BAR}"/>')
        made.append(f'<text x="{LEFT + scale + 12}" y="{y + 16}">{middle:.0%}</text>')
    return "\n".join([*made, "</svg>"])


def page(paths):
    """Markdown of all files of results."""
    made = ["# Shares of the machine", "", "A bar is the median of the runs, a mark each of them.", ""]
    for path in paths:
        said, rows = rows_of(path)
        made += [
            f"## {path.stem.replace('_', ' ').title()}",
            "",
            f"{said[0]}.",
            "",
            "```text",
            *said[1:],
            "```",
            "",
        ]
        for phase in dict.fromkeys(row["phase"] for row in rows):
            values = {}
            for row in rows:
                if row["phase"] == phase:
                    values.setdefault(row["type"], []).append(float(row["share_of_ceiling"]))
            title = f"{rows[0]['model']}, {phase}: share of the ceiling"
            made += [f"### {phase.capitalize()}", "", bars(title, values), ""]
        made += ["| " + " | ".join(rows[0]) + " |", "| " + " | ".join("---" for _ in rows[0]) + " |"]
        made += ["| " + " | ".join(row.values()) + " |" for row in rows] + [""]
    return "\n".join(made)

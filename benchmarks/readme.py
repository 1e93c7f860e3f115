"""Put tables that were measured between two marks of a page.

pairmargin experiment report && python benchmarks/readme.py    # Table 2 and the leaderboard into the README, …
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
README = ROOT / "README.md"
PLACES = {"table2": README, "leaderboard": README, "parts": ROOT / "docs" / "design" / "start-and-scale.md"}
PICTURES = {"leaderboard": ("Mean ranks of all methods, with the critical difference", "figures/ranks.png")}


def put(mark: str, markdown: str, page: Path = README) -> None:
    """Replace what stands between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    start, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    before, _, rest = page.read_text().partition(start)
    page.write_text(before + start + markdown.rstrip() + "\n" + end + rest.partition(end)[2])


def measured(name: str) -> str:
    """The table of an experiment, with its picture if it has one; without results, the command that makes them."""
    table = RESULTS / f"{name}.md"
    if not table.exists():
        return f"Not computed yet: `pairmargin experiment run {name}`"
    words, picture = PICTURES.get(name, ("", ""))
    drawn = f"\n![{words}](results/{picture})\n" if picture else ""
    return table.read_text() + drawn


if __name__ == "__main__":
    for name, page in PLACES.items():
        put(name, measured(name), page)

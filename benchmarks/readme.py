"""Put tables that were measured between two marks of a page.

pairmargin experiment report && python benchmarks/readme.py    # Table 2 into the README, the parts into a note
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PLACES = {"table2": README, "parts": ROOT / "docs" / "design" / "start-and-scale.md"}


def put(mark: str, markdown: str, page: Path = README) -> None:
    """Replace what stands between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    start, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    before, _, rest = page.read_text().partition(start)
    page.write_text(before + start + markdown.rstrip() + "\n" + end + rest.partition(end)[2])


if __name__ == "__main__":
    for name, page in PLACES.items():
        put(name, (ROOT / "results" / f"{name}.md").read_text(), page)

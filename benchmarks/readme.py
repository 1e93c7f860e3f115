"""Put a table that a benchmark has made between two marks of the README."""

from __future__ import annotations

from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def put(mark: str, markdown: str) -> None:
    """Replace what stands between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    start, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    before, _, rest = README.read_text().partition(start)
    README.write_text(before + start + markdown.rstrip() + "\n" + end + rest.partition(end)[2])

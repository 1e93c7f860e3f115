"""How fast it is and how much memory it takes, against what a user would pick instead and against the floor.

    python benchmarks/bench.py [--quick] [--only predict …] [--environments .peers]

The floor is what nobody can do without: the bare matrix products, one pass over the scores, reading the file. Writes
results/bench.csv, and from it results/bench.md, the pictures of docs/speed.md and the table of the README. A run of
some parts replaces just their rows. --quick takes small sizes and writes nothing, unless --results names a folder.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "peers"))

from environments import FOLDER

import readme
from speed import digits, growth, large, pair_search, predict, processes, startup, steps
from speed.measuring import Options
from speed.pictures import draw
from speed.rows import Row, merged, methods_table, read, signed, table, write

PARTS: dict[str, tuple[str, Callable[[Options], list[Row]]]] = {
    "steps": ("One step", steps.measure),
    "large": ("A million rows from disk", large.measure),
    "pairs": ("A million pairs, a thousand clusters", pair_search.measure),
    "processes": ("Two processes", processes.measure),
    "digits": ("Digits: who gets nine of ten right, and how soon", digits.measure),
    "predict": ("A million predictions", predict.measure),
    "growth": ("Growth", growth.measure),
    "startup": ("Start-up", startup.measure),
}
PICTURES = {
    "large": "Seconds and memory of a fit from disk against the number of rows and of answers, both axes logarithmic",
    "digits": "Accuracy on digits against seconds for every method; pairmargin is highlighted",
    "asked": "Every figure as a share of what was asked of it",
}
BUSY = 0.5  # load above which a machine has something else to do
NOTHING = "Not measured yet: `make bench`\n"


def page(rows: Sequence[Row], pictures: Sequence[str]) -> str:
    """The tables of all parts with their pictures, in Markdown."""
    blocks = []
    if "asked" in pictures:
        blocks.append(_picture("asked"))
    for part, (title, work) in PARTS.items():
        found = [row for row in rows if row.part == part]
        if not found:
            continue
        words = (sys.modules[work.__module__].__doc__ or "").partition("\n\n")
        blocks += [f"## {title}", _prose(words[0]), _prose(words[2])]
        if part in pictures:
            blocks.append(_picture(part))
        if part == "digits":
            blocks.append(methods_table([row for row in found if row.unit != "ratio"]))
            found = [row for row in found if row.unit == "ratio"]
        blocks.append(table(row for row in found if not _is_point(row)))
        blocks.append(f"Measured on {found[0].date} with {found[0].cores} cores; {found[0].versions}.")
    return "\n\n".join(block for block in blocks if block) + "\n" if rows else NOTHING


def _prose(text: str) -> str:
    return " ".join(text.split())


def _picture(part: str) -> str:
    """The path is right from results/ as from docs/."""
    return f"![{PICTURES[part]}](../results/figures/bench-{part}.png)"


def _is_point(row: Row) -> bool:
    """Whether a row is only there for a fitted line."""
    return row.part in ("large", "growth") and " by " in row.what and row.unit != "exponent"


def report(results: Path, rows: Sequence[Row]) -> None:
    """Write everything that follows from the rows."""
    write(results / "bench.csv", rows)
    pictures = draw(rows, results / "figures")
    (results / "bench.md").write_text(page(rows, list(pictures)), encoding="utf-8")


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all is well")
    parser.add_argument("--environments", type=Path, default=FOLDER, help="of the peers (%(default)s)")
    parser.add_argument("--folder", type=Path, help="where large files may be written for a while")
    parser.add_argument("--results", type=Path, help="where the results go, if not to results/")
    parser.add_argument("--draw", action="store_true", help="measure nothing; write again what follows from the rows")
    asked = parser.parse_args()
    results = asked.results or (None if asked.quick else readme.RESULTS)
    options = Options(asked.quick, asked.environments, asked.folder)
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > BUSY:
        print(f"The load of this machine is {os.getloadavg()[0]:.1f}: figures of seconds will be too high", flush=True)
    failed = []
    for part in () if asked.draw else asked.only:
        began = time.perf_counter()
        try:
            new = signed(PARTS[part][1](options))
        except Exception:
            traceback.print_exc()
            failed.append(part)
            continue
        print(f"\n{PARTS[part][0]}, measured in {time.perf_counter() - began:.0f} s\n\n{table(new)}", flush=True)
        if results is not None:
            results.mkdir(parents=True, exist_ok=True)
            report(results, merged(read(results / "bench.csv"), new, list(PARTS)))
    if asked.draw and results is not None:
        report(results, read(results / "bench.csv"))
    if results == readme.RESULTS:
        readme.put("speed", table(row for row in read(results / "bench.csv") if row.asked))
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()

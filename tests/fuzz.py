"""Many more of the attempts of `any_data.py` than the tests make: ``python tests/fuzz.py --cases 20000 --seed 0``.

They come in rounds, each with its own seed, and every mistake is told once, with the seed of its round. ``--cases 100
--seed 17 --only CMMC --shrink`` is round 17 of CMMC again, and tells the smallest case that fails. What was found is
mended, and goes into a test.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from any_data import ATTEMPTS, outcomes
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from pairmargin.threads import threads_for

Attempt = Callable[[Callable[[Any], Any]], None]

ROUND = 100  # cases
SECONDS = 60  # after which an attempt counts as hanging


def one_round(attempt: Attempt, number: int) -> dict[str, str]:
    """So many cases; the mistakes by where they were made, each with how the program came there."""
    found: dict[str, str] = {}

    def noted(draw: Callable[[Any], Any]) -> None:
        try:
            attempt(draw)
        except Exception as error:
            if "hypothesis" in type(error).__module__:  # the end of a case that hypothesis does not want
                raise
            place = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in place if "pairmargin" in frame.filename] or list(place)
            where = f"{type(error).__name__}: {own[-1].filename.rpartition('/')[2]}:{own[-1].lineno}"
            found.setdefault(where, traceback.format_exc())

    _run(noted, number, [Phase.generate])
    return found


def _run(attempt: Attempt, number: int, phases: list[Phase]) -> None:
    @seed(number)
    @settings(max_examples=ROUND, deadline=None, database=None, phases=phases, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def cases(data: st.DataObject) -> None:
        with _in_time():
            attempt(data.draw)

    with threads_for(1):
        cases()


@contextmanager
def _in_time() -> Iterator[None]:
    def give_up(*_: Any) -> None:
        raise TimeoutError(f"still at it after {SECONDS} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--only", choices=list(ATTEMPTS), action="append", help="what to try; all if not given")
    parser.add_argument("--shrink", action="store_true", help="stop at the first mistake, with its smallest case")
    asked = parser.parse_args()
    names = asked.only or list(ATTEMPTS)
    n_rounds, mistakes = -(-asked.cases // (ROUND * len(names))), dict[str, str]()
    for number in range(asked.seed, asked.seed + n_rounds):
        for name in names:
            if asked.shrink:
                _run(ATTEMPTS[name], number, [Phase.generate, Phase.shrink])
                continue
            started = time.perf_counter()
            found = one_round(ATTEMPTS[name], number)
            sys.stdout.write(f"{name}, seed {number}: {time.perf_counter() - started:.0f} s\n")
            for where in found.keys() - mistakes.keys():
                mistakes[where] = found[where]
                sys.stdout.write(f"\n{where}\n{found[where]}\n")
            sys.stdout.flush()
    told = ", ".join(f"{count} {name}" for name, count in outcomes.most_common())
    sys.stdout.write(f"{n_rounds * len(names) * ROUND} cases, {len(mistakes)} mistakes; outcomes: {told}\n")
    return int(bool(mistakes))


if __name__ == "__main__":
    sys.exit(main())

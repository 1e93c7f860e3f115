"""What the paper says in words about its results, and whether our figures bear it out.

The border of a claim is 0 where the paper says "better", and `SLIGHT` where it says "no advantage" or "competitive": no
number of draws can show that two methods are equal, but enough of them show that they differ by less than this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from .specs import EXPERIMENTS, METHODS
from .tables import DATASETS
from .verdicts import ACCURACY, ARI, AUC, Draws, Part, Score, Verdict, all_hold, most_hold

RIVALS = ("xing", "itml", "kissme", "cmmc")  # the four of the paper
CLUSTERING = (ACCURACY, ARI)
SLIGHT = 0.02  # of accuracy, ARI or AUC: less than this is no advantage worth the name


class Subject(NamedTuple):
    """One of our two versions of "the method": its key, and those of the same without one of its parts."""

    method: str
    without_free: str  # the transductive term
    without_layers: str


SUBJECTS = (
    Subject("paper", "paper-no-free", "paper-linear"),
    Subject("pairmargin", "pairmargin-no-free", "pairmargin-linear"),
)


Measure = Callable[[Draws, Subject], list[Part]]
Choice = Callable[[Sequence[int]], Sequence[int]]  # some of the numbers of pairs


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, in our words, and how it is measured."""

    text: str
    place: str
    measure: Measure
    rule: Callable[[Sequence[Verdict]], Verdict] = all_hold


@dataclass(frozen=True)
class Finding:
    """A claim judged for one version of the method."""

    claim: Claim
    subject: Subject
    parts: Sequence[Part]

    @property
    def verdict(self) -> Verdict:
        return self.claim.rule([part.verdict for part in self.parts])


def judge(frame: pd.DataFrame) -> list[Finding]:
    """Every claim of the paper, judged for the paper's settings and for our default.

    Parameters
    ----------
    frame : DataFrame
        One row a cell with balanced answers, as in the paper.

    Returns
    -------
    findings : list of Finding
        In the order of `CLAIMS`, one for each of `SUBJECTS`.

    References
    ----------
    Gang Chen (2015). Deep Transductive Semi-supervised Maximum Margin Clustering. Section 4.
    """
    draws = Draws(frame)
    return [Finding(claim, subject, claim.measure(draws, subject)) for claim in CLAIMS for subject in SUBJECTS]


# Differences, one a draw


def lead(draws: Draws, score: Score, dataset: str, n_pairs: int, method: str) -> tuple[str, pd.Series[float]]:
    """The rival with the best mean, and how far the method is ahead of it; nothing unless all rivals are there."""
    rivals = {METHODS[rival].label: draws(score, dataset, n_pairs, rival) for rival in RIVALS}
    if any(values.empty for values in rivals.values()):
        return "the best rival", pd.Series(dtype=float)
    best = max(rivals, key=lambda rival: float(rivals[rival].mean()))
    return best, draws(score, dataset, n_pairs, method) - rivals[best]


def mean_over(series: Sequence[pd.Series[float]]) -> pd.Series[float]:
    """The mean of several series draw by draw, of the draws that all of them have."""
    return pd.concat(series, axis=1).mean(axis=1, skipna=False) if series else pd.Series(dtype=float)


def mean_difference(
    draws: Draws, score: Score, dataset: str, counts: Sequence[int], one: str, other: str
) -> pd.Series[float]:
    """How far one method is ahead of another on the mean over several numbers of pairs."""
    return mean_over([draws(score, dataset, n, one) - draws(score, dataset, n, other) for n in counts])


def slope(values: pd.DataFrame) -> pd.Series[float]:
    """What ten times as many pairs bring, draw by draw: the least-squares slope over log10 of the number of pairs."""
    x = np.log10(values.columns.to_numpy(float))
    x = x - x.mean()
    rises: pd.Series[float] = (values * x).sum(axis=1, skipna=False) / (x @ x)
    return rises


# Measures: what a claim is about → its parts


def leads(
    experiment: str, datasets: Sequence[str], scores: Sequence[Score], border: float = 0.0, below: bool = False
) -> Measure:
    """How far the method is ahead of the best rival, everywhere in an experiment."""

    def measure(draws: Draws, subject: Subject) -> list[Part]:
        places = _places(experiment, datasets)
        tells_pairs = len(places) > len(datasets)
        parts = []
        for score, (dataset, n_pairs) in product(scores, places):
            rival, differences = lead(draws, score, dataset, n_pairs, subject.method)
            where = f"{n_pairs:,} pairs" if tells_pairs else DATASETS[dataset]
            parts.append(Part(f"{where}, over {rival}", score, differences, border, below))
        return parts

    return measure


def _places(experiment: str, datasets: Sequence[str]) -> list[tuple[str, int]]:
    """Every data set with every number of pairs that an experiment has for it."""
    return [(dataset, n) for dataset in datasets for n in EXPERIMENTS[experiment].n_pairs[dataset]]


def lead_grows_with_classes(draws: Draws, subject: Subject) -> list[Part]:
    """The mean lead on the UCI sets with six or more classes, less the mean lead on those with two or three."""

    def mean_lead(score: Score, datasets: Sequence[str]) -> pd.Series[float]:
        return mean_over([lead(draws, score, *place, subject.method)[1] for place in _places("table2", datasets)])

    return [
        Part(
            "lead on Glass and Segmentation less lead on Wdbc, Wine and Sonar",
            score,
            mean_lead(score, ("glass", "segmentation")) - mean_lead(score, ("wdbc", "wine", "sonar")),
        )
        for score in CLUSTERING
    ]


def rises_with_pairs(draws: Draws, subject: Subject) -> list[Part]:
    """What ten times as many pairs bring on MNIST."""
    counts = EXPERIMENTS["fig2"].n_pairs["mnist"]
    values = pd.concat({n: draws(ACCURACY, "mnist", n, subject.method) for n in counts}, axis=1)
    return [Part("ten times as many pairs", ACCURACY, slope(values))]


def free_gains(experiment: str, dataset: str, choose: Choice, below: bool = False) -> Measure:
    """What the transductive term brings, on the mean over some of the numbers of pairs."""

    def measure(draws: Draws, subject: Subject) -> list[Part]:
        counts = choose(EXPERIMENTS[experiment].n_pairs[dataset])
        where = f"{DATASETS[dataset]}, {_range(counts)} pairs"
        gains = [
            (score, mean_difference(draws, score, dataset, counts, subject.method, subject.without_free))
            for score in CLUSTERING
        ]
        border = SLIGHT if below else 0.0
        return [Part(where, score, gain, border, below) for score, gain in gains]

    return measure


def gains_more_on_mnist(draws: Draws, subject: Subject) -> list[Part]:
    """What the transductive term brings on MNIST, less what it brings on the two COIL sets."""

    def gain(score: Score, experiment: str, dataset: str) -> pd.Series[float]:
        counts = EXPERIMENTS[experiment].n_pairs[dataset]
        return mean_difference(draws, score, dataset, counts, subject.method, subject.without_free)

    return [
        Part(
            f"gain on MNIST less gain on {DATASETS[coil]}",
            score,
            gain(score, "fig3", "mnist") - gain(score, "fig4", coil),
        )
        for score in CLUSTERING
        for coil in ("coil20", "coil100")
    ]


def steadier_than_rivals(draws: Draws, subject: Subject) -> list[Part]:
    """How much farther from its own mean a draw of each rival lies than a draw of the method, on COIL-100."""

    def deviation(method: str) -> pd.Series[float]:
        counts = EXPERIMENTS["fig5"].n_pairs["coil100"]
        values = [draws(ACCURACY, "coil100", n, method) for n in counts]
        return mean_over([(value - value.mean()).abs() for value in values])

    own = deviation(subject.method)
    return [
        Part(f"deviation of {METHODS[rival].label} less ours", ACCURACY, deviation(rival) - own) for rival in RIVALS
    ]


def gain_is_from_depth(draws: Draws, subject: Subject) -> list[Part]:
    """On COIL-100, what the hidden layer brings, and how much more that is than what the transductive term brings."""
    counts = EXPERIMENTS["fig5"].n_pairs["coil100"]
    depth = mean_difference(draws, ACCURACY, "coil100", counts, subject.method, subject.without_layers)
    free = mean_difference(draws, ACCURACY, "coil100", counts, subject.method, subject.without_free)
    return [
        Part("gain from the hidden layer", ACCURACY, depth),
        Part("that gain less the gain from the transductive term", ACCURACY, depth - free),
    ]


def _range(counts: Sequence[int]) -> str:
    if not counts:
        return "no"
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


def fewest(counts: Sequence[int]) -> Sequence[int]:
    """The smallest number of pairs."""
    return counts[:1]


def between_ends(counts: Sequence[int]) -> Sequence[int]:
    """All but the smallest and the largest number of pairs."""
    return counts[1:-1]


def largest(counts: Sequence[int]) -> Sequence[int]:
    """The largest number of pairs."""
    return counts[-1:]


def every(counts: Sequence[int]) -> Sequence[int]:
    """All the numbers of pairs."""
    return counts


def from_400_to_2000(counts: Sequence[int]) -> Sequence[int]:
    """The range that the paper names for COIL-20."""
    return [n for n in counts if 400 <= n <= 2000]


def above_2000(counts: Sequence[int]) -> Sequence[int]:
    """Beyond that range."""
    return [n for n in counts if n > 2000]


UCI_WON, UCI_EXCEPTED = ("wine", "sonar", "segmentation"), ("glass", "wdbc")

CLAIMS = (
    Claim(
        "Better than the four other methods on Wine, Sonar and Segmentation, in accuracy and Rand index.",
        "§4.2 UCI, Table 2",
        leads("table2", UCI_WON, CLUSTERING),
    ),
    Claim(
        "Glass and Wdbc are the exceptions: no clear lead there.",
        "§4.2 UCI, Table 2",
        leads("table2", UCI_EXCEPTED, CLUSTERING, SLIGHT, below=True),
    ),
    Claim("The lead is larger on data with more classes.", "§4.2 UCI", lead_grows_with_classes),
    Claim(
        "Remarkably better on Reuters, in accuracy and in Rand index.",
        "§4.2 Reuters, Table 2",
        leads("table2", ("reuters",), CLUSTERING),
    ),
    Claim(
        "Tells held-out pairs apart as well as the others or better, except on Wdbc and Glass.",
        "§4.2 UCI, Fig. 1",
        leads("fig1", UCI_WON, (AUC,), -SLIGHT),
    ),
    Claim(
        "Tells held-out pairs of Reuters apart remarkably better than the others.",
        "§4.2 Reuters, Fig. 1",
        leads("fig1", ("reuters",), (AUC,)),
    ),
    Claim("More pairs give a higher accuracy.", "§4.2 MNIST, Fig. 2", rises_with_pairs),
    Claim(
        "Ahead of the others for most numbers of pairs.",
        "§4.2 MNIST, Fig. 2",
        leads("fig2", ("mnist",), CLUSTERING),
        most_hold,
    ),
    Claim(
        "The transductive term is no advantage with few pairs.",
        "§4.2 MNIST, Fig. 3",
        free_gains("fig3", "mnist", fewest, below=True),
    ),
    Claim(
        "The transductive term helps with more pairs.",
        "§4.2 MNIST, Fig. 3",
        free_gains("fig3", "mnist", between_ends),
    ),
    Claim(
        "The transductive term is not needed with very many pairs.",
        "§4.2 MNIST, Fig. 3",
        free_gains("fig3", "mnist", largest, below=True),
    ),
    Claim(
        "Summed up, the transductive term is remarkably helpful.",
        "§4.2 MNIST, Fig. 3",
        free_gains("fig3", "mnist", every),
    ),
    Claim(
        "The transductive term helps between 400 and 2000 pairs with 20 classes.",
        "§4.2 COIL-20, Fig. 4 a, b",
        free_gains("fig4", "coil20", from_400_to_2000),
    ),
    Claim(
        "Beyond 2000 pairs it does not help much with 20 classes.",
        "§4.2 COIL-20, Fig. 4 a, b",
        free_gains("fig4", "coil20", above_2000, below=True),
    ),
    Claim(
        "The transductive term does not help much with 100 classes.",
        "§4.2 COIL-100, Fig. 4 c, d",
        free_gains("fig4", "coil100", every, below=True),
    ),
    Claim(
        "The transductive term brings more on MNIST than on COIL.",
        "§4.2 COIL, Figs. 3 and 4",
        gains_more_on_mnist,
    ),
    Claim(
        "Better than the others on COIL-100 whatever the number of pairs.",
        "§4.2 COIL, Fig. 5",
        leads("fig5", ("coil100",), CLUSTERING),
    ),
    Claim("Steadier than the others on COIL-100.", "§4.2 COIL, Fig. 5", steadier_than_rivals),
    Claim(
        "On COIL-100 the gain comes from the deep network rather than from the transductive term.",
        "§4.2 COIL, Figs. 4 and 5",
        gain_is_from_depth,
    ),
)

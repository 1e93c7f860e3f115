"""The page in words: each section from what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..looks import parts_of
from ..query.landmarks import open_questions
from ..readers.parts import counted
from ..report import Chart, Section, Series
from .blocks import DOUBTFUL, SURE, Crossing, PairCard, PairCards, Profile, Profiles, Size, Sizes
from .faces import Face, face, shortened
from .findings import Array, Findings
from .traits import Trait

FACES = 240  # typical members on the whole page, about
TYPICAL = {"image": 24, "text": 4, "table": 6, "vector": 6}  # members of a cluster that are shown, if it is one of few
LEAST_SURE = {"image": 8, "text": 2, "table": 3, "vector": 3}
CARDS = 30  # clusters that are shown in full
LINES = 60  # clusters in the chart of sizes
BROKEN, SUSPECTS = 24, 6  # answers that are shown: those not kept, and the most suspicious of the others
QUESTIONS = 12
CANDIDATES = 2000  # items of which the questions are chosen
LANDMARKS = 10  # members nearest to the centre, the surest of which stands for its cluster
CELLS = 5  # of a row in a pair
CROSSED = 20  # labels, and clusters, in the table of both

Traits = Mapping[int, Sequence[Trait]]


def gists_of(traits: Traits, most: int = 3) -> dict[int, str]:
    """What sets each cluster apart, in a few words."""
    return {k: ", ".join(shortened(trait.gist, 30) for trait in own[:most]) for k, own in traits.items()}


def telling_columns(traits: Traits) -> list[str]:
    """The columns of a table that set clusters apart, the strongest first."""
    strength: dict[str, float] = {}
    for trait in (trait for own in traits.values() for trait in own if trait.column):
        strength[trait.column] = max(strength.get(trait.column, 0.0), abs(trait.effect))
    return sorted(strength, key=lambda column: -strength[column])


# The clusters


def sizes_section(findings: Findings, gists: Mapping[int, str]) -> Section:
    """How large the clusters are, and how sure the model is of them."""
    shown = list(findings.sizes)[:LINES]
    left = list(findings.sizes.values())[LINES:]
    rest = f"… and {counted(len(left), 'smaller cluster')} with {sum(left):,} {findings.noun}s" if left else ""
    lines = [_size(findings, cluster, gists.get(cluster, "")) for cluster in shown]
    noun, sure, doubtful = findings.noun, (findings.confidence >= SURE).mean(), (findings.confidence < DOUBTFUL).mean()
    text = (
        f"The model is at least {percent(SURE)} sure of {percent(sure, whole=True)} of the {noun}s, and less than "
        f"{percent(DOUBTFUL)} sure of {percent(doubtful, whole=True) if doubtful else 'none'}. Confidence is the "
        f"chance, in the eyes of the model, that a {noun} belongs to its cluster; here is the median."
    )
    return Section("The clusters", [text], [Sizes(lines, findings.noun, findings.truth is not None, rest)])


def _size(findings: Findings, cluster: int, gist: str) -> Size:
    confidence = findings.confidence[findings.members(cluster)]
    sure, doubtful = int((confidence >= SURE).sum()), int((confidence < DOUBTFUL).sum())
    counts = sure, len(confidence) - sure - doubtful, doubtful
    share, median = percent(len(confidence) / len(findings), whole=True), percent(float(np.median(confidence)))
    return Size(cluster, gist, counts, share, median, _most_frequent(findings, cluster))


def _most_frequent(findings: Findings, cluster: int) -> tuple[str, str]:
    """The label that most members have, and its share of those that have one."""
    truth = findings.truth
    labels = [] if truth is None else [label for label in truth[findings.members(cluster)] if label is not None]
    if not labels:
        return "", ""
    names, counts = np.unique(labels, return_counts=True)
    return shortened(str(names[counts.argmax()]), 24), percent(counts.max() / len(labels), whole=True)


def labels_section(findings: Findings, scores: Mapping[str, float]) -> Section | None:
    """Clusters against labels, if there are any."""
    if findings.truth is None:
        return None
    known = np.array([label is not None for label in findings.truth])
    names, inverse = np.unique(findings.truth[known].astype(str), return_inverse=True)
    clusters, cluster = np.sort(list(findings.sizes)[:CROSSED]), findings.cluster[known]
    largest = np.sort(np.argsort(-np.bincount(inverse), kind="stable")[:CROSSED])
    counts = np.array([np.bincount(cluster[inverse == k], minlength=clusters[-1] + 1)[clusters] for k in largest])
    order = np.argsort(counts.argmax(1), kind="stable")  # so that the large numbers go down from left to right
    left = counted(len(names) - CROSSED, "smaller label") if len(names) > CROSSED else ""
    text = [
        f"The labels were not learned from; they only score. Each cluster is matched with one label, and "
        f"{100 * scores['accuracy']:.1f}\N{NO-BREAK SPACE}% of the {findings.noun}s are then in the right one. The "
        f"adjusted Rand index is {scores['adjusted_rand']:.3f}: 0 is chance, 1 is perfect.",
        f"Not shown: {left}." if left else "",
    ]
    shown = [shortened(str(names[k]), 40) for k in largest[order]]
    block = Crossing(shown, clusters.tolist(), counts[order].tolist())
    return Section("Against the labels", [paragraph for paragraph in text if paragraph], [block])


def profiles_section(findings: Findings, traits: Traits) -> Section:
    """What is typical of each cluster."""
    shown = list(findings.sizes)[:CARDS]
    kind, noun = findings.items.kind, findings.noun
    n_doubtful = LEAST_SURE[kind]
    n_typical = int(np.clip(FACES // len(shown), n_doubtful, TYPICAL[kind])) // n_doubtful * n_doubtful  # in full lines
    profiles = [_profile(findings, cluster, traits[cluster], n_typical, n_doubtful) for cluster in shown]
    text = [
        f"First the {noun}s that are nearest to the centre of their cluster, then those that the model is least sure "
        "of, with the chance that they belong there."
    ]
    if len(findings.sizes) > 1:
        text += {
            "table": ["Bars: how far the mean is off that of all other rows, in standard deviations."],
            "vector": ["Bars: how far the mean is off that of all other vectors, in standard deviations."],
            "text": ["Words: the share of the cluster’s texts they are in, and of all others."],
        }.get(kind, [])
    if len(findings.sizes) > CARDS:
        text.append(f"The {CARDS} largest clusters of {len(findings.sizes)}.")
    return Section("What is typical of each", [" ".join(text)], [Profiles(profiles, kind)])


def _profile(findings: Findings, cluster: int, traits: Sequence[Trait], n_typical: int, n_doubtful: int) -> Profile:
    size = findings.sizes[cluster]
    facts = f"{counted(size, findings.noun)}, {percent(size / len(findings), whole=True)} of all"
    label, share = _most_frequent(findings, cluster)
    if label:
        facts += f"; {share} are labelled {label}"
    columns = [trait.column for trait in traits[:4] if trait.column]
    typical = findings.typical(cluster, n_typical)
    doubtful = findings.doubtful(cluster, n_typical + n_doubtful)
    doubtful = doubtful[~np.isin(doubtful, typical)]

    def shown(rows: Array) -> list[tuple[Face, str]]:
        return [(face(findings.items, int(row), columns), percent(findings.confidence[row])) for row in rows]

    return Profile(cluster, facts, traits, columns, shown(typical), shown(doubtful[:n_doubtful]))


def percent(share: float, *, whole: bool = False) -> str:
    """A share in percent; none and all are only said of what was counted on the whole, never of chances."""
    if (whole and share in (0, 1)) or 0.01 <= share <= 0.99:
        return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"
    return ("> 99 %" if share > 0.5 else "< 1 %").replace(" ", "\N{NO-BREAK SPACE}")


# The answers


def answers_section(findings: Findings, columns: Sequence[str]) -> Section:
    """Which answers are kept, and those that look like mistakes."""
    pairs, kept, m = findings.pairs, findings.kept, len(findings.pairs)
    if not m:
        return Section("The answers", ["There were none: the clusters come from the data alone."], [])
    broken, held = (findings.suspicion[these[findings.suspicion]] for these in (~kept, kept))
    suspects = held[: min(SUSPECTS, m // 10)] if findings.is_judged else held[:0]
    same, different = (f"{int((kept & kind).sum()):,} of {kind.sum():,}" for kind in (pairs.same, ~pairs.same))
    text = [f"The clusters agree with {same} “same” and with {different} “different”."]
    if findings.is_judged and findings.model.error_rate_:
        text.append(f"About {percent(findings.model.error_rate_)} of the answers seem to be mistakes.")
    if len(broken):
        text.append(f"Not kept: {counted(len(broken), 'answer')}, because too much else speaks against it.")
    if len(broken) > BROKEN:
        text.append(f"Here are {BROKEN} of them.")
    if len(suspects):
        then = "Then come" if len(broken) else "Here are"
        text.append(
            f"{then} the {len(suspects)} that are kept but fit the others least: if there are mistakes, they are "
            "likely among these."
        )
    cards = [_answer(findings, k, columns) for k in (*broken[:BROKEN].tolist(), *suspects.tolist())]
    return Section("The answers", [" ".join(text)], [PairCards(cards, findings.items.kind)] if cards else [])


def _answer(findings: Findings, place: int, columns: Sequence[str]) -> PairCard:
    i, j = findings.pairs.index[place].tolist()
    one, other = findings.cluster[[i, j]].tolist()
    broken, trust = not findings.kept[place], 1.0
    note = f"{'not kept' if broken else 'kept'}: {f'both in {one}' if one == other else f'in {one} and {other}'}"
    if findings.is_judged:
        trust = float(findings.model.answer_trust_[place])
    if trust < 1:
        note += f"; right with a chance of {percent(trust)}"
    left, right = (face(findings.items, row, columns[:CELLS]) for row in (i, j))
    return PairCard(left, right, bool(findings.pairs.same[place]), [note], broken)


def questions_section(findings: Findings, columns: Sequence[str]) -> Section:
    """Pairs that are worth asking about."""
    least_sure = np.argsort(findings.confidence, kind="stable")[:CANDIDATES]
    central = [findings.typical(cluster, LANDMARKS) for cluster in findings.sizes]
    landmarks = np.array([rows[findings.confidence[rows].argmax()] for rows in central])
    index, chance = open_questions(
        least_sure,
        findings.chances(least_sure),
        landmarks,
        findings.chances(landmarks),
        findings.pairs,
        QUESTIONS,
    )
    cards = [_question(findings, pair, float(p), columns) for pair, p in zip(index, chance, strict=True)]
    text = (
        f"These answers would teach the model most: one of the {findings.noun}s that it is least sure of, and "
        "one that is typical of a cluster. None of them follows from an answer that is already there."
    )
    if not cards:
        text = "There is nothing left that the model is unsure of, or that does not follow from the answers."
    return Section("Worth asking next", [text], [PairCards(cards, findings.items.kind)] if cards else [])


def _question(findings: Findings, pair: Array, chance: float, columns: Sequence[str]) -> PairCard:
    left, right = (face(findings.items, int(row), columns[:CELLS]) for row in pair)
    note = f"{percent(chance)} the same; the second is typical of cluster {findings.cluster[pair[1]]}"
    return PairCard(left, right, None, [note])


# The training


def objective_section(findings: Findings) -> Section | None:
    """What training has brought down."""
    history: Sequence[Mapping[str, Any]] = getattr(findings.model, "history_", ())
    if len(history) < 2:
        return None
    text = (
        "Training lowers one number, the objective: the line on top, and the sum of the bands under it. An answer is "
        "broken as long as the model does not keep it with a margin of 1."
    )
    return Section("How it learned", [text], [objective_chart("The objective", history)], beside=True)


def objective_chart(
    title: str, history: Sequence[Mapping[str, Any]], x_max: float | None = None, y_max: float | None = None
) -> Chart:
    """The objective and its parts, iteration by iteration."""
    x = np.array([row["iteration"] for row in history])
    bands = [
        Series(label, x, np.array([row[part] for row in history]), ink, band=True)
        for part, (label, ink) in parts_of(history).items()
    ]
    total = Series("objective", x, np.array([row["objective"] for row in history]))
    caption = f"From {total.y[0]:.3g} to {total.y[-1]:.3g} in {history[-1]['iteration']} iterations."
    x_max, y_max = x_max or float(x.max()) or 1.0, y_max or float(total.y.max()) or 1.0
    return Chart(title, caption, "iteration", "objective", [*bands, total], x_max, y_max)

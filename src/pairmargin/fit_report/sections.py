"""The page in words: each section from what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..looks import parts_of
from ..query import open_questions
from ..report import Block, Chart, Section, Series
from .blocks import DOUBTFUL, SURE, Crossing, PairCard, PairCards, Profile, Profiles, Size, Sizes
from .faces import face, shortened
from .findings import Array, Findings
from .traits import Trait

FACES = 360  # most faces of members on the whole page
TYPICAL = {"image": (6, 24), "text": (2, 4), "table": (3, 6), "vector": (3, 6)}  # faces of a cluster: fewest, most
CARDS = 30  # clusters that are shown in full
LINES = 60  # clusters in the chart of sizes
BROKEN, DOUBTED = 24, 6  # answers that are shown: those not kept, and those that are kept but look wrong
QUESTIONS = 12
CANDIDATES = 2000  # items of which the questions are chosen
CELLS = 5  # of a row in a pair
CROSSED = 20  # labels, and clusters, in the table of both

Traits = Mapping[int, Sequence[Trait]]


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
    rest = f"… and {count(len(left), 'smaller cluster')} with {sum(left):,} {findings.noun}s" if left else ""
    lines = [_size(findings, cluster, gists.get(cluster, "")) for cluster in shown]
    sure, doubtful = (findings.confidence >= SURE).mean(), (findings.confidence < DOUBTFUL).mean()
    text = (
        f"The model is at least {SURE:.0%} sure of {sure:.0%} of the {findings.noun}s, and less than {DOUBTFUL:.0%} "
        f"sure of {doubtful:.0%}. Confidence is the chance of the cluster that {_article(findings.noun)} was put in; "
        "the answers say how much of it to believe."
    )
    return Section("The clusters", [text], [Sizes(lines, findings.noun, findings.truth is not None, rest)])


def _article(noun: str) -> str:
    return f"a {noun}"


def _size(findings: Findings, cluster: int, gist: str) -> Size:
    confidence = findings.confidence[findings.members(cluster)]
    sure, doubtful = int((confidence >= SURE).sum()), int((confidence < DOUBTFUL).sum())
    counts = sure, len(confidence) - sure - doubtful, doubtful
    share = len(confidence) / len(findings)
    return Size(cluster, gist, counts, share, float(np.median(confidence)), _most_frequent(findings, cluster))


def _most_frequent(findings: Findings, cluster: int) -> str:
    """The label that most members have, with its share of those that have one."""
    if findings.truth is None:
        return ""
    labels = [label for label in findings.truth[findings.members(cluster)] if label is not None]
    names, counts = np.unique(labels, return_counts=True) if labels else ([], np.zeros(1))
    return f"{shortened(str(names[counts.argmax()]), 24)} {counts.max() / len(labels):.0%}" if labels else ""


def labels_section(findings: Findings, scores: Mapping[str, float]) -> Section | None:
    """Clusters against labels, if there are any."""
    if findings.truth is None:
        return None
    known = np.array([label is not None for label in findings.truth])
    names, inverse = np.unique(findings.truth[known].astype(str), return_inverse=True)
    clusters = sorted(list(findings.sizes)[:CROSSED])
    counts = np.zeros((len(names), max(findings.sizes) + 1), dtype=int)
    np.add.at(counts, (inverse, findings.cluster[known]), 1)
    largest = np.sort(np.argsort(-counts.sum(1), kind="stable")[:CROSSED])
    order = largest[np.argsort(counts[np.ix_(largest, clusters)].argmax(1), kind="stable")]
    left = count(len(names) - CROSSED, "smaller label") if len(names) > CROSSED else ""
    text = [
        f"The labels were not learned from; they only score. Each cluster is matched with one label, and "
        f"{scores['accuracy']:.1%} of the {findings.noun}s are then in the right one. The adjusted Rand index is "
        f"{scores['adjusted_rand']:.3f}: 0 is chance, 1 is perfect.",
        f"Not shown: {left}." if left else "",
    ]
    block = Crossing([shortened(str(names[k]), 40) for k in order], clusters, counts[np.ix_(order, clusters)].tolist())
    return Section("Against the labels", [paragraph for paragraph in text if paragraph], [block])


def profiles_section(findings: Findings, traits: Traits) -> Section:
    """What is typical of each cluster."""
    shown = list(findings.sizes)[:CARDS]
    kind, noun = findings.items.kind, findings.noun
    fewest, most = TYPICAL[kind]
    n_typical = int(np.clip(FACES * 2 // 3 // len(shown), fewest, most))
    profiles = [_profile(findings, cluster, traits[cluster], n_typical, max(n_typical // 2, 1)) for cluster in shown]
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
    facts = f"{count(size, findings.noun)}, {size / len(findings):.0%}"
    if label := _most_frequent(findings, cluster):
        facts += f"; {label}"
    columns = [trait.column for trait in traits[:4] if trait.column]
    typical = findings.typical(cluster, n_typical)
    doubtful = np.array([row for row in findings.doubtful(cluster, n_typical + n_doubtful) if row not in set(typical)])
    groups = (
        [(face(findings.items, int(row), columns), percent(findings.confidence[row])) for row in rows]
        for rows in (typical, doubtful[:n_doubtful])
    )
    return Profile(cluster, facts, traits, columns, *groups)


def percent(chance: float) -> str:
    """A chance in whole percent that never claims to be certain."""
    return "> 99 %" if chance > 0.99 else "< 1 %" if chance < 0.01 else f"{chance:.0%}".replace("%", " %")


# The answers


def answers_section(findings: Findings, columns: Sequence[str]) -> Section:
    """Which answers are kept, those first that look like mistakes."""
    m, pairs, kept = len(findings.pairs), findings.pairs, findings.kept
    if not m:
        return Section("The answers", ["There were none: the clusters come from the data alone."], [])
    broken = [int(k) for k in findings.suspicion if not kept[k]]
    doubted = [int(k) for k in findings.suspicion if kept[k] and _is_doubted(findings, int(k))]
    same, different = (f"{int((kept & kind).sum()):,} of {kind.sum():,}" for kind in (pairs.same, ~pairs.same))
    text = [f"Kept are {same} “same” and {different} “different”."]
    if broken:
        text.append(
            f"{count(len(broken), 'answer')} {'is' if len(broken) == 1 else 'are'} not kept: the two items say otherwise, "
            "by what was learned from all answers. Look at these again, the most suspicious first."
        )
    if len(broken) > BROKEN:
        text.append(f"Here are {BROKEN} of them.")
    if findings.model.error_rate_:
        text.append(f"About {findings.model.error_rate_:.0%} of the answers seem to be mistakes.")
    if doubted:
        text.append(f"{count(len(doubted), 'answer')} {'is' if len(doubted) == 1 else 'are'} kept but doubtful.")
    shown = broken[:BROKEN] + doubted[:DOUBTED]
    cards = [_answer(findings, place, columns) for place in shown]
    blocks: list[Block] = [PairCards(cards, findings.items.kind)] if cards else []
    return Section("The answers", [" ".join(text)], blocks)


def _is_doubted(findings: Findings, place: int) -> bool:
    return findings.trust is not None and bool(findings.trust[place] < 0.5)


def _answer(findings: Findings, place: int, columns: Sequence[str]) -> PairCard:
    i, j = findings.pairs.index[place].tolist()
    one, other = findings.cluster[[i, j]].tolist()
    notes = [f"both in cluster {one}" if one == other else f"in clusters {one} and {other}"]
    if not findings.kept[place]:
        notes[0] = f"not kept: {notes[0]}"
    if findings.trust is not None and findings.trust[place] < 1:
        notes.append(f"right with a chance of {percent(findings.trust[place])}")
    faces = (face(findings.items, row, columns[:CELLS]) for row in (i, j))
    return PairCard(*faces, bool(findings.pairs.same[place]), notes, _is_doubted(findings, place))


def questions_section(findings: Findings, columns: Sequence[str]) -> Section:
    """Pairs that are worth asking about."""
    least_sure = np.argsort(findings.confidence, kind="stable")[:CANDIDATES]
    landmarks = np.array([findings.typical(cluster, 1)[0] for cluster in findings.sizes])
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
        f"These answers would teach the model most: on the left {_article(findings.noun)} that it cannot place, on the "
        f"right one that is typical of a cluster. None of them follows from an answer that is already there."
    )
    if not cards:
        text = "There is nothing left that the model is unsure of, or that does not follow from the answers."
    return Section("Worth asking next", [text], [PairCards(cards, findings.items.kind)] if cards else [])


def _question(findings: Findings, pair: Array, chance: float, columns: Sequence[str]) -> PairCard:
    left, right = (face(findings.items, int(row), columns[:CELLS]) for row in pair)
    note = f"the same with a chance of {percent(chance)}; right: typical of cluster {findings.cluster[pair[1]]}"
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

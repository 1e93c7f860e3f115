"""Where the rows and groups of a graph of answers stand; there is no chance in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InvalidPairsError
from ..pairs import Pairs
from ..validation import check_rules, integer

Array = NDArray[Any]

N_SPOTS = 3000  # tried for every part of a graph
MARGIN = 0.9  # between two parts; the radius of a dot is 0.4
PULL = np.array([0.35, 0.6])  # towards the middle, which bends long chains: wider than high, as pictures are
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


def largest_parts(pairs: Pairs, max_groups: int) -> tuple[Pairs, int, int]:
    """The answers in the largest connected parts; how many groups there are, and how many are left."""
    check_rules({"max_groups": integer(1)}, {"max_groups": max_groups})
    group, links = _groups(pairs)
    part = _parts(int(group.max()) + 1, links)
    n_answers = np.bincount(part[group[np.searchsorted(pairs.points, pairs.index[:, 0])]])
    kept = np.zeros(len(part), dtype=bool)
    kept[np.lexsort((np.arange(len(part)), part, -n_answers[part]))[:max_groups]] = True  # part by part
    shown = pairs[kept[group[np.searchsorted(pairs.points, pairs.index)]].all(axis=1)]
    if not len(shown):
        raise InvalidPairsError(f"max_groups={max_groups} leaves no answer to draw; ask for more groups")
    return shown, len(part), int(_groups(shown)[0].max()) + 1


def _groups(pairs: Pairs) -> tuple[Array, Array]:
    """The group of each of ``pairs.points``, numbered from 0, and the groups that each "different" answer links."""
    group = np.unique(pairs.components(int(pairs.points[-1]) + 1)[pairs.points], return_inverse=True)[1]
    links = group[np.searchsorted(pairs.points, pairs.cannot_link)].reshape(-1, 2)
    return group, links[links[:, 0] != links[:, 1]]


def _parts(n_groups: int, links: Array) -> Array:
    """The connected part that each group is in: answers of any kind lead from one of its rows to every other."""
    return Pairs(links, np.ones(len(links), dtype=bool)).components(n_groups)


def laid_out(pairs: Pairs) -> tuple[Array, Array]:
    """Where every row stands, and the discs of groups of two and more: groups by springs, rows inside on a spiral."""
    group, links = _groups(pairs)
    size = np.bincount(group)
    radius = np.where(size == 1, 0.5, 0.55 + 0.75 * np.sqrt(size - 1))
    part = _parts(len(size), links)
    drawn: list[tuple[Array, Array]] = []  # the groups of a part, and their middles
    for k in np.argsort(-np.bincount(part, weights=radius**2), kind="stable"):
        members = np.flatnonzero(part == k)
        own = links[part[links[:, 0]] == k]
        drawn.append((members, _sprung(radius[members], np.searchsorted(members, own))))
    middles = _packed(drawn, radius)
    places = np.empty((len(group), 2))
    facing = _facing(pairs, group, middles)
    for k in range(len(size)):
        own = group == k
        places[own] = middles[k] + _turned(_spiral(int(size[k])), facing[own]) * (radius[k] - 0.5)
    return places, np.column_stack((middles, radius))[size > 1]


def _facing(pairs: Pairs, group: Array, middles: Array) -> Array:
    """The direction in which the "different" answers of each row lead, (n_points, 2)."""
    ends = np.searchsorted(pairs.points, pairs.cannot_link)  # (m, 2)
    towards = middles[group[ends[:, 1]]] - middles[group[ends[:, 0]]]
    towards /= np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-12)
    facing = np.zeros((len(group), 2))
    np.add.at(facing, ends[:, 0], towards)
    np.add.at(facing, ends[:, 1], -towards)
    return facing


def _turned(places: Array, facing: Array) -> Array:
    """Places (n, 2) around the origin, turned so that as many as can be lie in the direction that they face."""
    along = (places * facing).sum()
    across = (places[:, 0] * facing[:, 1] - places[:, 1] * facing[:, 0]).sum()
    angle = np.arctan2(across, along)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return np.asarray(places @ turn)


def _spiral(n: int) -> Array:
    """n places in the unit disc: one at its middle, up to 7 on its rim, more on a spiral like a sunflower's seeds."""
    if n == 1:
        return np.zeros((1, 2))
    k = np.arange(n)
    radius, angle = (np.ones(n), 2 * np.pi * k / n) if n <= 7 else (np.sqrt((k + 0.5) / (n - 0.5)), GOLDEN_ANGLE * k)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))


def _sprung(radius: Array, links: Array, n_steps: int = 200) -> Array:
    """Middles of linked groups (n, 2): links pull, all push each other off. There is no chance in it."""
    n = len(radius)
    degree = np.maximum(np.bincount(links.ravel(), minlength=n), 1)
    rank = np.empty(n, dtype=int)
    rank[np.lexsort((-radius, -degree))] = np.arange(n)  # the most linked start in the middle
    unit = 2 * float(radius.mean()) + 0.6
    place = unit * np.sqrt(n) * _spiral(max(n, 8))[rank]
    a, b = links.T
    for step in range(n_steps):
        gap = place[:, None] - place[None]  # (n, n, 2)
        squared = (gap**2).sum(-1) + np.eye(n)
        move = (gap * (unit**2 / squared)[..., None]).sum(1)
        along = place[b] - place[a]
        along *= np.linalg.norm(along, axis=1, keepdims=True) / unit
        np.add.at(move, a, along / degree[a, None])
        np.add.at(move, b, -along / degree[b, None])
        move -= PULL * place
        length = np.linalg.norm(move, axis=1, keepdims=True)
        place = place + move * np.minimum(unit * (1 - step / n_steps) / np.maximum(length, 1e-12), 1)
    return moved_apart(place - place.mean(0), radius + 0.2)


def _packed(parts: list[tuple[Array, Array]], radius: Array) -> Array:
    """Middles of all groups: the parts one after another, each where it fits nearest to the middle of the picture."""
    middles = np.zeros((len(radius), 2))
    spread = float(np.sqrt((radius**2).sum())) + max(float(np.abs(at).max()) for _, at in parts)
    spots = _spiral(N_SPOTS) * (3.4 * spread, 2.5 * spread)  # wider than high, as pictures are
    spots = spots[np.argsort((spots**2 / (1.36**2, 1)).sum(1), kind="stable")]
    placed = np.empty(0, dtype=int)
    for members, at in parts:
        middles[members] = at + _first_clear(spots, at, radius[members], middles[placed], radius[placed])
        placed = np.concatenate((placed, members))
    return middles


def _first_clear(spots: Array, at: Array, radius: Array, others: Array, others_radius: Array) -> Array:
    """The first spot at which discs at `at` touch none of the others."""
    if not len(others):
        return np.zeros(2)
    clear = np.ones(len(spots), dtype=bool)
    for (x, y), own in zip(at, radius, strict=True):
        gap = spots[clear][:, None] + (x, y) - others[None]  # (spots, others, 2)
        clear[clear] = ((gap**2).sum(-1) >= (own + others_radius + MARGIN) ** 2).all(1)
    return np.asarray(spots[np.argmax(clear) if clear.any() else -1])


def moved_apart(place: Array, radius: Array, n_rounds: int = 200) -> Array:
    """Discs of these middles (n, 2) and radii (n,), moved as little as need be until no two overlap."""
    n = len(place)
    place = place + 1e-6 * radius[:, None] * np.column_stack((np.cos(np.arange(n)), np.sin(np.arange(n))))
    least = radius[:, None] + radius[None]
    for _ in range(n_rounds):
        gap = place[:, None] - place[None]
        distance = np.sqrt((gap**2).sum(-1)) + np.eye(n)
        overlap = np.maximum(least - distance, 0) * (1 - np.eye(n))
        if overlap.max(initial=0) < 1e-3 * radius.max(initial=0):
            break
        place = place + (gap / distance[..., None] * overlap[..., None]).sum(1) / 2
    return place

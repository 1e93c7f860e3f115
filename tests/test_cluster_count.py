"""How many clusters the pairs call for: what can be read off answers, and joining pieces of clusters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from pairmargin.cluster_count import (
    ANSWERS_A_PIECE,
    N_FOLDS,
    Evidence,
    _evidence,
    _joined_evidence,
    _pieces,
    _rand,
    _same_rate,
    between_halves,
    clusters_to_use,
    count_clusters,
    joined,
    more_pieces,
    parted,
)
from pairmargin.kmeans import two_parts
from pairmargin.pairs import Pairs, sample_pairs
from pairmargin.start import agreement


def blurred(truth: np.ndarray, share: float, n_clusters: int, seed: int) -> np.ndarray:
    """Labels of which a share is drawn anew."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(truth)) < share, rng.integers(n_clusters, size=len(truth)), truth)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("sizes", [[300, 300, 300], [700, 150, 50, 50, 50]])
def test_rand_index_and_rate_of_same_are_read_off_answers_however_they_were_picked(
    sizes: list[int], balanced: bool
) -> None:
    truth = np.repeat(np.arange(len(sizes)), sizes)
    pairs = sample_pairs(truth, 20_000, balanced=balanced, random_state=0)
    ways = [blurred(truth, share, len(sizes), seed=1) for share in (0.1, 0.3)]
    found = [_evidence([labels], pairs) for labels in ways]
    same_rate, error = _same_rate(found, int((~pairs.same).sum()))
    assert error < 0.02
    assert same_rate == pytest.approx(((np.array(sizes) / sum(sizes)) ** 2).sum(), abs=0.02)
    for labels, evidence in zip(ways, found, strict=True):
        assert _rand(evidence, same_rate) == pytest.approx(adjusted_rand_score(truth, labels), abs=0.03)


def test_what_chance_would_keep_is_worth_nothing_and_no_index_is_above_1() -> None:
    assert _rand(Evidence(kept=0.3, confused=0.3, together=0.3), 0.4) == pytest.approx(0)
    assert _rand(Evidence(kept=1, confused=0, together=0.2), 0.2) == pytest.approx(1)
    assert _rand(Evidence(kept=1, confused=0, together=0.1), 0.2) < 1  # answers that flatter


def test_pieces_are_joined_as_must_links_say_unless_more_cannot_links_speak_against_it() -> None:
    labels = np.repeat(np.arange(4), 5)
    must = [(0, 5), (1, 6), (10, 15)]
    cannot = [(11, 16), (12, 17), (0, 10)]
    final = joined(labels, Pairs.from_lists(must, cannot))
    np.testing.assert_array_equal(final, np.repeat([0, 0, 1, 2], 5))


def test_joining_never_lowers_the_agreement_and_only_joins() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth, labels = rng.integers(4, size=60), rng.integers(10, size=60)
        pairs = sample_pairs(truth, 40, random_state=seed)
        final = joined(labels, pairs)
        assert agreement(final, pairs) >= agreement(labels, pairs)
        for k in range(10):
            assert len(np.unique(final[labels == k])) <= 1
        pieces = range(final.max() + 1)
        for one in pieces:  # nothing better is one step away
            for other in pieces:
                assert agreement(np.where(final == other, one, final), pairs) <= agreement(final, pairs) + 1e-12


SIZES = [300, 300, 300, 60, 60, 60]
TRUTH = np.repeat(np.arange(6), SIZES)
LUMPED = TRUTH.clip(max=3)  # the small ones in one


def far_apart(classes: np.ndarray) -> np.ndarray:
    """A cloud of points for every class."""
    rng = np.random.default_rng(0)
    return (10.0 * rng.standard_normal((classes.max() + 1, 5)))[classes] + rng.standard_normal((len(classes), 5))


def parted_at_sight(labels: np.ndarray, points: np.ndarray, pairs: Pairs, n_clusters: int) -> np.ndarray:
    """By halves that k-means sees, if no "same" answer lies between them."""

    def halve(members: np.ndarray, missing: float) -> tuple[np.ndarray, float]:
        half = two_parts(points[members], np.arange(3))
        expected, said = between_halves(half, members, len(labels), pairs, missing)
        return half, expected if said <= 0 else 0.0

    return parted(labels, pairs, n_clusters, halve)


def test_what_no_answers_hold_together_is_parted() -> None:
    pairs = sample_pairs(TRUTH, 2_000, random_state=0)
    final = parted_at_sight(LUMPED, far_apart(TRUTH), pairs, 65)
    assert adjusted_rand_score(TRUTH, final) == 1
    np.testing.assert_array_equal(LUMPED, TRUTH.clip(max=3))  # what was given is as it was


def test_a_class_that_looks_like_two_is_held_together_by_its_answers() -> None:
    pairs = sample_pairs(LUMPED, 2_000, random_state=0)
    np.testing.assert_array_equal(parted_at_sight(LUMPED, far_apart(TRUTH), pairs, 65), LUMPED)


@pytest.mark.parametrize(("n_pairs", "balanced"), [(10, True), (2_000, False)])
def test_few_answers_and_evenly_drawn_ones_part_nothing_by_their_silence(n_pairs: int, balanced: bool) -> None:
    drawn = sample_pairs(TRUTH, n_pairs, balanced=balanced, random_state=0)
    silent = drawn[~(~drawn.same & (LUMPED[drawn.index] == 3).all(1))]  # but for "different" ones inside, which speak
    np.testing.assert_array_equal(parted_at_sight(LUMPED, far_apart(TRUTH), silent, 65), LUMPED)


def test_one_point_is_too_few_for_silence_to_mean_anything() -> None:
    points = far_apart(LUMPED)
    points[-1] += 1_000.0
    drawn = sample_pairs(LUMPED, 500, random_state=0)
    silent = drawn[(drawn.index != len(LUMPED) - 1).all(1)]
    np.testing.assert_array_equal(parted_at_sight(LUMPED, points, silent, 65), LUMPED)


def test_a_larger_cluster_is_parted_only_by_a_longer_silence() -> None:
    """180 of 1080 points are few for one of 6 clusters, and many for one of 65."""
    drawn = sample_pairs(TRUTH, 60, random_state=0)
    silent = drawn[~(~drawn.same & (LUMPED[drawn.index] == 3).all(1))]
    assert len(np.unique(parted_at_sight(LUMPED, far_apart(TRUTH), silent, 6))) > 4
    np.testing.assert_array_equal(parted_at_sight(LUMPED, far_apart(TRUTH), silent, 65), LUMPED)


def test_no_more_parts_than_clusters_were_asked_for() -> None:
    final = parted_at_sight(LUMPED, far_apart(TRUTH), sample_pairs(TRUTH, 2_000, random_state=0), 5)
    assert len(np.unique(final)) == 5


def test_where_nobody_asked_silence_says_nothing() -> None:
    few = np.r_[:10, 900:904, 960:964, 1020:1024]
    asked = sample_pairs(TRUTH[few], 120, random_state=0)
    pairs = Pairs(few[asked.index], asked.same)
    np.testing.assert_array_equal(parted_at_sight(LUMPED, far_apart(TRUTH), pairs, 65), LUMPED)


@pytest.mark.filterwarnings("error")
def test_copies_of_one_point_are_not_parted() -> None:
    points = far_apart(LUMPED)
    points[LUMPED == 3] = points[-1]
    pairs = sample_pairs(TRUTH, 2_000, random_state=0)
    np.testing.assert_array_equal(parted_at_sight(LUMPED, points, pairs, 65), LUMPED)


def test_an_answer_is_judged_by_joins_that_it_had_no_voice_in() -> None:
    """Every point is its own piece: a must-link can only be kept by a join that it asked for itself."""
    labels = np.arange(20)
    pairs = Pairs.from_lists([(2 * i, 2 * i + 1) for i in range(8)], [(16, 18), (17, 19)])
    assert agreement(joined(labels, pairs), pairs) == 1
    assert _joined_evidence([labels], pairs).kept == 0


def torn(truth: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Clusters of one size, made by cutting the largest cluster in two again and again."""
    labels = truth.copy()
    rng = np.random.default_rng(seed)
    while (n := labels.max() + 1) < n_clusters:
        largest = np.flatnonzero(labels == np.bincount(labels).argmax())
        labels[rng.permutation(largest)[: len(largest) // 2]] = n
    return labels


def test_fewer_where_the_largest_classes_were_torn() -> None:
    truth = np.repeat([0, 1, 2], [500, 450, 50])
    for seed in range(5):
        pairs = sample_pairs(truth, 100, random_state=seed)
        chosen = clusters_to_use(30, pairs, lambda k, seed=seed: [torn(np.minimum(truth, k - 1), k, seed)], 1000)
        assert chosen < 30


def test_as_many_as_asked_where_classes_are_alike() -> None:
    truth = np.repeat(np.arange(30), 20)
    for seed in range(5):
        pairs = sample_pairs(truth, 300, random_state=seed)
        assert clusters_to_use(30, pairs, lambda k: [truth * k // 30], 600) == 30


def test_same_answers_that_small_clusters_keep_outweigh_different_ones_that_happen_to_lie_apart() -> None:
    """As on COIL-100, where few "different" answers within few clusters made 100 objects look like thirty."""
    truth = np.arange(2000) % 100
    drawn = sample_pairs(truth, 4_000, random_state=0)
    one, other = truth[drawn.index.T]
    apart = np.all([one * k // 100 != other * k // 100 for k in (3, 5, 8, 12, 20)], axis=0)
    pairs = drawn[drawn.same][:25] + drawn[apart][:25]
    assert clusters_to_use(100, pairs, lambda k: [truth * k // 100], 2000) == 100
    torn_apart = np.arange(2000) // 20  # by clusters that keep next to nothing, nothing is known
    assert clusters_to_use(100, pairs, lambda k: [truth * k // 100 if k < 100 else torn_apart], 2000) < 100


@pytest.mark.parametrize(
    "pairs",
    [
        Pairs.from_lists([(0, 1)], []),
        Pairs.from_lists([], [(0, 1)]),
        Pairs.empty(),
        Pairs.from_lists([(0, 1)], [(2, 3)]),
    ],
    ids=["must-links only", "cannot-links only", "none", "one of each"],
)
def test_too_few_answers_change_nothing(pairs: Pairs) -> None:
    labels = {k: np.arange(40) % k for k in range(2, 21)}
    assert clusters_to_use(20, pairs, lambda k: [labels[k]], 40) == 20


def test_a_few_same_answers_among_many_others_change_nothing() -> None:
    """As with twenty classes, where of fifty answers two or three are "same": these may be torn by chance."""
    truth = np.repeat([0, 1, 2], [500, 450, 50])
    pairs = sample_pairs(truth, 100, random_state=0)
    for n_same, is_fewer in ((N_FOLDS - 1, False), (50, True)):
        some = pairs[np.concatenate([np.flatnonzero(pairs.same)[:n_same], np.flatnonzero(~pairs.same)])]
        chosen = clusters_to_use(30, some, lambda k: [torn(np.minimum(truth, k - 1), k, 0)], 1000)
        assert (chosen < 30) == is_fewer


def test_clusters_that_all_disagree_with_the_answers_are_counted_too() -> None:
    """No number of clusters does better than chance: every adjusted Rand index is below 0."""
    labels = {k: np.arange(40) % k for k in range(2, 21)}
    pairs = Pairs([(i, j) for i in range(0, 40, 2) for j in (i + 1, (i + 20) % 40)], [True, False] * 20)
    found = count_clusters(pairs, lambda k: [labels[k]], 40)
    assert found in labels


def test_what_answers_have_joined_tells_how_few_clusters_are_enough() -> None:
    piece = np.arange(2000) // 50
    truth = np.where(piece < 30, 0, piece)  # thirty of forty pieces are one class
    others = 50 * np.arange(1, 40)
    pairs = Pairs([(0, j) for j in others], truth[others] == 0)

    def runs_for(k: int) -> list[np.ndarray]:
        return [piece * k // 40]

    assert _pieces(40, pairs, runs_for) == clusters_to_use(40, pairs, runs_for, 2000) == 7
    assert _pieces(40, pairs[:6] + pairs[-3:], runs_for) == 40  # seven joined pieces could be one class of forty
    more = pairs + Pairs([(1, j + 1) for j in others], pairs.same) + Pairs([(2, j + 2) for j in others], pairs.same)
    assert clusters_to_use(40, more, runs_for, 2000) == len(more) // ANSWERS_A_PIECE == 23
    assert clusters_to_use(20, more, runs_for, 2000) == 19  # as many as were asked for would not be joined


@pytest.mark.parametrize(
    ("n_same", "most", "n_pieces"),
    [(0, 65, 16), (32, 65, 16), (40, 65, 20), (50, 65, 24), (1000, 65, 24), (1000, 20, 20)],
)
def test_there_are_more_pieces_only_where_same_answers_can_join_them(n_same: int, most: int, n_pieces: int) -> None:
    pairs = Pairs.from_lists([(0, k) for k in range(1, n_same + 1)], [(0, 5_000)])
    assert more_pieces(16, most, pairs) == n_pieces

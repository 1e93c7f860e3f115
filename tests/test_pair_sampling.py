"""Drawing pairs from labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pair_strategies import as_dict, labels, prove

from pairmargin.exceptions import InvalidPairsError, InvalidParameterError
from pairmargin.pairs import Pairs, arithmetic, sample_pairs, sampling


@prove
@given(labels, st.integers(0, 1000), st.booleans(), st.data())
def test_sampled_pairs_are_distinct_true_and_as_many_as_asked(y, seed, balanced, data):
    every = Pairs.from_labels(y)
    n_same, n_different = int(every.same.sum()), int((~every.same).sum())
    most = min(2 * n_same, 2 * n_different + 1) if balanced else len(every)
    n = data.draw(st.integers(0, most))
    drawn = sample_pairs(y, n, balanced=balanced, random_state=seed)
    assert len(drawn) == n
    assert as_dict(drawn).items() <= as_dict(every).items()
    if balanced:
        assert drawn.same.sum() == math.ceil(n / 2)
    assert drawn == sample_pairs(y, n, balanced=balanced, random_state=np.random.RandomState(seed))


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("n", [1, 4, 7])
@pytest.mark.parametrize("large", [False, True], ids=["auto", "as for large populations"])
def test_every_pair_is_drawn_equally_often(monkeypatch, balanced, n, large):
    y, n_draws, rng = [2, 0, -1, 0, 2, 0, 5], 1500, np.random.RandomState(0)
    every = Pairs.from_labels(y)
    if large:
        monkeypatch.setattr(sampling, "MAX_PAIRS", 0)
    times = np.zeros((7, 7))
    for _ in range(n_draws):
        i, j = sample_pairs(y, n, balanced=balanced, random_state=rng).index.T
        times[i, j] += 1
    kinds = [(every.must_link, (n + 1) // 2), (every.cannot_link, n // 2)] if balanced else [(every.index, n)]
    for index, n_kind in kinds:
        share = n_kind / len(index)
        spread = np.sqrt(n_draws * share * (1 - share))
        assert np.abs(times[*index.T] - n_draws * share).max() <= 3.5 * spread


def test_messages_number_drawn_pairs_as_they_stand():
    drawn = sample_pairs([0, 1, 0, 1, 2, 2, 0, 1], 12, random_state=0)
    told = [drawn._describe(k) for k in range(12)]
    assert told == [f"pairs[{k}] = ({i}, {j})" for k, (i, j) in enumerate(drawn.index)]


def test_sampling_many_rows_is_right():
    y = np.random.RandomState(0).randint(-1, 10, 60_000)
    for balanced in (True, False):
        drawn = sample_pairs(y, 10_000, balanced=balanced, random_state=1)
        i, j = drawn.index.T
        assert len(drawn) == 10_000
        assert np.array_equal(drawn.same, y[i] == y[j])
        assert (y[drawn.points] != -1).all()
        assert 0.45 < drawn.index.mean() / 60_000 < 0.55


def test_sampling_refuses():
    y = [0, 0, 1, -1]
    with pytest.raises(
        InvalidPairsError, match='2 "same" pairs were asked for but these labels give only 1; ask for fewer'
    ):
        sample_pairs(y, 3)
    with pytest.raises(InvalidPairsError, match='1 "different" pairs were asked for but these labels give only 0'):
        sample_pairs([0, 0, 0], 2)
    with pytest.raises(InvalidPairsError, match="4 pairs were asked for but these labels give only 3"):
        sample_pairs(y, 4, balanced=False)
    for n in (-1, 2.0, True, None):
        with pytest.raises(InvalidParameterError, match=f"n should be a whole number from 0 up, not {n}"):
            sample_pairs(y, n)


def test_sampling_leaves_the_global_generator_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it is what should not change
    sample_pairs([0, 0, 1, 1], 2, random_state=0)
    Pairs([(0, 1), (0, 2)], [True, False]).split(random_state=0)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@prove
@given(st.integers(1, 10**9), st.data())
def test_ranks_of_pairs_are_decoded_exactly(b, data):
    a = data.draw(st.sampled_from([0, b // 2, b - 1]))
    rank = np.array([b * (b - 1) // 2 + a])
    assert arithmetic.places_within(rank, np.array([b + 1])).tolist() == [[a], [b]]

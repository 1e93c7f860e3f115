"""What follows from answers, and where they disagree."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest
from hypothesis import given
from pair_strategies import N, any_answers, as_dict, build, consistent_answers, distances, prove

from pairmargin.exceptions import ConflictingPairsError, InvalidPairsError, InvalidParameterError
from pairmargin.pairs import Conflict, Pairs, sample_pairs
from pairmargin.pairs.arithmetic import link_graph

# What follows


@prove
@given(any_answers)
def test_components_are_what_same_answers_reach(answers):
    pairs = build(answers)
    component = pairs.components(N)
    assert component.shape == (N,)
    assert np.array_equal(component[:, None] == component, np.isfinite(distances(pairs)))


@prove
@given(consistent_answers())
def test_closure_equals_naive_reasoning(answers):
    pairs = build(answers)
    joined = np.isfinite(distances(pairs))
    expected = {}
    for i, j in itertools.combinations(range(N), 2):
        differs = any((joined[i, a] and joined[j, b]) or (joined[i, b] and joined[j, a]) for a, b in pairs.cannot_link)
        if joined[i, j] or differs:
            answer = (i, j, bool(joined[i, j]))
            expected[answer] = as_dict(pairs).get(answer, 1.0)
    closed = pairs.closure()
    assert as_dict(closed) == expected
    assert closed.closure() == closed
    assert np.array_equal(closed.index, Pairs(closed.index, closed.same).index)


@prove
@given(any_answers, any_answers)
def test_is_in_finds_the_answers_that_others_give_too(ours, theirs):
    one, other = build(ours), build(theirs)
    assert one.is_in(other).tolist() == [answer in as_dict(other) for answer in as_dict(one)]


def test_is_in_tells_rows_far_apart_from_others():
    far, near = Pairs([(2**31, 2**32 - 1)], [True]), Pairs([(0, 2**32 - 1)], [True])
    assert far.is_in(far).tolist() == [True]
    assert far.is_in(near).tolist() == [False]  # products of such numbers do not fit in 64 bits


def test_closure_of_rows_far_apart():
    closed = Pairs.from_lists(must_link=[(10**12, 5), (5, 2)], cannot_link=[(10**12, 10**15)]).closure()
    assert closed.must_link.tolist() == [[2, 5], [2, 10**12], [5, 10**12]]
    assert closed.cannot_link.tolist() == [[2, 10**15], [5, 10**15], [10**12, 10**15]]


def test_closure_refuses_contradictions_and_far_too_many_pairs():
    with pytest.raises(ConflictingPairsError, match=r"pairs\[1\] = \(0, 1\) .* call without_conflicts\(\) first$"):
        Pairs([(0, 1), (0, 1)], [True, False]).closure()
    chain = np.column_stack((np.arange(20_000), np.arange(1, 20_001)))
    with pytest.raises(InvalidPairsError, match="the closure has 200010000 pairs, more than 50000000; give fewer"):
        Pairs.from_lists(chain).closure()
    halves = np.concatenate((chain[:5000], chain[6000:11_000]))  # 5001 rows each, and each pair between them follows
    with pytest.raises(InvalidPairsError, match="the closure has 50015001 pairs, more than 50000000"):
        Pairs.from_lists(halves, [(0, 6000)]).closure()


# Where they disagree


@prove
@given(any_answers)
def test_conflicts_are_the_joined_differences_with_a_shortest_chain(answers):
    pairs = build(answers)
    d = distances(pairs)
    found = pairs.conflicts()
    expected = [k for k, (i, j) in enumerate(pairs.index) if not pairs.same[k] and np.isfinite(d[i, j])]
    assert [conflict.different for conflict in found] == expected
    for conflict in found:
        here, end = pairs.index[conflict.different].tolist()
        assert len(conflict.chain) == d[here, end]
        for link in conflict.chain:
            assert pairs.same[link]
            i, j = pairs.index[link].tolist()
            assert here in (i, j)
            here = i + j - here
        assert here == end


def test_conflicts_say_every_answer_in_the_numbering_of_the_user():
    pairs = Pairs([(9, 6), (0, 1), (6, 4), (9, 4), (1, 0)], [True, True, True, False, False])
    direct, chained = pairs.conflicts()
    assert direct == Conflict(0, (1,), 'pairs[4] = (0, 1) is "different" but pairs[1] = (0, 1) says "same"')
    message = 'pairs[3] = (4, 9) is "different" but pairs[2] = (4, 6), pairs[0] = (6, 9) chain them as "same"'
    assert str(chained) == chained.message == message
    assert (chained.different, chained.chain) == (3, (2, 4))


def test_a_repeated_answer_is_named_by_its_first_place():
    pairs = Pairs([(2, 3), (0, 1), (1, 0), (0, 1), (0, 1)], [True, False, True, True, False])
    assert str(pairs.conflicts()[0]) == 'pairs[1] = (0, 1) is "different" but pairs[2] = (0, 1) says "same"'


@prove
@given(consistent_answers())
def test_an_answer_is_confirmed_if_its_opposite_contradicts_the_others(answers):
    pairs = build(answers)
    for k, is_confirmed in enumerate(pairs.confirmed()):
        turned = pairs.same.copy()
        turned[k] = not turned[k]
        assert is_confirmed == bool(Pairs(pairs.index, turned).conflicts())


@prove
@given(any_answers)
def test_contradicted_answers_are_confirmed_by_nobody(answers):
    pairs = build(answers)
    joined = np.isfinite(distances(pairs))
    found = pairs.confirmed()
    for conflict in pairs.conflicts():
        rows = np.flatnonzero(joined[pairs.index[conflict.different][0]])
        assert not found[np.isin(pairs.index, rows).any(1)].any()


@prove
@given(any_answers)
def test_without_conflicts_has_none_and_only_drops_what_was_in_a_conflict(answers):
    pairs = build(answers)
    kept = pairs.without_conflicts()
    assert kept.conflicts() == []
    assert as_dict(kept).items() <= as_dict(pairs).items()
    joined = np.isfinite(distances(pairs))
    for i, j, _ in as_dict(pairs).keys() - as_dict(kept).keys():
        assert joined[i, j]
    # Only answers inside a group that contradicts itself may go.
    torn = [joined[i] for i, j in pairs.cannot_link if joined[i, j]]
    for i, _, _ in as_dict(pairs).keys() - as_dict(kept).keys():
        assert any(group[i] for group in torn)


@prove
@given(consistent_answers())
def test_consistent_answers_are_left_alone(answers):
    pairs = build(answers)
    assert pairs.conflicts() == []
    assert pairs.without_conflicts() == pairs == pairs.resolve("raise") == pairs.resolve("drop")


def test_one_wrong_same_goes_rather_than_many_right_differences():
    right, wrong = Pairs.from_labels(np.repeat([0, 1], 6)), Pairs([(2, 8)], [True])
    assert (right + wrong).without_conflicts() == right


def test_two_wrong_bridges_both_go():
    inside = [(i, i + 1) for i in range(15) if i != 7]
    across = [(i, j) for i in range(8) for j in range(8, 16) if (i + j) % 3]
    kept = Pairs.from_lists([*inside, (0, 15), (4, 11)], across).without_conflicts()
    assert kept == Pairs.from_lists(inside, across)


@pytest.mark.parametrize(
    ("same", "weight", "kept"),
    [
        ([True, False], [1, 2], [1]),  # the lighter goes
        ([True, False], [2, 1], [0]),
        ([True, False], [1, 1], [0]),  # of equals, the "different"
    ],
)
def test_ties_between_two_answers(same, weight, kept):
    pairs = [(0, 1), (0, 1)]
    expected = Pairs([pairs[k] for k in kept], [same[k] for k in kept], [weight[k] for k in kept])
    assert Pairs(pairs, same, weight).without_conflicts() == expected


def test_conflicts_are_counted_per_unit_of_weight():
    # (0, 1) is in three conflicts, but so sure that each of the three is the likelier error.
    rows = [(0, 1), (1, 2), (1, 3), (1, 4), (0, 2), (0, 3), (0, 4)]
    same = [True, True, True, True, False, False, False]
    light, heavy = Pairs(rows, same, [2, 5, 5, 5, 1, 1, 1]), Pairs(rows, same, [4, 5, 5, 5, 1, 1, 1])
    even = Pairs(rows, same, [3, 5, 5, 5, 1, 1, 1])
    assert even.without_conflicts() == even[even.same]  # of equals, the lighter go
    assert light.without_conflicts() == light[~((light.index == (0, 1)).all(axis=1))]
    assert heavy.without_conflicts() == heavy[heavy.same]


def test_dropping_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="pairmargin"):
        Pairs([(5, 6), (0, 1), (0, 1)], [True, True, False]).without_conflicts()
        Pairs([(5, 6)], [True]).without_conflicts()
    assert caplog.messages == ["dropped 1 of 3 answers that contradict others: pairs[2] = (0, 1)"]
    for n in (10, 11, 12):
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="pairmargin"):
            Pairs(np.repeat([(i, i + 50) for i in range(n)], 2, axis=0), [True, False] * n).without_conflicts()
        told = ", ".join(f"pairs[{2 * i + 1}] = ({i}, {i + 50})" for i in range(10)) + (", …" if n > 10 else "")
        assert caplog.messages == [f"dropped {n} of {2 * n} answers that contradict others: {told}"]


def test_a_part_of_the_answers_keeps_the_names_of_their_lists():
    pairs = Pairs.from_lists([(5, 6), (0, 1)], [(0, 1)])[:2]
    told = 'cannot_link[0] = (0, 1) is "different" but must_link[1] = (0, 1) says "same"'
    assert [str(conflict) for conflict in pairs.conflicts()] == [told]


def test_links_have_weights_that_add_up():
    edges = np.array([(0, 1), (2, 1), (0, 1)])
    np.testing.assert_array_equal(link_graph(edges, 3).toarray(), [[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    weighed = link_graph(edges, 3, np.array([0.5, 3.0, 0.25])).toarray()
    np.testing.assert_array_equal(weighed, [[0, 0.75, 0], [0.75, 0, 3], [0, 3, 0]])


def test_resolve():
    pairs = Pairs([(i, i + 50) for i in range(5) for _ in range(2)], [True, False] * 5)
    assert pairs.resolve("keep") is pairs
    assert pairs.resolve("drop") == pairs[pairs.same]
    told = [
        f'pairs[{2 * k + 1}] = ({k}, {k + 50}) is "different" but pairs[{2 * k}] = ({k}, {k + 50}) says "same"'
        for k in range(3)
    ]
    way_out = 'remove one of them, or pass on_conflict="drop" or "keep"'
    for n, more in ((3, []), (4, ["and 1 more"]), (5, ["and 2 more"])):
        with pytest.raises(ConflictingPairsError) as caught:
            pairs[: 2 * n].resolve("raise")
        assert str(caught.value) == "; ".join([*told, *more, way_out])
    with pytest.raises(ConflictingPairsError) as caught:
        pairs[:2].resolve("raise")
    assert str(caught.value) == f"{told[0]}; {way_out}"
    with pytest.raises(InvalidParameterError, match='on_conflict should be "raise", "drop" or "keep", not \'ignore\''):
        pairs.resolve("ignore")


def test_many_answers_with_errors_are_settled():
    y = np.arange(300) % 3
    drawn = sample_pairs(y, 2000, random_state=0)
    wrong = np.random.RandomState(0).rand(len(drawn)) < 0.03
    kept = Pairs(drawn.index, drawn.same ^ wrong).without_conflicts()
    assert kept.conflicts() == []
    right = kept.same == (y[kept.index[:, 0]] == y[kept.index[:, 1]])
    assert right.mean() > 0.99  # of 97 % right answers
    assert len(kept) > 0.95 * len(drawn)

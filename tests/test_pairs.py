"""Pairs: what they accept, what follows from them, where they disagree, and how they are drawn."""

from __future__ import annotations

import copy
import itertools
import logging
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairmargin import pair_arithmetic
from pairmargin.exceptions import ConflictingPairsError, InvalidPairsError, InvalidParameterError
from pairmargin.pairs import Conflict, Pairs, sample_pairs

prove = settings(deadline=None, derandomize=True, max_examples=200)

N = 7
rows = st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda pair: pair[0] != pair[1])
weights = st.floats(1e-3, 1e3)
any_answers = st.lists(st.tuples(rows, st.booleans(), weights), max_size=12)
labels = st.lists(st.integers(-1, 3), min_size=N, max_size=N)


def build(answers: list[tuple[tuple[int, int], bool, float]]) -> Pairs:
    return Pairs([pair for pair, _, _ in answers], [same for _, same, _ in answers], [w for _, _, w in answers])


@st.composite
def consistent_answers(draw: st.DrawFn) -> list[tuple[tuple[int, int], bool, float]]:
    y = draw(st.lists(st.integers(0, 3), min_size=N, max_size=N))
    return [((i, j), y[i] == y[j], w) for (i, j), w in draw(st.lists(st.tuples(rows, weights), max_size=12))]


def distances(pairs: Pairs, n: int = N) -> np.ndarray:
    """The number of "same" answers between all rows, by Floyd and Warshall."""
    d = np.full((n, n), np.inf)
    np.fill_diagonal(d, 0)
    for i, j in pairs.must_link:
        d[i, j] = d[j, i] = 1
    for k, i, j in itertools.product(range(n), repeat=3):
        d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def as_dict(pairs: Pairs) -> dict[tuple[int, int, bool], float]:
    return {(i, j, s): w for (i, j), s, w in zip(pairs.index.tolist(), pairs.same.tolist(), pairs.weight, strict=True)}


# The value


def test_pairs_are_stored_in_canonical_order():
    pairs = Pairs([(4, 2), (0, 1), (2, 4), (2, 0)], [True, False, False, 1], [1.0, 2.0, 3.0, 4.0])
    assert pairs.index.tolist() == [[0, 1], [0, 2], [2, 4], [2, 4]]
    assert pairs.same.tolist() == [False, True, False, True]
    assert pairs.weight.tolist() == [2.0, 4.0, 3.0, 1.0]
    assert (pairs.index.dtype, pairs.same.dtype, pairs.weight.dtype) == (np.int64, np.bool_, np.float64)
    assert pairs.must_link.tolist() == [[0, 2], [2, 4]]
    assert pairs.cannot_link.tolist() == [[0, 1], [2, 4]]
    assert pairs.points.tolist() == [0, 1, 2, 4]


@prove
@given(any_answers, st.randoms(use_true_random=False))
def test_order_and_orientation_do_not_matter(answers, random):
    shuffled = [(pair[::-1] if random.random() < 0.5 else pair, same, w) for pair, same, w in answers]
    random.shuffle(shuffled)
    one, other = build(answers), build(shuffled)
    assert one == other  # to the last bit, although sums of weights are rounded
    assert one.without_conflicts() == other.without_conflicts()


@prove
@given(any_answers)
def test_saying_it_twice_counts_twice(answers):
    doubled = build([(pair, same, 2 * w) for pair, same, w in answers])
    repeated = build(answers + answers)
    assert len(repeated) == len({(*sorted(pair), same) for pair, same, _ in answers})
    assert np.array_equal(repeated.index, doubled.index)
    np.testing.assert_allclose(repeated.weight, doubled.weight)


@pytest.mark.parametrize(
    "index",
    [
        [(0, 1), (2, 3)],
        ((0, 1), (2, 3)),
        {(0, 1), (2, 3)},
        zip([0, 2], [1, 3], strict=True),
        np.array([[0, 1], [2, 3]], dtype=np.uint8),
        np.array([[0.0, 1.0], [2.0, 3.0]]),
        np.array([[0, 1.0], [2, np.int32(3)]], dtype=object),
        pd.DataFrame({"x": [0, 2], "y": [1, 3]}),
    ],
    ids=["list", "tuple", "set", "zip", "uint8", "integral floats", "objects", "data frame"],
)
def test_index_may_be_of_many_kinds(index):
    assert Pairs(index, [1, 1]).index.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "same",
    [[True, False], [1, 0], [1.0, 0.0], np.array([True, 0], dtype=object), pd.array([True, False], dtype="boolean")],
)
def test_same_may_be_booleans_or_zero_and_one(same):
    assert Pairs([(0, 1), (0, 2)], same).same.tolist() == [True, False]


def test_arrays_are_read_only_and_not_those_of_the_caller():
    index, same, weight = np.array([[0, 1]]), np.array([True]), np.array([2.0])
    pairs = Pairs(index, same, weight)
    index[0, 1], same[0], weight[0] = 5, False, 7.0
    assert pairs == Pairs([(0, 1)], [True], [2.0])
    for array in (pairs.index, pairs.same, pairs.weight):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        pairs.index = index
    with pytest.raises(AttributeError):
        pairs.extra = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(pairs)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_and_pickles_are_equal_locked_and_keep_the_numbering(duplicate):
    pairs = Pairs([(8, 9), (0, 1), (0, 1)], [True, True, False])
    twin = duplicate(pairs)
    assert twin == pairs
    assert not twin.index.flags.writeable
    assert [str(c) for c in twin.conflicts()] == [str(c) for c in pairs.conflicts()]


def test_equality_looks_at_index_answers_and_weights():
    pairs = Pairs([(0, 1)], [True])
    assert pairs != Pairs([(0, 2)], [True])
    assert pairs != Pairs([(0, 1)], [False])
    assert pairs != Pairs([(0, 1)], [True], [2.0])
    assert pairs != Pairs.empty()
    assert pairs != "pairs"


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        (Pairs.empty(), "Pairs(0 pairs: 0 same, 0 different)"),
        (Pairs([(0, 1)], [False]), "Pairs(1 pair: 0 same, 1 different)"),
        (Pairs([(0, 1), (0, 2), (1, 2)], [1, 1, 0]), "Pairs(3 pairs: 2 same, 1 different)"),
    ],
)
def test_repr(pairs, text):
    assert repr(pairs) == text


def test_no_pairs_are_pairs():
    none = Pairs([], [])
    assert none == Pairs.empty() == Pairs([], [], []) == Pairs(np.empty((0, 2)), np.empty(0)) == Pairs.from_lists()
    assert len(none) == 0
    assert none.index.shape == (0, 2)
    assert none.closure() == none.without_conflicts() == none.resolve("raise") == none + none == none[[]] == none
    assert none.components(3).tolist() == [0, 1, 2]
    assert none.points.tolist() == none.conflicts() == []


def test_choosing_pairs():
    pairs = Pairs([(0, 1), (0, 2), (1, 2)], [True, False, False], [1.0, 2.0, 3.0])
    assert pairs[:2] == pairs[[0, 1]] == pairs[np.array([1, 0])] == pairs[pairs.weight < 3]
    assert pairs[[1, 1]] == Pairs([(0, 2)], [False], [4.0])
    assert pairs[[]] == Pairs.empty()
    assert pairs[-1:] == Pairs([(1, 2)], [False], [3.0])
    with pytest.raises(InvalidPairsError, match=r"list of places such as \[\[0\]\], not 0"):
        pairs[0]
    with pytest.raises(IndexError):
        pairs[[3]]


def test_chosen_pairs_keep_the_numbering_of_the_user():
    pairs = Pairs([(5, 6), (3, 4), (0, 1)], [True, True, True])
    with pytest.raises(InvalidPairsError, match=r"pairs\[1\] = \(3, 4\)"):
        Pairs.check(pairs[[1]], n_samples=4)


def test_adding_pairs():
    one, other = Pairs([(0, 1), (2, 3)], [True, True]), Pairs([(0, 1), (2, 3)], [True, False], [2.0, 1.0])
    assert one + other == Pairs([(0, 1), (2, 3), (2, 3)], [True, False, True], [3.0, 1.0, 1.0]) == other + one
    assert str((one + other).conflicts()[0]) == 'pairs[3] = (2, 3) is "different" but pairs[1] = (2, 3) says "same"'
    with pytest.raises(TypeError):
        one + None


# What is refused


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (5, "index should be a list or an array, not 5"),
        ([1, 2, 3], r"pairs\[0\] = 1 is not a pair; give two row numbers"),
        ([(0, 1, 2)], r"pairs\[0\] = \(0, 1, 2\) is not a pair"),
        ([(0, 1), (2,)], r"pairs\[1\] = \(2,\) is not a pair"),
        (np.zeros((2, 2, 2)), r"pairs\[0\] = .* is not a pair"),
        ([(0, 1), (2, 3.5)], r"pairs\[1\] = \(2.0, 3.5\) should be two whole numbers; give the numbers of the rows"),
        ([(0, 1), (2, np.nan)], r"pairs\[1\] = \(2.0, nan\) should be two whole"),
        ([(0, 1), (2, np.inf)], r"pairs\[1\] = \(2.0, inf\) should be two whole"),
        ([(0, 1), (2, 1e300)], r"pairs\[1\] = \(2.0, 1e\+300\) should be two whole"),
        ([(0, 1), (2, 2**70)], r"pairs\[1\] = \(2, 1180591620717411303424\) should be two whole"),
        ([(0, 1), (2, "x")], r"pairs\[1\] = \(2, 'x'\) should be two whole"),
        ([("0", "1")], r"pairs\[0\] = \('0', '1'\) should be two whole"),
        ([(0, 1), (None, 1)], r"pairs\[1\] = \(None, 1\) should be two whole"),
        ([(True, False)], r"pairs\[0\] = \(True, False\) should be two whole"),
        ([(0, 1), (-2, 1)], r"pairs\[1\] = \(-2, 1\) has a negative row number; count the rows from 0"),
        ([(0, 1), (5, 5)], r"pairs\[1\] = \(5, 5\) pairs a row with itself; leave it out"),
    ],
)
def test_index_that_cannot_be(index, message):
    with pytest.raises(InvalidPairsError, match=message):
        Pairs(index, [True] * (len(index) if hasattr(index, "__len__") else 1))


@pytest.mark.parametrize(
    ("same", "message"),
    [
        ([True], "there are 2 pairs but 1 values in same; give one for each pair"),
        ([[True, False]], r"same has shape \(1, 2\); .* Pairs.from_lists\(must_link, cannot_link\)"),
        (True, "same should be a list or an array, not True"),
        ([1, -1], r"same\[1\] = -1 is neither True nor False; for \+1 and -1 use Pairs.from_signed"),
        ([1, 2], r"same\[1\] = 2 is neither"),
        ([1, np.nan], r"same\[1\] = nan is neither"),
        ([1, None], r"same\[1\] = None is neither"),
        ([True, "no"], r"same\[1\] = 'no' is neither .* for words Pairs.from_frame"),
    ],
)
def test_same_that_cannot_be(same, message):
    with pytest.raises(InvalidPairsError, match=message):
        Pairs([(0, 1), (1, 2)], same)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], "there are 2 pairs but 1 values in weight"),
        (2.0, "weight should be a list or an array, not 2.0"),
        ([1, 0], r"weight\[1\] = 0 is no weight; give a finite number above 0, or leave the pair out"),
        ([1, -2.5], r"weight\[1\] = -2.5 is no weight"),
        ([1, np.nan], r"weight\[1\] = nan is no weight"),
        ([1, np.inf], r"weight\[1\] = inf is no weight"),
        ([1, "2"], r"weight\[1\] = '2' is no weight"),
    ],
)
def test_weight_that_cannot_be(weight, message):
    with pytest.raises(InvalidPairsError, match=message):
        Pairs([(0, 1), (1, 2)], [True, False], weight)


def test_row_numbers_beyond_the_data():
    message = (
        r"pairs\[1\] = \(4, 9\) names row 9 but the data has 9 rows, counted from 0; correct the pair or leave it out"
    )
    with pytest.raises(InvalidPairsError, match=message):
        Pairs([(5, 6), (9, 4)], [True, True], n_samples=9)
    pairs = Pairs([(5, 6), (9, 4)], [True, True], n_samples=10)
    for refuse in (lambda: Pairs.check(pairs, 9), lambda: pairs.components(9)):
        with pytest.raises(InvalidPairsError, match=message):
            refuse()


def test_check_is_the_gate_of_the_estimators():
    pairs = Pairs([(0, 1), (1, 2)], [True, False], [1.0, 2.0])
    assert Pairs.check(pairs, 3) is pairs
    assert Pairs.check((pairs.index, pairs.same, pairs.weight), 3) == pairs
    assert Pairs.check((pairs.index, pairs.same), 3) == Pairs(pairs.index, pairs.same)
    assert Pairs.check(None, 3) == Pairs.empty()
    with pytest.raises(
        InvalidPairsError, match=r"pairs should be Pairs, not ndarray; make them with .*Pairs.from_lists"
    ):
        Pairs.check(pairs.index, 3)
    with pytest.raises(InvalidPairsError, match=r"same has shape .* Pairs\.from_lists"):
        Pairs.check(([(0, 1), (3, 4)], [(1, 2), (0, 4)]), 5)


# Other ways in


def test_from_lists_speaks_of_the_lists():
    pairs = Pairs.from_lists(must_link=[(7, 8), (2, 1)], cannot_link=((i, i + 1) for i in (4, 1)))
    assert pairs == Pairs([(1, 2), (1, 2), (4, 5), (7, 8)], [True, False, False, True])
    assert str(pairs.conflicts()[0]) == 'cannot_link[1] = (1, 2) is "different" but must_link[1] = (1, 2) says "same"'
    with pytest.raises(InvalidPairsError, match=r"cannot_link\[0\] = \(3, 3\) pairs a row with itself"):
        Pairs.from_lists([(0, 1)], [(3, 3)])
    with pytest.raises(InvalidPairsError, match=r"must_link\[1\] = \(-1, 3\)"):
        Pairs.from_lists([(0, 1), (-1, 3)])


@prove
@given(labels)
def test_from_labels_gives_every_pair_of_known_rows_and_no_conflict(y):
    known = [i for i in range(N) if y[i] != -1]
    expected = {(i, j, y[i] == y[j]): 1.0 for i, j in itertools.combinations(known, 2)}
    pairs = Pairs.from_labels(y)
    assert as_dict(pairs) == expected
    assert as_dict(Pairs.from_labels(np.array(y))) == expected
    assert pairs.conflicts() == []
    assert pairs.closure() == pairs


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b", None, "a"],
        ["a", "b", np.nan, "a"],
        ["a", 2, -1, "a"],
        np.array([0.5, 1.0, np.nan, 0.5]),
        np.array([0, 1, -1, 0], dtype=np.int8),
        np.array([True, False, None, True], dtype=object),
        pd.Series(["a", "b", pd.NA, "a"]),
        pd.Series([1, 2, None, 1], dtype="Int64"),
        pd.Series(["a", "b", None, "a"], dtype="category"),
        np.array(["2020-01-01", "2021-01-01", "NaT", "2020-01-01"], dtype="datetime64[D]"),
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', y[2])}",
)
def test_labels_may_be_of_any_kind_and_unknown(y):
    assert as_dict(Pairs.from_labels(y)) == {(0, 1, False): 1, (0, 3, True): 1, (1, 3, False): 1}


def test_from_labels_refuses_tables_and_far_too_many_pairs():
    with pytest.raises(InvalidPairsError, match=r"y has shape \(2, 2\); give one label for each row"):
        Pairs.from_labels([[0, 1], [1, 0]])
    with pytest.raises(InvalidPairsError, match=r"these labels give 199990000 pairs, .* sample_pairs\(y, n\)"):
        Pairs.from_labels(np.zeros(20_000))


def test_from_signed():
    assert Pairs.from_signed([(0, 1), (0, 2)], [1, -1.0]) == Pairs([(0, 1), (0, 2)], [True, False])
    for sign, value in (([1, 0], "0"), ([1, np.nan], "nan"), ([1, "-1"], "'-1'")):
        with pytest.raises(
            InvalidPairsError, match=rf"sign\[1\] = {value} is neither \+1 nor -1; .* Pairs\(index, same\)"
        ):
            Pairs.from_signed([(0, 1), (0, 2)], sign)
    with pytest.raises(InvalidPairsError, match="there are 2 pairs but 1 values"):
        Pairs.from_signed([(0, 1), (0, 2)], [1])


@pytest.mark.parametrize(
    "same",
    [
        [True, False],
        [1, 0],
        [1, -1],
        [1.0, -1.0],
        ["true", "FALSE"],
        ["1", "0"],
        ["+1", "-1"],
        ["Same", "Different"],
        [" yes", "no "],
        ["yes", False],
    ],
)
@pytest.mark.parametrize("table", [dict, pd.DataFrame])
def test_from_frame_understands_many_words(table, same):
    expected = Pairs([(3, 1), (0, 2)], [True, False])
    assert Pairs.from_frame(table({"a": [3, 0], "b": [1, 2], "same": same, "note": ["x", "y"]})) == expected


def test_from_frame_takes_weights_and_any_index():
    frame = pd.DataFrame({"a": [3, 0], "b": [1, 2], "same": [True, False], "weight": [2, 0.5]}, index=["p", "q"])
    assert Pairs.from_frame(frame) == Pairs([(1, 3), (0, 2)], [True, False], [2.0, 0.5])


def test_from_frame_needs_no_more_than_columns_by_name():
    class Table:  # as much of polars as is needed
        columns = ("a", "b", "same")

        def __getitem__(self, name):
            return {"a": [3], "b": [1], "same": ["no"]}[name]

    assert Pairs.from_frame(Table()) == Pairs([(1, 3)], [False])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"a": [0], "c": [1]}, r"the table has no column b, same; its columns are \['a', 'c'\]"),
        (pd.DataFrame({"a": [0], "b": [1]}), "the table has no column same"),
        ([(0, 1, True)], "needs a table with named columns, not list"),
        ({"a": [0], "b": [1, 2], "same": [True]}, "there are 1 pairs but 2 values in b"),
        ({"a": [0], "b": [1], "same": [True, True]}, "there are 1 pairs but 2 values in same"),
        ({"a": [0, 1], "b": [1, 2], "same": ["yes", "maybe"]}, r"same\[1\] = 'maybe' is no answer; use true or false"),
        (pd.DataFrame({"a": [0, 1], "b": [1, 2], "same": [1, None]}), r"same\[1\] = nan is no answer"),
        ({"a": [0, "x"], "b": [1, 2], "same": [1, 0]}, r"pairs\[1\] = \('x', 2\) should be two whole numbers"),
        ({"a": [0], "b": [1], "same": [1], "weight": [0]}, r"weight\[0\] = 0 is no weight"),
    ],
)
def test_from_frame_refuses(frame, message):
    with pytest.raises(InvalidPairsError, match=message):
        Pairs.from_frame(frame)


@prove
@given(answers=any_answers)
def test_csv_round_trip_is_exact(tmp_path_factory, answers):
    path = tmp_path_factory.getbasetemp() / "round trip.csv"
    pairs = build(answers)
    pairs.to_csv(path)
    assert Pairs.read_csv(path) == Pairs.read_csv(str(path)) == pairs


def test_csv_is_what_people_expect(tmp_path):
    path = tmp_path / "answers.csv"
    Pairs([(2, 1), (0, 1)], [True, False], [0.1, 2]).to_csv(path)
    assert path.read_bytes() == b"a,b,same,weight\n0,1,false,2.0\n1,2,true,0.1\n"
    # Another order of columns, none for the weight, a byte order mark and Windows line ends: a spreadsheet's file.
    path.write_bytes("\ufeffa,same,b,note\r\n2,Yes,1,é\r\n\r\n 0,-1,1.0,\r\n".encode())
    assert Pairs.read_csv(path) == Pairs([(1, 2), (0, 1)], [True, False])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"odd\{\}.csv has no column a, b, same; its columns are \[\]"),
        ("a;b;same\n1;2;true\n", r"odd\{\}.csv has no column a, b, same; its columns are \['a;b;same'\]"),
        ("a,b,same\n1,2,yes\n\n1,3,maybe\n", r"line 4 of odd\{\}.csv: 'maybe' is no answer"),
        ("a,b,same\n1,2,yes\nx,3,no\n", r"line 3 of odd\{\}.csv: \('x', 3\) should be two whole numbers"),
        ("a,b,same\n1,2,yes\n4,4,no\n", r"line 3 of odd\{\}.csv: \(4, 4\) pairs a row with itself"),
        ("a,b,same\n1\n", r"line 2 of odd\{\}.csv: \(1, None\) should be two whole numbers"),
        ("a,b,same,weight\n1,2,yes,heavy\n", r"line 2 of odd\{\}.csv: 'heavy' is no weight"),
        ("a,b,same,weight\n1,2,yes,-1\n", r"line 2 of odd\{\}.csv: -1 is no weight"),
        ("a,b,same\n1,2,\xff\n", r"odd\{\}.csv cannot be read after line \d: .*utf-8"),
    ],
)
def test_csv_errors_name_file_line_and_value(tmp_path, text, message):
    path = tmp_path / "odd{}.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidPairsError, match=message):
        Pairs.read_csv(path)


def test_conflicts_in_a_file_are_told_by_line(tmp_path):
    path = tmp_path / "odd{}.csv"
    path.write_text("a,b,same\n8,9,yes\n4,2,yes\n2,4,no\n")
    told = str(Pairs.read_csv(path).conflicts()[0])
    assert told == 'line 4 of odd{}.csv: (2, 4) is "different" but line 3 of odd{}.csv: (2, 4) says "same"'


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


def test_closure_of_rows_far_apart():
    closed = Pairs.from_lists(must_link=[(10**12, 5), (5, 2)], cannot_link=[(10**12, 10**15)]).closure()
    assert closed.must_link.tolist() == [[2, 5], [2, 10**12], [5, 10**12]]
    assert closed.cannot_link.tolist() == [[2, 10**15], [5, 10**15], [10**12, 10**15]]


def test_closure_refuses_contradictions_and_far_too_many_pairs():
    with pytest.raises(ConflictingPairsError, match=r"pairs\[1\] = \(0, 1\) .* call without_conflicts\(\) first"):
        Pairs([(0, 1), (0, 1)], [True, False]).closure()
    chain = np.column_stack((np.arange(20_000), np.arange(1, 20_001)))
    with pytest.raises(InvalidPairsError, match="the closure has 200010000 pairs, more than 50000000; give fewer"):
        Pairs.from_lists(chain).closure()


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
    with caplog.at_level(logging.INFO, logger="pairmargin"):
        Pairs(np.repeat([(i, i + 50) for i in range(12)], 2, axis=0), [True, False] * 12).without_conflicts()
    assert caplog.messages[1].startswith("dropped 12 of 24 answers")
    assert caplog.messages[1].endswith("pairs[19] = (9, 59), …")


def test_resolve():
    pairs = Pairs([(i, i + 50) for i in range(5) for _ in range(2)], [True, False] * 5)
    assert pairs.resolve("keep") is pairs
    assert pairs.resolve("drop") == pairs[pairs.same]
    with pytest.raises(ConflictingPairsError) as caught:
        pairs.resolve("raise")
    told = [
        f'pairs[{2 * k + 1}] = ({k}, {k + 50}) is "different" but pairs[{2 * k}] = ({k}, {k + 50}) says "same"'
        for k in range(3)
    ]
    way_out = 'remove one of them, or pass on_conflict="drop" or "keep"'
    assert str(caught.value) == "; ".join([*told, "and 2 more", way_out])
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


# Holding out


@prove
@given(any_answers.filter(lambda answers: len(build(answers)) > 1), st.data())
def test_split_shares_the_pairs_evenly(answers, data):
    pairs = build(answers)
    n_test = data.draw(st.integers(1, len(pairs) - 1))
    train, test = pairs.split(n_test, random_state=data.draw(st.integers(0, 10)))
    assert (len(train), len(test)) == (len(pairs) - n_test, n_test)
    assert train + test == pairs
    assert abs(test.same.sum() - n_test * pairs.same.mean()) <= 0.5


def test_split_by_share_and_at_random():
    pairs = sample_pairs(np.arange(40) % 4, 100, random_state=0)
    assert [len(part) for part in pairs.split(random_state=0)] == [50, 50]
    assert [len(part) for part in pairs.split(0.1, random_state=0)] == [90, 10]
    assert [len(part) for part in pairs.split(1e-9, random_state=0)] == [99, 1]
    assert [len(part) for part in pairs.split(1 - 1e-9, random_state=0)] == [1, 99]
    assert pairs.split(random_state=3) == pairs.split(random_state=np.random.RandomState(3))
    assert pairs.split(random_state=3) != pairs.split(random_state=4)


@pytest.mark.parametrize("test_size", [0, 3, -1, 4, 0.0, 1.0, 1.5, -0.5, np.nan, True, "half", None])
def test_split_refuses_nonsense(test_size):
    with pytest.raises(InvalidParameterError, match="test_size should be"):
        Pairs([(0, 1), (0, 2), (0, 3)], [True, False, False]).split(test_size)


def test_split_needs_two_pairs():
    with pytest.raises(InvalidPairsError, match="1 pairs cannot be split in two; at least 2 are needed"):
        Pairs([(0, 1)], [True]).split()


# Drawing


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
        monkeypatch.setattr(pair_arithmetic, "MAX_PAIRS", 0)
    times = np.zeros((7, 7))
    for _ in range(n_draws):
        i, j = sample_pairs(y, n, balanced=balanced, random_state=rng).index.T
        times[i, j] += 1
    kinds = [(every.must_link, (n + 1) // 2), (every.cannot_link, n // 2)] if balanced else [(every.index, n)]
    for index, n_kind in kinds:
        share = n_kind / len(index)
        spread = np.sqrt(n_draws * share * (1 - share))
        assert np.abs(times[*index.T] - n_draws * share).max() <= 3.5 * spread


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
    assert pair_arithmetic.places_within(rank, np.array([b + 1])).tolist() == [[a], [b]]

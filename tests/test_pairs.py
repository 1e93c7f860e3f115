"""Pairs: the value, what they accept and refuse, and how they are held out."""

from __future__ import annotations

import copy
import itertools
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pair_strategies import N, any_answers, as_dict, build, labels, prove

from pairmargin.exceptions import InvalidPairsError, InvalidParameterError
from pairmargin.pairs import Pairs, sample_pairs

DATA = Path(__file__).parent / "data"

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
        Pairs([(5, 6), (9, 4), (0, 1)], [True] * 3, n_samples=9)
    pairs = Pairs([(5, 6), (9, 4), (0, 1)], [True] * 3, n_samples=10)
    for refuse in (lambda: Pairs.check(pairs, 9), lambda: pairs.components(9)):
        with pytest.raises(InvalidPairsError, match=message):
            refuse()


def test_check_is_the_gate_of_the_estimators():
    pairs = Pairs([(0, 1), (1, 2)], [True, False], [1.0, 2.0])
    assert Pairs.check(pairs, 3) is pairs
    assert Pairs.check((pairs.index, pairs.same, pairs.weight), 3) == pairs
    assert Pairs.check((pairs.index, pairs.same), 3) == Pairs(pairs.index, pairs.same)
    assert Pairs.check(None, 3) == Pairs.empty()
    with pytest.raises(InvalidPairsError, match=r"not ndarray; make them .*, Pairs.from_lists, .* Pairs.read_csv$"):
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
    with pytest.raises(InvalidPairsError, match=r"^sign has shape \(1, 2\); give one value for each pair"):
        Pairs.from_signed([(0, 1), (0, 2)], [[1, -1]])


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
        ({"a": [[0]], "b": [1], "same": [True]}, r"^a has shape \(1, 1\); give one value for each pair"),
        ({"a": [0], "b": [1], "same": [[True]]}, r"^same has shape \(1, 1\); give one value for each pair"),
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
        ("a,b,same\n1,2,yes\n1_0,3,no\n", r"line 3 of odd\{\}.csv: \('1_0', 3\) should be two whole numbers"),
        ("a,b,same,weight\n1,2,yes,1_0\n", r"line 2 of odd\{\}.csv: '1_0' is no weight"),
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


@pytest.mark.parametrize(
    ("test_size", "wanted"),
    [
        *((test_size, "between 1 and 2 pairs") for test_size in (0, 3, -1, 4)),
        *((size, "a number of pairs or a share") for size in (0.0, 1.0, 1.5, -0.5, np.nan, True, "half", None)),
    ],
)
def test_split_refuses_nonsense(test_size, wanted):
    with pytest.raises(InvalidParameterError, match=f"^test_size should be {wanted}.*, not {test_size!r}$"):
        Pairs([(0, 1), (0, 2), (0, 3)], [True, False, False]).split(test_size)


def test_split_needs_two_pairs():
    with pytest.raises(InvalidPairsError, match="1 pairs cannot be split in two; at least 2 are needed"):
        Pairs([(0, 1)], [True]).split()


# From other libraries, and in notebooks

POINTS = np.array([[0.0, 1.0], [0.5, 1.0], [9.0, 8.0], [-0.0, 4.0]])


def test_metric_learn_gives_row_numbers_or_points():
    wanted = Pairs([(0, 1), (1, 2), (2, 3)], [True, False, False])
    index, y = np.array([[0, 1], [2, 1], [3, 2]]), [1, -1, -1]
    assert Pairs.from_metric_learn(index, y) == wanted
    assert Pairs.from_metric_learn(POINTS[index], y, POINTS) == wanted
    assert Pairs.from_metric_learn(POINTS[index] + 0.0, np.array(y), pd.DataFrame(POINTS)) == wanted  # −0.0 is 0.0
    assert Pairs.from_metric_learn(POINTS.astype(np.float32)[index], y, POINTS) == wanted  # numbers without rounding


def test_metric_learn_gives_four_arrays():
    wanted = Pairs.from_lists([(0, 1), (2, 3)], [(0, 4)])
    assert Pairs.from_positive_negative(np.array([0, 2]), np.array([1, 3]), np.array([0]), np.array([4])) == wanted
    assert Pairs.from_positive_negative([], [], [], []) == Pairs.empty()
    with pytest.raises(InvalidPairsError, match="a and b have 2 and 1 rows; give two rows for each pair"):
        Pairs.from_positive_negative([0, 2], [1], [], [])
    with pytest.raises(InvalidPairsError, match=r"^c and d have 2 and 1 rows; give two rows for each pair"):
        Pairs.from_positive_negative([], [], [0, 2], [1])
    for place, name in enumerate("abcd"):
        arrays: list[list[object]] = [[], [], [], []]
        arrays[place] = [[0, 1]]
        with pytest.raises(InvalidPairsError, match=rf"^{name} has shape \(1, 2\); give one value"):
            Pairs.from_positive_negative(*arrays)


def test_active_semi_supervised_clustering_gives_two_lists():
    pairwise_constraints_ = ([(0, 1), (1, 0), (2, 3)], [(0, 2)])
    assert Pairs.from_lists(*pairwise_constraints_) == Pairs([(0, 1), (2, 3), (0, 2)], [1, 1, 0], [2, 1, 1])


def test_points_are_looked_up_without_rounding():
    large = np.array([[2**53], [2**53 + 1]])  # one and the same in floating point
    assert Pairs.from_metric_learn(large[[[0, 1]]], [1], large) == Pairs([(0, 1)], [True])
    tenths = np.array([[0.1], [0.2]])
    for points, X in ((tenths, tenths.astype(np.float32)), (tenths.astype(np.float32), tenths)):
        with pytest.raises(InvalidPairsError, match="is no row of X, to the last bit"):
            Pairs.from_metric_learn(points[[[0, 1]]], [1], X)


@pytest.mark.parametrize(
    ("points", "X", "message"),
    [
        (POINTS[[[0, 1]]], None, r"pairs has shape \(1, 2, 2\): these are points; pass X to look up their rows"),
        (POINTS[[[0, 1]]] + 1e-9, POINTS, r"pairs\[0\]\[0\] is no row of X, to the last bit; give row numbers"),
        (POINTS[[[0, 1], [2, 1]]], POINTS[[0, 1, 2, 2]], r"pairs\[1\]\[0\] is rows 2 and 3 of X; give row numbers"),
        (POINTS[[[0, 1]]], POINTS[:, :1], r"pairs has shape \(1, 2, 2\) but X has shape \(4, 1\)"),
        (POINTS[[[0, 1, 2]]], POINTS, r"pairs has shape \(1, 3, 2\) but X has shape \(4, 2\)"),
    ],
)
def test_points_that_are_not_exactly_one_row_are_refused(points, X, message):
    with pytest.raises(InvalidPairsError, match=message):
        Pairs.from_metric_learn(points, np.ones(len(points)), X)


def test_notebooks_show_counts_and_the_first_answers(tmp_path):
    pairs = Pairs.from_labels(np.arange(12) % 3)
    page = pairs._repr_html_()
    assert "66 answers</strong> about 12 rows" in page
    assert "18 same" in page
    assert "48 different" in page
    assert page.count("<tr>") == 1 + 8
    assert "… and 58 more" in page
    assert (">weight<" in page, page.count("<td")) == (False, 8 * 4)
    assert "contradicted" not in page
    assert "more" not in pairs[:8]._repr_html_()
    odd = tmp_path / "<b>odd & even.csv"
    Pairs([(4, 6), (6, 9), (9, 4)], [True, True, False], [1, 2, 0.5]).to_csv(odd)
    page = Pairs.read_csv(odd)._repr_html_()
    assert "line 2 of &lt;b&gt;odd &amp; even.csv" in page
    assert "<b>" not in page
    assert "1 contradicted" in page
    assert ">0.5<" in page
    assert (">weight<" in page, page.count("<td")) == (True, 3 * 5)
    assert "1 answer</strong> about 2 rows" in Pairs([(0, 1)], [True])._repr_html_()
    assert "<table" not in Pairs.empty()._repr_html_()


def test_notebooks_show_answers_as_they_were_looked_at_once():
    """The page in tests/data was opened in a browser, on white and on black; after a change, look at it again."""
    page = Pairs([(4, 6), (6, 9), (9, 4)], [True, True, False], [1, 2, 0.5])._repr_html_()
    assert page + "\n" == (DATA / "pairs-in-a-notebook.html").read_text(encoding="utf-8")


def test_notebooks_show_plain_words_and_do_not_search_many_answers(monkeypatch):
    page = Pairs([(0, 1), (0, 2)], [True, False])._repr_html_()
    assert "●</span> 1 same</span> <span" in page
    assert page.endswith("</table></div>")
    assert ">pairs[1]<" in page
    assert Pairs.empty()._repr_html_().endswith("different</span></div></div>")
    torn = Pairs([(0, 1), (1, 2), (2, 0)], [True, True, False])
    for few, is_said in ((3, True), (2, False)):
        monkeypatch.setattr("pairmargin.pairs.pairs.FEW", few)
        assert ("1 contradicted" in torn._repr_html_()) == is_said


def test_rows_to_score_stay_in_their_order_and_are_checked():
    for index in ([(3, 1), (0, 2)], np.array([(3.0, 1.0), (0.0, 2.0)])):
        rows = Pairs.check_rows(index, 4)
        assert (rows.tolist(), rows.dtype) == ([[3, 1], [0, 2]], np.int64)
    pairs = Pairs([(3, 1), (0, 2)], [True, False])
    rows = Pairs.check_rows(pairs, 4)
    assert rows.tolist() == pairs.index.tolist()
    rows[0] = 0  # theirs to change
    assert pairs.index.tolist() == [[0, 2], [1, 3]]
    for nothing in ([], np.empty((0, 2)), Pairs.empty()):
        assert Pairs.check_rows(nothing, 4).shape == (0, 2)
    for index in ([(3, 1)], pairs):
        with pytest.raises(InvalidPairsError, match="names row 3 but the data has 3 rows"):
            Pairs.check_rows(index, 3)

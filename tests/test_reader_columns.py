"""Columns of a table as features: what each kind becomes, what is left out, and that all of it is said."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairmargin import InvalidDataError
from pairmargin.readers.columns import LEVELS, Columns, learn_columns

pa = pytest.importorskip("pyarrow")


class File:
    """Stands in for a file."""

    path = Path("x.parquet")

    def place(self, row: int) -> str:
        return f"row {row} of x.parquet"


def learn(**columns):
    table = pa.table(
        {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    )
    plan, notes = learn_columns(table, File(), chosen=False)
    features, filled, _ = plan.apply(table, File(), 0)
    return plan, features, notes + filled


def test_plain_numbers_are_left_as_they_are():
    values = [1.5, 2.5, 9.0], [100, 250, -3]
    plan, features, notes = learn(a=values[0], b=values[1])
    assert np.array_equal(features, np.column_stack(values).astype(np.float32))
    assert notes == ["2 columns used, 2 features."]
    assert plan.features == ["a", "b"]


def test_numbers_beside_categories_have_mean_0_and_variance_1():
    rng = np.random.default_rng(0)
    income, city = rng.normal(50_000, 9_000, 500), rng.choice(list("abc"), 500)
    _, features, notes = learn(income=income, city=city)
    assert np.allclose([features[:, 0].mean(), features[:, 0].std()], [0, 1], atol=1e-5)
    assert set(np.unique(features[:, 1:])) == {0, 1}
    assert (features[:, 1:].sum(axis=1) == 1).all()
    assert "brought to mean 0 and variance 1, to go with the other columns: income." in notes


def test_a_category_weighs_as_much_as_a_number():
    rng = np.random.default_rng(0)
    _, features, _ = learn(income=rng.normal(50_000, 9_000, 4000), city=rng.choice(list("abcdefgh"), 4000))
    apart = ((features[::2] - features[1::2]) ** 2).mean(axis=0)
    assert apart[0] == pytest.approx(2, rel=0.15)  # of the number
    assert apart[1:].sum() == pytest.approx(2, rel=0.15)  # of the category, nearly always another one


def test_flags_dates_and_times_become_numbers():
    days = [datetime.date(1970, 1, 1), datetime.date(1970, 1, 3), datetime.date(1970, 1, 11)]
    plan, features, notes = learn(ok=[True, False, None], day=days, at=[datetime.time(0, 0, k * k) for k in (1, 2, 3)])
    assert features[:, 0].tolist() == [1, 0, 0]
    assert np.allclose(features[:, 1], (np.array([0, 2, 10]) - 4) / np.std([0, 2, 10]))
    assert [column.kind for column in plan.columns] == ["flag", "date", "time"]
    assert "dates as numbers of days: day." in notes
    assert "times of day as numbers of seconds: at." in notes
    assert "ok: 1 missing value filled in with the more frequent value, False." in notes


def test_missing_numbers_are_the_median_and_missing_levels_their_own():
    _, features, notes = learn(x=[1.0, None, 2.0, 9.0], c=["a", None, "a", "b"])
    assert features[1, 0] == features[2, 0]
    assert features[:, 1:].tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert "c: 2 levels as 3 features of 0 or 1, 1 row without a value as (missing)." in notes
    assert "x: 1 missing value filled in with the median, 2." in notes


def test_a_missing_date_is_told_as_a_date():
    days = [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 3), datetime.date(2020, 2, 3)]
    notes = learn(day=days, c=list("abab"))[2]
    assert "day: 1 missing value filled in with the median, 2020-01-03T00:00:00." in notes


def test_rare_levels_go_together():
    cities = ["Rome"] * 500 + ["Oslo"] * 400 + [f"village {k}" for k in range(100)]
    plan, features, notes = learn(city=cities, x=np.arange(1000.0) ** 2)
    assert plan.features[:3] == ["city = Oslo", "city = Rome", "city = (other)"]
    assert features[:, :3].sum(axis=0).tolist() == [400, 500, 100]
    assert "city: 102 levels as 3 features of 0 or 1, its 100 rare ones together as (other)." in notes


def test_a_single_rare_level_stays():
    assert learn(c=["a"] * 500 + ["b"] * 499 + ["c"])[0].features == ["c = a", "c = b", "c = c"]


def test_no_more_levels_than_the_limit():
    many = [f"level {k:02}" for k in range(40) for _ in range(5 if k >= 30 else 50)]
    plan = learn(c=many)[0]
    assert len(plan.features) == LEVELS + 1
    assert plan.features[-1] == "c = (other)"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["a", "a", "a"], "the same in every row"),
        ([4, 4, 4], "the same in every row"),
        ([4, None, 4], "the same wherever there is a value"),
        ([None, None, None], "without a single value"),
        (pa.array([None, None, None], pa.string()), "without a single value"),
        ([7, 8, 9], "it counts the rows; name it in columns= to use it"),
        (["x1", "x2", "x3"], "text that is different in every row; pass text=COLUMN to learn from it"),
        ([[1], [2], [3]], r"list<item: int64> cannot be a feature"),
        ([b"1", b"2", b"2"], "binary cannot be a feature"),
    ],
)
def test_what_says_nothing_is_left_out_and_named(values, reason):
    notes = learn(useful=[1, 5, 9], odd=values)[2]
    assert f"left out: odd ({reason})." in notes
    with pytest.raises(InvalidDataError, match=r"x\.parquet has no column to learn from; left out: odd"):
        learn(odd=values)


def test_free_text_is_left_out_though_some_of_it_comes_twice():
    notes = learn(x=[k * k for k in range(200)], said=[f"text {k // 2}" for k in range(200)])[2]
    assert "left out: said (text with too many different values; pass text=COLUMN to learn from it)." in notes


def test_a_word_among_numbers_is_named():
    notes = learn(x=[k * k for k in range(90)], age=["unknown" if k % 9 == 0 else str(k / 2) for k in range(90)])[2]
    assert "left out: age (numbers, but for 'unknown'; correct it, or leave the cell empty)." in notes


def test_columns_that_are_left_out_are_told_together():
    notes = learn(x=[1, 5, 9], **{f"c{k}": [1, 1, 1] for k in range(9)})[2]
    assert "left out: c0, c1, c2, c3, c4 and 4 more (the same in every row)." in notes


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0.1, 0.2, 0.3], np.float32),
        ([1000.0, 1001.0, 1002.0], np.float32),
        ([1.7e9, 1.7e9 + 1, 1.7e9 + 2], np.float64),  # float32 would make them one number
        ([1e300, -1e300, 5], np.float64),
        ([1e-60, 2e-60, 3e-60], np.float64),
        ([2**60, 2**60 + 512, 2**60 + 2048], np.float64),
    ],
)
def test_single_precision_unless_it_would_lose_the_values(values, dtype):
    _, features, notes = learn(x=values)
    assert features.dtype == dtype
    assert len(np.unique(features)) == 3
    assert any("double precision" in note for note in notes) == (dtype == np.float64)


def test_what_is_standardised_is_safe_in_single_precision():
    _, features, _ = learn(x=[1.7e9, 1.7e9 + 1, 1.7e9 + 2.5], c=["a", "b", "a"])
    assert features.dtype == np.float32
    assert np.allclose(features[:, 0], (np.array([0, 1, 2.5]) - 3.5 / 3) / np.std([0, 1, 2.5]), atol=1e-5)


def test_a_number_that_single_precision_cannot_hold_is_named():
    plan = learn(x=[1.0, 2.0, 5.0])[0]
    with pytest.raises(InvalidDataError, match=r"row 7 of x\.parquet has 1e\+200 for 'x', too large"):
        plan.apply(pa.table({"x": [1.0, 1e200]}), File(), 6)


def test_text_where_a_number_should_be_is_named():
    plan = learn(x=[1.0, 2.0, 5.0])[0]
    with pytest.raises(InvalidDataError, match=r"'x' should be a number, but from row 0 of x\.parquet on it is string"):
        plan.apply(pa.table({"x": ["one", "two"]}), File(), 0)


def test_levels_that_are_new_are_counted():
    plan = learn(c=["a", "b", "a", "b"], d=["x", "y", "x", "y"])[0]
    features, _, new = plan.apply(pa.table({"c": ["z", "a", "z"], "d": ["x", None, "y"]}), File(), 0)
    assert features.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert new == [
        "c: 2 values of no level of the recipe, such as z: all zeros.",
        "d: 1 value of no level of the recipe, such as (missing): all zeros.",
    ]


def test_new_levels_are_other_where_there_is_one():
    plan = learn(city=["Rome"] * 500 + ["Oslo"] * 400 + [f"village {k}" for k in range(100)])[0]
    features, _, new = plan.apply(pa.table({"city": ["Rome", "Paris"]}), File(), 0)
    assert features.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert new == ["city: 1 value of no level of the recipe, such as Paris: counted as (other)."]


@settings(deadline=None, max_examples=50)
@given(
    x=st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), min_size=6, max_size=6),
    c=st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=6, max_size=6),
)
def test_columns_come_back_from_their_state(x, c):
    plan, features, _ = learn(x=x, c=c, base=[1, 4, 9, 16, 25, 36])
    again = Columns.from_state(plan.state())
    assert again == plan
    table = pa.table({"base": [1, 4, 9, 16, 25, 36], "c": pa.array(c, pa.string()), "x": pa.array(x, pa.float64())})
    assert np.array_equal(again.apply(table, File(), 0)[0], features)
    assert features.shape[1] == len(plan.features)


@settings(deadline=None, max_examples=30)
@given(rows=st.integers(1, 20))
def test_blocks_of_any_size_give_the_same(rows):
    table = pa.table({"x": [k * k % 7 for k in range(20)], "c": [["a", "b", None][k % 3] for k in range(20)]})
    plan, _ = learn_columns(table, File(), chosen=False)
    chunked = pa.concat_tables([table.slice(k, rows) for k in range(0, 20, rows)])
    assert np.array_equal(plan.apply(chunked, File(), 0)[0], plan.apply(table, File(), 0)[0])

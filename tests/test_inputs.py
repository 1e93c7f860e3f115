"""Which visible units the data calls for, and how it is scaled."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import StandardScaler, minmax_scale, normalize

from pairmargin.exceptions import InvalidDataError
from pairmargin.inputs import BINARY, GAUSSIAN, DenseInput, Scaling, SparseInput, choose_visible, pieces
from pairmargin.stored import stored_rows

CPU = torch.device("cpu")
FORMATS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


def filled(scaling: Scaling, x: np.ndarray | sp.csr_array) -> np.ndarray:
    """The scaled data as one dense matrix."""
    return scaling.apply(x, CPU).rows(slice(None)).numpy()


def counts(n: int = 60, n_features: int = 5, seed: int = 0) -> np.ndarray:
    """Whole numbers, half of them 0, on a different scale in each column."""
    rng = np.random.default_rng(seed)
    return rng.poisson(3, (n, n_features)) * (rng.random((n, n_features)) < 0.5) * 10.0 ** np.arange(n_features)


# Principal components


def principal(x: np.ndarray, n: int) -> np.ndarray:
    return PCA(n, random_state=0).fit_transform(x)


@pytest.mark.parametrize(
    "make",
    [
        lambda: principal(load_digits().data, 30),
        lambda: principal(load_digits().data, 30).astype(np.float32),
        lambda: normalize(principal(load_digits().data, 30)),
        lambda: TruncatedSVD(30, random_state=0).fit_transform(load_digits().data),
        lambda: principal(load_wine().data, 13),
    ],
    ids=["PCA", "float32", "PCA, rows of length 1", "SVD", "few rows"],
)
def test_principal_components_are_divided_by_one_number(make: Callable[[], np.ndarray]) -> None:
    x = make()
    scaling = Scaling.learn(x, "auto")
    assert scaling.visible == GAUSSIAN
    assert np.ptp(scaling.scale) == 0
    scaled = filled(scaling, x)
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-4)
    assert scaled.var(0).mean() == pytest.approx(1, rel=1e-4)
    assert scaled.var(0)[0] > 4 * scaled.var(0)[-1]  # the first still tells more than the last


def independent(order: int) -> np.ndarray:
    """Columns of many units that have nothing to do with each other, in falling order or as they come."""
    scale = 10.0 ** -np.arange(8) if order else 10.0 ** np.array([3, -2, 5, 0, 4, -1, 2, 1])
    return np.random.default_rng(0).normal(size=(200, 8)) * scale


@pytest.mark.parametrize(
    "make",
    [
        lambda: load_wine().data,
        lambda: load_wine().data[:, np.argsort(-load_wine().data.var(0))],
        lambda: principal(load_digits().data, 30)[:, ::-1],
        lambda: StandardScaler().fit_transform(principal(load_digits().data, 30)),
        lambda: independent(order=0),
        lambda: independent(order=1),
        lambda: np.random.default_rng(0).normal(size=(50, 2)) * [9, 1],
        lambda: np.zeros((5, 4)),
    ],
    ids=["a table", "in order", "backwards", "whitened", "independent", "independent in order", "two", "constant"],
)
def test_other_columns_are_standardised_one_by_one(make: Callable[[], np.ndarray]) -> None:
    x = make()
    scaling = Scaling.learn(x, GAUSSIAN)
    np.testing.assert_allclose(scaling.scale, StandardScaler().fit(x).scale_)


def test_columns_of_one_variance_have_no_order(recwarn: pytest.WarningsRecorder) -> None:
    """Nor does scipy get to say so, in words that nobody understands."""
    pattern = np.array([[0.0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
    assert Scaling.learn(np.tile(pattern, (5, 1)) - 0.5, "gaussian").scale.tolist() == [0.5, 0.5, 0.5]
    assert not recwarn.list


def test_constant_columns_between_principal_components_do_no_harm() -> None:
    x = np.insert(principal(load_digits().data, 20), [3, 9], 7.0, axis=1)
    scaling = Scaling.learn(x, "auto")
    assert np.ptp(scaling.scale) == 0
    assert np.isfinite(filled(scaling, x)).all()


# The choice


def off_or_on() -> np.ndarray:
    return (np.random.default_rng(0).random((100, 6)) < [0.01, 0.1, 0.3, 0.5, 0.9, 1.0]).astype(float)


@pytest.mark.parametrize(
    ("make", "expected", "scale"),
    [
        (off_or_on, BINARY, 1.0),
        (lambda: load_digits().data / 16, BINARY, 1.0),
        (lambda: load_digits().data, BINARY, 16.0),
        (lambda: load_wine().data, GAUSSIAN, None),
        (lambda: minmax_scale(load_wine().data), GAUSSIAN, None),
        (lambda: StandardScaler().fit_transform(load_wine().data), GAUSSIAN, None),
        (lambda: StandardScaler().fit_transform(load_digits().data), GAUSSIAN, None),
        (lambda: load_digits().data - 1, GAUSSIAN, None),
        (lambda: np.zeros((4, 3)), GAUSSIAN, None),
        (lambda: np.full((4, 3), 7.0), GAUSSIAN, None),
    ],
    ids=[
        "0 or 1",
        "digits from 0 to 1",
        "digits from 0 to 16",
        "wine",
        "wine from 0 to 1",
        "wine, standardised",
        "digits, standardised",
        "digits below 0",
        "all 0",
        "all 7",
    ],
)
@FORMATS
def test_automatic_choice(make, expected: str, scale: float | None, form) -> None:
    scaling = Scaling.learn(form(make()), "auto")
    assert scaling.visible == expected
    if scale is not None:
        np.testing.assert_array_equal(scaling.scale, scale)  # one for all columns
        assert not scaling.shift.any()


@pytest.mark.parametrize(("name", "expected"), [("sonar", GAUSSIAN), ("mnist", BINARY), ("coil20", GAUSSIAN)])
def test_automatic_choice_on_the_paper_s_data(name: str, expected: str) -> None:
    if "PAIRMARGIN_DATA" not in os.environ:
        pytest.skip("PAIRMARGIN_DATA is not set")
    from pairmargin import load_dataset

    assert Scaling.learn(load_dataset(name).data, "auto").visible == expected


def test_share_of_the_possible_variance_by_hand() -> None:
    """A column that is 0 or 1 has all of m(1 − m), a constant one between them none; the sums are compared."""
    on_off, constant = np.array([0.5, 0.25]), np.array([0.5, 0.0])
    assert choose_visible(on_off[:1], on_off[1:], 0, 1) == BINARY  # share 1
    assert choose_visible(constant[:1], constant[1:], 0, 1) == GAUSSIAN  # share 0
    one_in = [np.array(column) for column in zip(on_off, constant, strict=True)]
    assert choose_visible(*one_in, 0, 1) == BINARY  # share 1/2
    one_in = [np.array(column) for column in zip(on_off, *[constant] * 2, strict=True)]
    assert choose_visible(*one_in, 0, 1) == GAUSSIAN  # share 1/3


def test_what_counts_is_the_share_on_one_scale_for_all() -> None:
    x = off_or_on()
    for unit in (2.0, 255.0, 1e6):
        assert choose_visible((unit * x).mean(0), (unit * x).var(0), 0, unit) == BINARY
    faint = x * 0.01  # far from "on" on the scale of 0 to 1, which is never stretched
    assert choose_visible(faint.mean(0), faint.var(0), 0, 0.01) == GAUSSIAN


def test_one_negative_value_is_enough_for_gaussian_units() -> None:
    x = off_or_on()
    assert choose_visible(x.mean(0), x.var(0), -1e-9, 1) == GAUSSIAN


# The scaling


@FORMATS
def test_gaussian_units_get_columns_of_mean_0_and_variance_1(form) -> None:
    x = counts()
    z = filled(Scaling.learn(form(x), GAUSSIAN), form(x))
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(z.var(0), 1, rtol=1e-12)


@FORMATS
def test_binary_units_get_one_scale_so_that_a_faint_column_stays_faint(form) -> None:
    x = counts()
    z = filled(Scaling.learn(form(x), BINARY), form(x))
    np.testing.assert_allclose(z, x / x.max(), rtol=1e-12)


@FORMATS
def test_what_is_mostly_on_is_turned_around_for_binary_units(form) -> None:
    x = counts()
    dark = x.max() - x  # ink on white paper
    assert dark.mean() > x.max() / 2
    z = filled(Scaling.learn(form(dark), BINARY), form(dark))
    np.testing.assert_allclose(z, x / x.max(), rtol=1e-12, atol=1e-12)


@FORMATS
def test_numbers_below_one_are_not_stretched_for_binary_units(form) -> None:
    x = 0.3 * off_or_on()
    np.testing.assert_allclose(filled(Scaling.learn(form(x), BINARY), form(x)), x, rtol=1e-12)


@FORMATS
@pytest.mark.parametrize("visible", [BINARY, GAUSSIAN])
def test_scaling_is_remembered_and_used_on_other_data(visible: str, form) -> None:
    x, other = counts(seed=0), 2 * counts(n=7, seed=1) + 1
    scaling = Scaling.learn(form(x), visible)
    expected = (other - x.mean(0)) / x.std(0) if visible == GAUSSIAN else other / x.max()
    np.testing.assert_allclose(filled(scaling, form(other)), expected, rtol=1e-10)


@FORMATS
def test_asking_for_a_kind_overrules_the_automatic_choice(form) -> None:
    assert Scaling.learn(form(off_or_on()), GAUSSIAN).visible == GAUSSIAN
    assert Scaling.learn(form(load_wine().data), BINARY).visible == BINARY


@FORMATS
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9, -3.0])
def test_constant_columns_are_left_at_zero(constant: float, form) -> None:
    x = counts()
    x[:, 2] = constant
    z = filled(Scaling.learn(form(x), GAUSSIAN), form(x))
    np.testing.assert_allclose(z[:, 2], 0, atol=1e-6)
    np.testing.assert_allclose(np.delete(z, 2, axis=1).var(0), 1, rtol=1e-10)
    beyond = x + 1  # a column that was constant must not explode where it is not
    assert np.abs(filled(Scaling.learn(form(x), GAUSSIAN), form(beyond))[:, 2]).max() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("visible", ["auto", BINARY, GAUSSIAN])
def test_sparse_equals_dense(visible: str, dtype: type) -> None:
    for seed in range(5):
        x = counts(seed=seed).astype(dtype)
        dense, sparse = Scaling.learn(x, visible), Scaling.learn(sp.csr_array(x), visible)
        assert dense.visible == sparse.visible
        np.testing.assert_allclose(sparse.shift, dense.shift, rtol=1e-5)
        np.testing.assert_allclose(sparse.scale, dense.scale, rtol=1e-5)
        np.testing.assert_allclose(filled(sparse, sp.csr_array(x)), filled(dense, x), atol=1e-5)


@FORMATS
@pytest.mark.parametrize("learned", [np.float32, np.float64])
@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_result_has_the_dtype_of_the_data_at_hand(learned: type, given: type, form) -> None:
    x = counts()
    scaling = Scaling.learn(form(x.astype(learned)), GAUSSIAN)
    assert scaling.shift.dtype == scaling.scale.dtype == learned
    z = filled(scaling, form(x.astype(given)))
    assert z.dtype == given
    np.testing.assert_allclose(z, (x - x.mean(0)) / x.std(0), atol=1e-4)


def test_sparse_data_is_never_filled_in_and_dense_data_never_written_on() -> None:
    x = counts()
    before = x.copy()
    dense = Scaling.learn(x, GAUSSIAN).apply(x, CPU)
    sparse = Scaling.learn(sp.csr_array(x), GAUSSIAN).apply(sp.csr_array(x), CPU)
    assert isinstance(dense, DenseInput)
    assert isinstance(sparse, SparseInput)
    assert sparse.x.nnz == np.count_nonzero(x)
    dense.x.zero_()
    np.testing.assert_array_equal(x, before)


def test_data_in_column_order_is_scaled_like_any_other() -> None:
    x = counts()
    scaling = Scaling.learn(x, GAUSSIAN)
    found = scaling.apply(np.asfortranarray(x), CPU).rows(slice(None))
    np.testing.assert_allclose(found, filled(scaling, x), rtol=1e-12)
    assert found.is_contiguous()  # rows lie together: every batch picks some


@FORMATS
def test_binary_units_refuse_negative_values_and_say_which(form) -> None:
    x = counts()
    x[3, 1] = -2.5
    with pytest.raises(InvalidDataError, match=r'visible="binary" needs .* not negative, but X has -2\.5; use'):
        Scaling.learn(form(x), BINARY)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_in_half_the_bits_have_three_digits_and_the_type_of_the_data(dtype, tmp_path) -> None:
    x = np.random.default_rng(0).standard_normal((40, 30)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    scaling, full = Scaling.learn(x, GAUSSIAN), Scaling.learn(x, GAUSSIAN).apply(x, CPU)
    stored = scaling.apply(stored_rows(np.load(tmp_path / "x.npy", mmap_mode="r")), CPU, torch.bfloat16)
    weight, bias = torch.randn(30, 5, dtype=full.x.dtype), torch.ones(5, dtype=full.x.dtype)
    other = torch.randn(40, 5, dtype=full.x.dtype)
    for narrow in (scaling.apply(x, CPU, torch.bfloat16), stored.subset(torch.arange(40)), *pieces(stored)):
        assert narrow.x.dtype == torch.bfloat16
        assert narrow.subset(torch.arange(3)).narrow == torch.bfloat16
        for found, wanted in (
            (narrow.times(weight, bias), full.times(weight, bias)),
            (narrow.transposed_times(other), full.transposed_times(other)),
            (narrow.rows(torch.tensor([4, 2])), full.rows(torch.tensor([4, 2]))),
            (torch.from_numpy(narrow.points()), full.rows(slice(None))),
        ):
            assert found.dtype == full.x.dtype
            assert 0 < (found - wanted).abs().max() < 0.02 * wanted.abs().max()


# Layers above data that stays on disk


def test_what_layers_make_of_stored_rows_is_what_they_make_of_rows_in_memory() -> None:
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(11, 6)), [torch.tensor(rng.normal(size=shape)) for shape in ((6, 5), (5, 4), (4, 3))]
    scaling = Scaling.learn(X, GAUSSIAN)
    dense, stored = scaling.apply(X, CPU), scaling.apply(stored_rows(X), CPU)
    for weight in weights:
        bias = torch.arange(weight.shape[1], dtype=torch.float64)
        dense, stored = dense.above(weight, bias), stored.above(weight, bias)
        assert stored.shape == dense.shape
        every, some = dense.rows(slice(None)), torch.tensor([7, 2, 2])
        torch.testing.assert_close(stored.rows(slice(3, 9)), every[3:9])
        torch.testing.assert_close(stored.rows(some), every[some])
        torch.testing.assert_close(stored.subset(some).rows(slice(None)), every[some])
        batches = list(stored.batches(4, torch.Generator().manual_seed(0)))
        assert sorted(torch.cat([numbers for numbers, _ in batches]).tolist()) == list(range(11))
        for numbers, rows in batches:
            torch.testing.assert_close(rows, every[numbers])

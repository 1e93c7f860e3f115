"""Data sets by name: what is there, what is said when it is not."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from pairmargin import DatasetError, list_datasets, load_dataset

KNOWN = {  # rows, columns, classes, size of the largest class
    "glass": (214, 9, 6, 76),
    "wdbc": (569, 30, 2, 357),
    "wine": (178, 13, 3, 71),
    "sonar": (208, 60, 2, 111),
    "segmentation": (2310, 19, 7, 330),
    "mnist": (70_000, 784, 10, 7877),
    "coil20": (1440, 1024, 20, 72),
    "coil100": (7200, 1024, 100, 72),
    "digits": (1797, 64, 10, 183),
    "iris": (150, 4, 3, 50),
}
SHIPPED = ("wdbc", "wine", "digits", "iris")


def test_the_list_is_complete():
    assert list_datasets() == sorted(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_shape_and_classes(name):
    if name not in SHIPPED and "PAIRMARGIN_DATA" not in os.environ:
        pytest.skip("PAIRMARGIN_DATA is not set")
    dataset = load_dataset(name)
    rows, columns, classes, largest = KNOWN[name]
    assert dataset.data.shape == (rows, columns)
    counts = np.bincount(dataset.target)
    assert (len(counts), counts.max()) == (classes, largest)
    assert counts.min() > 0
    assert np.isfinite(dataset.data).all()
    assert dataset.terms


def test_wine_and_wdbc_need_no_file(monkeypatch):
    monkeypatch.delenv("PAIRMARGIN_DATA", raising=False)
    np.testing.assert_array_equal(load_dataset("wine", return_X_y=True)[0], load_wine().data)
    np.testing.assert_array_equal(load_dataset("wdbc", return_X_y=True)[0], load_breast_cancer().data)


def test_our_reading_of_a_file_is_scikit_learn_s_copy():
    if "PAIRMARGIN_DATA" not in os.environ:
        pytest.skip("PAIRMARGIN_DATA is not set")
    X, y = load_dataset("wine", return_X_y=True)
    np.testing.assert_array_equal(X, load_wine().data)
    np.testing.assert_array_equal(y, load_wine().target)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DatasetError, match="there is no data set 'whine'; there are coil100, coil20, digits"):
        load_dataset("whine")


def test_a_missing_file_says_which_and_where(monkeypatch, tmp_path):
    monkeypatch.delenv("PAIRMARGIN_DATA", raising=False)
    with pytest.raises(DatasetError, match=r"glass needs glass/glass\.data in a folder of your choice"):
        load_dataset("glass")
    monkeypatch.setenv("PAIRMARGIN_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"needs the file .*glass\.data; put it there"):
        load_dataset("glass")


def test_a_damaged_file_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PAIRMARGIN_DATA", str(tmp_path))
    (tmp_path / "glass").mkdir()
    (tmp_path / "glass" / "glass.data").write_text("1,2,3\n")
    with pytest.raises(DatasetError, match=r"glass\.data has sha256 .* damaged or another version"):
        load_dataset("glass")

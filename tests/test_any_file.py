"""Whatever a file holds, its readers give items, pairs or a model, or an error of ours.

A hundred damaged files of every kind here; `fuzz_files.py` makes as many as you like, and has atheris look for them.
"""

from __future__ import annotations

from random import Random

import pytest
from file_attempts import READERS, corpus, damaged, read

from pairmargin import InvalidDataError, read_items


@pytest.mark.parametrize("kind", READERS)
def test_files_that_are_kept_are_read_or_refused(kind, tmp_path):
    assert corpus(kind)
    for path in corpus(kind):
        read(kind, path.read_bytes(), tmp_path)


@pytest.mark.parametrize(
    "kind", [kind for kind in READERS if kind != "mat"]
)  # SciPy may end the process at such a file
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    whole = [path.read_bytes() for path in corpus(kind)]
    for case in range(20 if kind == "xlsx" else 100):
        chance = Random(f"{kind} {case}")
        read(kind, damaged(chance.choice(whole), chance), tmp_path)


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf", b"\n" * 30, b"\n" * 30 + b"a,b\n1,2\n3,4\n"])
def test_a_text_table_that_begins_with_nothing_is_refused(content, tmp_path):
    path = tmp_path / "lines.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidDataError, match=r"lines\.csv (is empty|begins with empty lines alone)"):
        read_items(path)


def test_a_parquet_file_with_text_that_is_no_utf_8_is_called_damaged(tmp_path):
    whole = corpus("parquet")[0].read_bytes()
    for name in (b"same", b"b"):
        path = tmp_path / "broken.parquet"
        path.write_bytes(whole.replace(name, b"\x9e" * len(name)))
        with pytest.raises(InvalidDataError, match=r"broken\.parquet"):
            read_items(path)

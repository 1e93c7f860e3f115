"""Answers in files: every format and spelling, ids and row numbers, and what is wrong on which line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_reader_tables import FORMATS, save_by_name

from pairmargin import InvalidDataError, InvalidPairsError, InvalidParameterError, Pairs, read_items, read_pairs

pa = pytest.importorskip("pyarrow")

IDS = ["ann", "bob", "cid", "dora"]
EXPECTED = Pairs([(0, 1), (1, 2), (2, 3)], [True, False, True])


@pytest.fixture
def read(tmp_path):
    def call(content: str | bytes, items=IDS, name="answers.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_pairs(path, items, **options)

    return call


@pytest.mark.parametrize(
    ("same", "different"),
    [
        ("true", "false"),
        ("True", "FALSE"),
        ("1", "0"),
        ("+1", "-1"),
        ("same", "different"),
        ("yes", "no"),
    ],
)
def test_every_spelling(read, same, different):
    assert read(f"a,b,same\nann,bob,{same}\nbob,cid,{different}\ndora,cid,{same}\n") == EXPECTED


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("same", [[True, False, True], [1, 0, 1], [1, -1, 1], ["yes", "no", "yes"], [1.0, -1.0, 1.0]])
@pytest.mark.parametrize("rows", [False, True])
def test_every_format(tmp_path, ending, same, rows):
    ids = [0, 1, 2], [1, 2, 3]
    a, b = ids if rows else ([IDS[k] for k in side] for side in ids)
    path = save_by_name(
        pa.table({"who": ["me"] * 3, "b": b, "same": same, "a": a, "when": [1, 2, 3]}), tmp_path / f"x{ending}"
    )
    assert read_pairs(path, IDS) == EXPECTED
    if rows:
        assert read_pairs(path) == EXPECTED


def test_items_stand_for_their_ids(tmp_path, read):
    (tmp_path / "x.csv").write_text("code,x\n007,1\n008,5\n009,3\n")
    items = read_items(tmp_path / "x.csv", id="code")
    assert read("a,b,same\n007,009,yes\n", items) == Pairs([(0, 2)], [True])
    assert read("a,b,same\n0,2,yes\n", items) == Pairs([(0, 2)], [True])
    with pytest.raises(InvalidPairsError, match=r"line 3 of answers\.csv: '8' is not the id of an item"):
        read("a,b,same\n007,009,yes\n8,009,no\n", items)


def test_ids_that_are_numbers_come_before_row_numbers(read):
    assert read("a,b,same\n3,1,yes\n", ["3", "2", "1"]) == Pairs([(0, 2)], [True])


def test_weights_count(read):
    pairs = read("a,b,same,weight\nann,bob,yes,0.5\nbob,cid,no,2\n")
    assert pairs.weight.tolist() == [0.5, 2]


@pytest.mark.parametrize(("separator", "name"), [("\t", "x.tsv"), (";", "x.csv"), ("|", "x.csv"), ("~", "x.csv")])
def test_every_separator(read, separator, name):
    content = "a,b,same\nann,bob,yes\nbob,cid,no\ndora,cid,yes\n".replace(",", separator)
    assert read(content, name=name, separator="~" if separator == "~" else None) == EXPECTED


def test_encodings_and_blanks(read):
    ids = ["zoë", "ann"]
    content = "\ufeffa, b , same\n zoë, ann ,yes \n\n"
    assert read(content, ids) == Pairs([(0, 1)], [True])
    assert read(content.lstrip("\ufeff").encode("cp1252"), ids, encoding="cp1252") == Pairs([(0, 1)], [True])
    with pytest.raises(
        InvalidPairsError, match=r'answers\.csv is not in utf-8: byte 15 \(0xeb\), on line 2, .*cp1252"'
    ):
        read(content.lstrip("\ufeff").encode("cp1252"), ids)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "a,b,same\nann,bob,yes\nann,bbo,no\n",
            r"line 3 of answers\.csv: 'bbo' is not the id .* \(did you mean 'bob'\?\)",
        ),
        ("a,b,same\nANN,bob,yes\n", r"'ANN' is not the id of an item \(did you mean 'ann'\?\); correct it"),
        ("a,b,same\nann,xyzzy,yes\n", r"'xyzzy' is not the id of an item; correct it"),
        ("a,b,same\n0_0,1,yes\n", r"line 2 of answers\.csv: '0_0' is not the id of an item; correct it"),
        ("a,b,same\nann,,yes\n", r"line 2 of answers\.csv: has no b; give the ids of two items"),
        ("a,b,same\nann,ann,yes\n", r"line 2 of answers\.csv: \(0, 0\) pairs a row with itself"),
        ("a,b,same\nann,bob,perhaps\n", r"line 2 of answers\.csv: 'perhaps' is no answer; use true or false"),
        ("a,b,same\nann,bob,\n", r"line 2 of answers\.csv: None is no answer"),
        ("a,b,same,weight\nann,bob,yes,-1\n", r"line 2 of answers\.csv: -1 is no weight"),
        ("a,b,same\n0,1,yes\n0,4,no\n", r"line 3 of answers\.csv: \(0, 4\) names row 4 but the data has 4 rows"),
        ("a,b\nann,bob\n", r"answers\.csv has no column same; its columns are \['a', 'b'\]"),
        ("a,b,same\nann,bob\n", r"line 2 of answers\.csv has 2 values, but there are 3 columns"),
        ("", r"answers\.csv is empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(read, content, message):
    with pytest.raises(InvalidPairsError, match=message):
        read(content)


def test_a_bad_byte_far_into_the_file_is_said_with_its_line(read):
    content = b"a,b,same\n" + b"ann,bob,yes\n" * 100_000  # more than is looked at to find out how it is written
    with pytest.raises(InvalidPairsError, match=r"answers\.csv is not in utf-8: byte .* \(0xe9\), on line 100002, "):
        read(content + b"ann,ren\xe9,no\n")


def test_a_quote_that_is_not_closed_is_said_with_its_line(read):
    content = 'a,b,same\nann,bob,yes\n"ann,bob,yes\n' + "ann,bob,yes\n" * 12_000
    with pytest.raises(InvalidPairsError, match=r"answers\.csv cannot be read after line 2 .*is a quote not closed\?"):
        read(content)


def test_a_wrong_id_in_a_file_without_lines_is_said_with_its_row(tmp_path):
    path = save_by_name(
        pa.table({"a": ["ann", "ann"], "b": ["bob", "cyd"], "same": [True, False]}), tmp_path / "x.parquet"
    )
    with pytest.raises(
        InvalidPairsError, match=r"row 1 of x\.parquet: 'cyd' is not the id .* \(did you mean 'cid'\?\)"
    ):
        read_pairs(path, IDS)


def test_contradictions_are_told_by_line(read):
    pairs = read("a,b,same\nann,bob,yes\nbob,ann,no\n")
    assert str(pairs.conflicts()[0]) == (
        'line 3 of answers.csv: (0, 1) is "different" but line 2 of answers.csv: (0, 1) says "same"'
    )


def test_no_answers_are_no_pairs(read):
    assert read("a,b,same\n") == Pairs.empty()


def test_files_that_are_no_tables(tmp_path, read):
    with pytest.raises(InvalidParameterError, match=r"answers are read from \.csv, .*, not from x\.npy"):
        read("", name="x.npy")
    with pytest.raises(InvalidDataError, match="there is no file or folder"):
        read_pairs(tmp_path / "nothing.csv")


@settings(deadline=None, max_examples=40)
@given(
    ids=st.lists(
        st.text("abc123 _-,;\"'é", min_size=1, max_size=6).map(str.strip).filter(bool),
        min_size=2,
        max_size=8,
        unique=True,
    ),
    data=st.data(),
)
def test_what_is_written_with_ids_is_read_back(tmp_path_factory, ids, data):
    import csv

    rows = data.draw(
        st.lists(st.tuples(*[st.integers(0, len(ids) - 1)] * 2).filter(lambda pair: pair[0] != pair[1]), min_size=1)
    )
    same = [data.draw(st.booleans()) for _ in rows]
    path = tmp_path_factory.mktemp("answers") / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("a", "b", "same"), *((ids[i], ids[j], word) for (i, j), word in zip(rows, same, strict=True))]
        )
    assert read_pairs(path, ids) == Pairs(np.array(rows), same)

"""Text tables: how they are written is found out, and what is wrong with one is said with its line."""

from __future__ import annotations

import numpy as np
import pytest

from pairmargin import InvalidDataError, InvalidParameterError, read_items

pytest.importorskip("pyarrow")

PLAIN = "a,b\n1,2.5\n3,4.5\n6,0.5\n"
VALUES = [[1, 2.5], [3, 4.5], [6, 0.5]]


@pytest.fixture
def read(tmp_path):
    def call(content: str | bytes, name: str = "x.csv", **options: object):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_items(path, **options)

    return call


@pytest.mark.parametrize(
    ("content", "name", "note"),
    [
        (PLAIN, "x.csv", None),
        (PLAIN.replace("\n", "\r\n"), "x.csv", None),
        ("\n\n" + PLAIN + "\n\n", "x.csv", None),
        (PLAIN.replace(",", ", "), "x.csv", None),
        (PLAIN.replace(",", "\t"), "x.tsv", None),
        (PLAIN.replace(",", "\t"), "x.tab", None),
        (PLAIN, "x.tsv", "x.tsv is separated by commas."),
        (PLAIN.replace(",", ";"), "x.csv", "x.csv is separated by semicolons."),
        (PLAIN.replace(",", "|"), "x.csv", "x.csv is separated by bars."),
        (PLAIN.replace(",", ";").replace(".", ","), "x.csv", "x.csv writes numbers with a decimal comma."),
        (
            PLAIN[4:].replace("2.5", "25e-1"),
            "x.csv",
            "x.csv has no header: its columns are called column 1 to column 2.",
        ),
        (PLAIN.replace("a,b", ",b"), "x.csv", None),
        (PLAIN.replace("a,b", "0,1"), "x.csv", None),  # as pandas names columns
        ('"a","b\nb"\n1,2.5\n3,4.5\n6,0.5\n', "x.csv", None),
    ],
)
def test_every_way_to_write_a_table_gives_the_same_numbers(read, content, name, note):
    items = read(content, name)
    assert items.features.tolist() == VALUES
    assert items.features.dtype == np.float32
    assert (note in items.notes) if note else len(items.notes) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16"])
def test_every_encoding_gives_the_same_text(read, encoding):
    content = "näme,b\ncafé,1\ncafé,2\nthé,4\n".encode(encoding)
    items = read(content, encoding=None if encoding.startswith("utf-8") else encoding)
    assert items.recipe.feature_names == ["näme = café", "näme = thé", "b"]
    # What the user said of the files holds for later ones.
    assert items.recipe.state()[0]["options"] == ({} if encoding.startswith("utf-8") else {"encoding": encoding})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,café\n".encode("latin-1"), r'x\.csv is not in utf-8: byte 9 \(0xe9\), on line 2, .*encoding="cp1252"'),
        (("a,b\n" + "1,x\n" * 400_000).encode() + b"2,\xff\n", r"byte 1600006 \(0xff\), on line 400002"),
        ("é".encode() * 2**19 + b"\n\xff\n", r"byte 1048577 \(0xff\), on line 2"),
        ("café,b\n1,2\n".encode("latin-1"), r"byte 3 \(0xe9\), on line 1"),
        ("a,b\n1,2\n".encode("utf-16"), r'not in utf-8 but perhaps in UTF-16; pass encoding="utf-16"'),
        ("a,b\n1,2\n".encode("utf-16-le"), r'pass encoding="utf-16"'),
    ],
)
def test_a_wrong_encoding_is_shown_byte_and_line(read, content, message):
    with pytest.raises(InvalidDataError, match=message):
        read(content)


def test_an_encoding_that_was_given_and_does_not_fit(read):
    with pytest.raises(InvalidDataError, match=r'not in ascii: byte 9 \(0xc3\), on line 2, .* encoding="utf-8"'):
        read("a,b\n1,café\n", encoding="ascii")
    with pytest.raises(InvalidParameterError, match="encoding='klingon' is not known"):
        read(PLAIN, encoding="klingon")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"x\.csv is empty"),
        (" \n\n", r"x\.csv is empty"),
        ("a,b\n", r"x\.csv has column names but no rows"),
        ("a,b\n1,2\n3,4,5\n", r"line 3 of x\.csv has 3 values, but there are 2 columns"),
        ('a,b\n"two\nlines",2\n\n3\n', r"line 5 of x\.csv has 1 value, but there are 2 columns"),
        ("a,b,a\n1,2,3\n", r"x\.csv has several columns called 'a'"),
        ("a,b\n1,2\n3,-inf\n5,6\n", r"line 3 of x\.csv has -inf for 'b', too large"),
        ('a,b\n"1\n",2\n\n3,inf\n5,6\n', r"line 5 of x\.csv has inf for 'b', too large"),
        ("a,b\nbe quick,or\nnot to be,that\nis the,question\n", r"x\.csv has no column to learn from; .*text=COLUMN"),
        ("a\nto be, or not\n", r"line 2 of x\.csv has 2 values, but there are 1 column"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(read, content, message):
    with pytest.raises(InvalidDataError, match=message):
        read(content)


def test_a_separator_that_was_given_and_does_not_fit(read):
    with pytest.raises(InvalidDataError, match=r"one column with separator=',' but 2 with ';'; pass separator=';'"):
        read(PLAIN.replace(",", ";"), separator=",")
    with pytest.raises(InvalidParameterError, match="separator='::' must be one character"):
        read(PLAIN, separator="::")
    assert read(PLAIN.replace(",", "~"), separator="~").features.tolist() == VALUES


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("old,true,2020-01-01,10:00:00", r"line 3 of new\.csv has 'old' for 'age', which should be a number"),
        ("4,maybe,2020-01-01,10:00:00", r"'maybe' for 'ok', which should be true or false"),
        ("4,true,yesterday,10:00:00", r"'yesterday' for 'day', which should be a date such as"),
        ("4,true,2020-01-01,noon", r"'noon' for 'at', which should be a time such as"),
    ],
)
def test_a_value_that_is_not_what_the_recipe_knows_is_named(read, tmp_path, bad, message):
    header = "age,ok,day,at\n"
    good = "".join(f"{k * k},{'true' if k % 2 else 'false'},2020-01-0{k},1{k}:00:00\n" for k in range(1, 6))
    recipe = read(header + good).recipe
    path = tmp_path / "new.csv"
    path.write_text(header + "1,true,2020-01-01,10:00:00\n" + bad + "\n")
    with pytest.raises(InvalidDataError, match=message):
        recipe.read(path)
    with pytest.raises(InvalidDataError, match=message):
        list(recipe.batches(path, rows=1))


def test_a_row_that_is_too_long_is_refused(read, tmp_path):
    recipe = read("a,b\n1,x\n5,y\n3,x\n").recipe
    (tmp_path / "new.csv").write_text('a,b\n1,"' + "long " * 2**20 + '"\n2,y\n')
    assert len(recipe.read(tmp_path / "new.csv")) == 2
    with pytest.raises(
        InvalidDataError, match=r"new\.csv has a row of more than 16 MB, or 2 MB when it is read in pieces"
    ):
        list(recipe.batches(tmp_path / "new.csv"))


def test_an_empty_file_is_refused_in_pieces_too(read, tmp_path):
    recipe = read(PLAIN).recipe
    (tmp_path / "new.csv").write_text("a,b\n")
    with pytest.raises(InvalidDataError, match="no rows"):
        list(recipe.batches(tmp_path / "new.csv"))


def test_cells_without_a_value_in_many_spellings(read):
    items = read("a,b\n1,x\n?,y\nNA,x\nn/a,NaN\n,y\nnull,x\n4,y\n7,x\n")
    assert "a: 5 missing values filled in with the median, 4." in items.notes
    assert items.recipe.feature_names == ["a", "b = x", "b = y", "b = (missing)"]

"""Tables of every format, their ids, faces and columns."""

from __future__ import annotations

import datetime
import zipfile

import numpy as np
import pytest

from pairmargin import InvalidDataError, InvalidParameterError, NotEnoughMemoryError, enough_memory, read_items
from pairmargin.readers import table_files

pa = pytest.importorskip("pyarrow")
csv, feather, parquet = (pytest.importorskip(f"pyarrow.{name}") for name in ("csv", "feather", "parquet"))
openpyxl = pytest.importorskip("openpyxl")

TABLE = pa.table(
    {
        "name": [f"n{k:02}" for k in range(12)],
        "length": [k * k / 4 for k in range(12)],
        "count": [None if k == 3 else k * k % 7 for k in range(12)],
        "colour": [["red", "blue"][k % 2] for k in range(12)],
        "ok": [k % 3 == 0 for k in range(12)],
        "day": [datetime.datetime(2020, 1, 1) + datetime.timedelta(days=k * k) for k in range(12)],
        "kind": [k % 2 for k in range(12)],
    }
)


def save_excel(table, path, *, sheet="data"):
    book = openpyxl.Workbook()
    book.active.title = sheet
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.create_sheet("empty")
    book.save(path)


def save_by_name(table, path):
    writers = {
        ".csv": csv.write_csv,
        ".parquet": parquet.write_table,
        ".feather": feather.write_feather,
        ".xlsx": save_excel,
    }
    writers[path.suffix](table, path)
    return path


FORMATS = [".csv", ".parquet", ".feather", ".xlsx"]


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_same_items(tmp_path, ending):
    items = read_items(save_by_name(TABLE, tmp_path / f"t{ending}"), id="name", truth="kind")
    first = read_items(save_by_name(TABLE, tmp_path / "t.csv"), id="name", truth="kind")
    assert np.array_equal(items.features, first.features)
    assert items.ids == [f"n{k:02}" for k in range(12)]
    assert items.truth.tolist() == [str(k % 2) for k in range(12)]
    assert items.recipe.feature_names == ["length", "count", "colour = blue", "colour = red", "ok", "day"]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("other", FORMATS)
def test_a_recipe_from_one_format_reads_every_other(tmp_path, ending, other):
    items = read_items(save_by_name(TABLE, tmp_path / f"t{ending}"), id="name", truth="kind")
    path = save_by_name(TABLE.select(TABLE.column_names[::-1]), tmp_path / f"other{other}")
    assert np.array_equal(items.recipe.read(path).features, items.features)
    pieces = list(items.recipe.batches(path, rows=5))
    assert [len(piece) for piece in pieces] == [5, 5, 2]
    assert np.array_equal(np.concatenate([piece.features for piece in pieces]), items.features)
    assert [name for piece in pieces for name in piece.ids] == items.ids


def test_faces_show_what_was_read_in_words(tmp_path):
    path = save_by_name(TABLE, tmp_path / "t.parquet")
    items = read_items(path, id="name", truth="kind", exclude=["ok"])
    assert items.faces[3] == "length: 2.25\ncount: —\ncolour: blue\nday: 2020-01-10 00:00:00"
    assert items.faces[-1].startswith("length: 30.25")
    assert [face[:9] for face in items.faces[:2]] == ["length: 0", "length: 0"]
    with pytest.raises(IndexError):
        items.faces[12]


def test_a_time_finer_than_python_knows_is_shown(tmp_path):
    table = pa.table({"x": [1, 5, 3], "at": pa.array([1, 20, 300], pa.timestamp("ns"))})
    assert "1970-01-01 00:00:00.000000020" in read_items(save_by_name(table, tmp_path / "t.parquet")).faces[1]


def test_two_columns_of_one_name_are_refused_in_parquet(tmp_path):
    parquet.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"]), tmp_path / "t.parquet")
    with pytest.raises(InvalidDataError, match="several columns called 'x'"):
        read_items(tmp_path / "t.parquet")


def test_a_wide_row_is_shown_in_part(tmp_path):
    table = pa.table({f"c{k}": np.random.default_rng(k).normal(size=4) for k in range(50)})
    face = read_items(save_by_name(table, tmp_path / "t.feather")).faces[0]
    assert face.count("\n") == 20
    assert face.endswith("… and 30 more")


def test_ids_keep_their_zeros_and_count_rows_if_there_are_none(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code,x\n007,1\n 08 ,5\n9,3\n")
    assert read_items(path, id="code").ids == ["007", "08", "9"]
    assert read_items(path).ids == ["0", "1", "2"]
    whole = pa.table({"code": [7.0, 8.0, 9.5], "x": [1, 5, 3]})
    assert read_items(save_by_name(whole, tmp_path / "t.parquet"), id="code").ids == ["7", "8", "9.5"]


@pytest.mark.parametrize("ending", FORMATS)
def test_ids_that_come_twice_or_are_missing_are_named_with_their_places(tmp_path, ending):
    def word(row):
        return f"row {row} of" if ending in (".parquet", ".feather") else f"line {row + 2} of"

    twice = pa.table({"code": ["a", "b", "c", "b"], "x": [1, 5, 3, 3]})
    with pytest.raises(InvalidDataError, match=rf"the id 'b' comes twice: {word(1)} t.* and {word(3)} t"):
        read_items(save_by_name(twice, tmp_path / f"t{ending}"), id="code")
    missing = pa.table({"code": ["a", "b", None, "d"], "x": [1, 5, 3, 3]})
    with pytest.raises(InvalidDataError, match=rf"{word(2)} t.* has no id; fill it in, or leave id= out"):
        read_items(save_by_name(missing, tmp_path / f"t{ending}"), id="code")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"id": "Nam"},
            r"id: there is no column 'Nam' \(did you mean 'name'\?\); there are name, length, .* in t\.csv",
        ),
        ({"truth": "kimd"}, r"truth: .* \(did you mean 'kind'\?\)"),
        ({"columns": ["lenght"]}, r"columns: .* \(did you mean 'length'\?\)"),
        ({"exclude": ["xyz"]}, r"exclude: there is no column 'xyz'; there are"),
        ({"columns": "length"}, r"columns='length' must be a list: \['length'\]"),
        ({"text": "colours"}, r"text: .* \(did you mean 'colour'\?\)"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_the_nearest(tmp_path, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        read_items(save_by_name(TABLE, tmp_path / "t.csv"), **options)


def test_columns_are_chosen_and_left_out(tmp_path):
    path = save_by_name(TABLE, tmp_path / "t.csv")
    assert read_items(path, columns=["count", "length"]).recipe.feature_names == ["length", "count"]
    assert read_items(path, columns=["count", "length"], exclude=["count"]).recipe.feature_names == ["length"]
    with pytest.raises(InvalidDataError, match=r"t\.csv has no column left to learn from"):
        read_items(path, columns=["count"], exclude=["count"])


def test_a_counter_is_used_if_it_is_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("number,x\n1,4\n2,5\n3,9\n")
    assert read_items(path).recipe.feature_names == ["x"]
    assert read_items(path, columns=["number", "x"]).recipe.feature_names == ["number", "x"]


def test_a_column_that_is_missing_later_is_named_and_an_unknown_one_is_ignored(tmp_path):
    recipe = read_items(save_by_name(TABLE, tmp_path / "t.csv"), id="name").recipe
    less = save_by_name(TABLE.drop_columns(["length"]), tmp_path / "less.csv")
    with pytest.raises(
        InvalidDataError, match=r"less\.csv has no column 'length', which the recipe was made with; its"
    ):
        recipe.read(less)
    with pytest.raises(InvalidDataError, match=r"no column 'name'"):
        recipe.read(save_by_name(TABLE.drop_columns(["name"]), tmp_path / "less.csv"))
    more = save_by_name(TABLE.append_column("extra", [["?"] * 12]), tmp_path / "more.parquet")
    assert recipe.read(more).notes[0] == "columns that the recipe does not know are ignored: extra."


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".xlsx"])
def test_a_damaged_file_is_refused(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidDataError, match=rf"t\{ending} is damaged or no (Parquet|Feather|Excel) file"):
        read_items(path)


def test_an_index_of_pandas_is_no_column(tmp_path):
    table = TABLE.append_column("__index_level_0__", [[k * k for k in range(12)]])
    assert "__index_level_0__" not in read_items(save_by_name(table, tmp_path / "t.parquet")).recipe.feature_names


def test_a_sheet_is_chosen_by_name(tmp_path):
    path = save_by_name(TABLE, tmp_path / "t.xlsx")
    assert read_items(path).notes[0] == "only the sheet 'data' is read, not empty."
    with pytest.raises(InvalidParameterError, match=r"there is no sheet 'dta' \(did you mean 'data'\?\)"):
        read_items(path, sheet="dta")
    with pytest.raises(InvalidDataError, match="is empty"):
        read_items(path, sheet="empty")


def test_a_sheet_with_gaps_and_mixed_cells(tmp_path):
    book = openpyxl.Workbook()
    for row in ([None, None], ["x", "c"], [1, 2], [None, None], ["n/a", "two"], [5, 2], [7, "two"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    items = read_items(tmp_path / "t.xlsx")
    assert items.recipe.feature_names == ["x", "c = 2", "c = two"]
    assert "x: 1 missing value filled in with the median, 5." in items.notes


def test_blank_lines_of_a_sheet_are_counted(tmp_path):
    book = openpyxl.Workbook()
    for row in ([], ["id", "x"], ["a", 1], [], [], ["a", 2]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InvalidDataError, match=r"comes twice: line 3 of t\.xlsx and line 6 of t\.xlsx"):
        read_items(tmp_path / "t.xlsx", id="id")


def rewrite_sheet(path, old, new):
    """Another text in the sheet of an Excel file."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content.replace(old, new) if name.endswith("sheet1.xml") else content)


def test_a_small_sheet_that_says_it_has_millions_of_lines_is_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    save_excel(pa.table({"x": [1, 2]}), path)
    rewrite_sheet(path, b'<row r="3"', b'<row r="2000000"')
    with pytest.raises(InvalidDataError, match=r"t\.xlsx has more than 1,048,576 lines, .* save it as CSV"):
        read_items(path)


def test_wide_lines_of_a_small_sheet_must_fit_into_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "t.xlsx"
    save_excel(pa.table({"x": [1] * 50}), path)
    rewrite_sheet(path, b'r="A2"', b'r="ZZZ2"')
    monkeypatch.setattr(enough_memory, "available", lambda: 10**6)
    monkeypatch.setattr(table_files, "STEP", 0)
    with pytest.raises(NotEnoughMemoryError, match=r"t\.xlsx, unpacked, needs at least 2 MB of memory, but 1 MB"):
        read_items(path)


def test_two_columns_of_one_name_in_a_sheet_are_refused(tmp_path):
    book = openpyxl.Workbook()
    for row in (["x", "x"], [1, 2]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InvalidDataError, match="several columns called 'x'"):
        read_items(tmp_path / "t.xlsx")


def test_a_categorical_and_other_types_of_parquet(tmp_path):
    table = pa.table(
        {
            "level": pa.array(["a", "b", "a", "c"]).dictionary_encode(),
            "large": pa.array(["x", "y", "x", "y"], pa.large_string()),
            "price": pa.array([1, 2, 3, 7]).cast(pa.decimal128(21, 2)),
            "half": pa.array([1, 2, 3, 9], pa.float32()),
            "zoned": pa.array([datetime.datetime(2020, 1, d, tzinfo=datetime.UTC) for d in (1, 2, 3, 9)]),
        }
    )
    items = read_items(save_by_name(table, tmp_path / "t.parquet"))
    names = ["level = a", "level = b", "level = c", "large = x", "large = y", "price", "half", "zoned"]
    assert items.recipe.feature_names == names
    for ending in (".csv", ".feather"):
        assert np.array_equal(items.recipe.read(save_by_name(table, tmp_path / f"o{ending}")).features, items.features)

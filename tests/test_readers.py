"""Items from files of every kind, and recipes that do the same again: to the last bit, whole or in pieces."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairmargin import (
    InvalidDataError,
    InvalidParameterError,
    MaxMarginClustering,
    MissingPackageError,
    ModelFileError,
    PairMarginError,
    Recipe,
    extras,
    load_recipe,
    read_pairs,
    save,
)
from pairmargin import read_items as read
from pairmargin.readers.items import FORMAT

Image = pytest.importorskip("PIL.Image")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.csv")
pytest.importorskip("pyarrow.parquet")

FIXTURES = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


EXCLUDED = {"table": {"exclude": ["class"]}}


def dense(items):
    features = items.features
    return features.toarray() if hasattr(features, "toarray") else np.asarray(features)


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def mixed(path: Path, n_rows: int = 40, seed: int = 0) -> Path:
    """A table with a column of every kind, some cells empty."""
    rng = np.random.default_rng(seed)
    lines = ["name,age,city,born,member,at,class"]
    for row in range(n_rows):
        age = "" if row % 9 == 4 else rng.integers(18, 80)
        city = "" if row % 11 == 5 else rng.choice(["Rome", "Oslo", "Bern"])
        born = datetime.date(1970, 1, 1) + datetime.timedelta(int(rng.integers(10_000)))
        lines.append(
            f"p{row},{age},{city},{born},{'true' if rng.random() < 0.5 else 'false'},{row % 24:02}:30:00,{row % 2}"
        )
    return write(path, "\n".join(lines) + "\n")


def samples(folder: Path) -> dict[str, tuple[Path, dict[str, object]]]:
    """A file or folder of every kind, and what to ask of it."""
    rng = np.random.default_rng(0)
    pictures, texts = folder / "pictures", folder / "texts"
    for place in (pictures / "a", pictures / "b", texts):
        place.mkdir(parents=True)
    for k in range(7):
        pixels = rng.integers(0, 256, (9, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(pictures / "ab"[k % 2] / f"{k}.png")
        write(texts / f"{k}.txt", f"the {'cat purrs' if k % 2 else 'dog barks'} at number {k}")
    np.save(folder / "x.npy", rng.normal(size=(7, 3)))
    comments = write(
        folder / "comments.csv", "who,said\n" + "".join(f"w{k},{'good' if k % 2 else 'bad'} food\n" for k in range(7))
    )
    return {
        "table": (mixed(folder / "people.csv"), {"id": "name", "truth": "class"}),
        "vector": (folder / "x.npy", {}),
        "image": (pictures, {"size": 6, "truth": "folder"}),
        "text": (texts, {}),
        "column": (comments, {"text": "said", "id": "who"}),
    }


@pytest.mark.parametrize("name", ["table", "vector", "image", "text", "column"])
def test_a_recipe_does_the_same_again_whole_in_pieces_and_from_its_state(tmp_path, name):
    path, options = samples(tmp_path)[name]
    first = read(path, **options)
    facts, arrays = first.recipe.state()
    stored = Recipe.from_state(json.loads(json.dumps(facts)), {key: array.copy() for key, array in arrays.items()})
    for recipe in (first.recipe, stored):
        again = recipe.read(path)
        assert np.array_equal(dense(again), dense(first))
        assert again.ids == first.ids
        assert list(again.faces) == list(first.faces) or name == "table"
        for rows in (1, 3, 1000):
            pieces = list(recipe.batches(path, rows=rows))
            assert max(map(len, pieces)) <= rows
            assert np.array_equal(np.concatenate([dense(piece) for piece in pieces]), dense(first))
            assert [name for piece in pieces for name in piece.ids] == first.ids
            if first.truth is not None:
                assert np.concatenate([piece.truth for piece in pieces]).tolist() == first.truth.tolist()
    assert stored.kind == first.kind == first.recipe.kind


@pytest.mark.parametrize("name", ["table", "vector", "image", "text", "column"])
def test_a_recipe_comes_back_from_a_model_file(tmp_path, name):
    path, options = samples(tmp_path)[name]
    items = read(path, **options)
    model = MaxMarginClustering(2, hidden_layer_sizes=(), max_iter=1, random_state=0).fit(items.features)
    save(model, tmp_path / "model.safetensors", recipe=items.recipe)
    again = load_recipe(tmp_path / "model.safetensors").read(path)
    assert np.array_equal(dense(again), dense(items))
    assert again.features.dtype == items.features.dtype
    assert again.ids == items.ids


@pytest.mark.parametrize("name", ["table", "vector", "image", "text"])
def test_what_is_read_can_be_clustered(tmp_path, name):
    path, options = samples(tmp_path)[name]
    items = read(path, **options)
    model = MaxMarginClustering(2, hidden_layer_sizes=(), max_iter=5, random_state=0).fit(items.features)
    assert len(model.labels_) == len(items) == len(items.ids) == len(items.faces)
    assert items.features.dtype in (np.float32, np.float64)
    assert items.kind == name
    assert all(note.endswith(".") for note in items.notes)


def test_labels_are_neither_features_nor_on_a_face(tmp_path):
    items = read(mixed(tmp_path / "people.csv"), id="name", truth="class")
    assert not any("class" in feature for feature in items.recipe.feature_names)
    assert not any("class" in face for face in items.faces)
    assert items.truth.tolist() == ["0", "1"] * 20


def test_new_files_need_no_labels(tmp_path):
    recipe = read(mixed(tmp_path / "people.csv"), truth="class").recipe
    lines = (tmp_path / "people.csv").read_text().splitlines()
    path = write(tmp_path / "new.csv", "\n".join(line.rpartition(",")[0] for line in lines))
    assert recipe.read(path).truth is None
    assert np.array_equal(recipe.read(path).features, recipe.read(tmp_path / "people.csv").features)


@pytest.mark.parametrize("name", ["table", "vector", "image", "column"])
def test_labels_can_be_named_later(tmp_path, name):
    path, options = samples(tmp_path)[name]
    truth, wanted = {
        "table": ("class", ["0", "1"]),
        "vector": ("kind", ["0", "1"]),
        "image": ("folder", ["a", "b"]),
        "column": ("who", [f"w{k}" for k in range(7)]),
    }[name]
    if name == "vector":
        path = tmp_path / "x.npz"
        np.savez(path, vectors=np.load(tmp_path / "x.npy"), kind=np.array(["0", "1"] * 3 + ["0"]))
        options = {"array": "vectors"}
    blind = read(path, **{key: value for key, value in options.items() if key != "truth"} | EXCLUDED.get(name, {}))
    assert blind.truth is None
    items = blind.recipe.with_truth(truth).read(path)
    assert sorted(set(items.truth)) == wanted
    np.testing.assert_array_equal(dense(items), dense(blind))
    assert blind.recipe.read(path).truth is None  # it is another recipe


def test_labels_are_nothing_that_was_learned_from(tmp_path):
    recipe = read(mixed(tmp_path / "people.csv"), id="name").recipe
    with pytest.raises(InvalidParameterError, match="truth='city' is a column that the features were made of"):
        recipe.with_truth("city")


@FIXTURES
@given(order=st.permutations(range(7)), rows=st.integers(1, 50), seed=st.integers(0, 3))
def test_the_order_of_the_columns_and_the_length_of_pieces_do_not_matter(tmp_path, order, rows, seed):
    items = read(mixed(tmp_path / "people.csv", seed=seed), id="name", truth="class")
    cells = [line.split(",") for line in (tmp_path / "people.csv").read_text().splitlines()]
    shuffled = write(tmp_path / "shuffled.csv", "\n".join(",".join(row[k] for k in order) for row in cells))
    pieces = list(items.recipe.batches(shuffled, rows=rows))
    assert np.array_equal(np.concatenate([piece.features for piece in pieces]), items.features)
    assert np.array_equal(items.recipe.read(shuffled).features, items.features)
    assert [name for piece in pieces for name in piece.ids] == items.ids


@FIXTURES
@given(
    numbers=st.lists(
        st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-(10**15), 10**15)), min_size=3, max_size=30
    )
)
def test_any_numbers_come_out_finite_and_the_same_again(tmp_path, numbers):
    lines = [f"{'' if number is None else number},{k % 2}.5" for k, number in enumerate(numbers)]
    items = read(write(tmp_path / "numbers.csv", "\n".join(["x,y", *lines])))
    assert np.isfinite(items.features).all()
    again = [piece.features for piece in items.recipe.batches(tmp_path / "numbers.csv", rows=4)]
    assert np.array_equal(np.concatenate(again), items.features)


# What a path is, and what may be asked of it


def test_a_file_that_is_not_there_is_named_with_the_nearest(tmp_path):
    write(tmp_path / "people.csv", "a\n1\n")
    with pytest.raises(InvalidDataError, match=r"no file or folder .*peple\.csv \(did you mean 'people\.csv'\?\)"):
        read(tmp_path / "peple.csv")
    with pytest.raises(InvalidDataError, match="there is no file or folder"):
        read(tmp_path / "nowhere" / "x.csv")


def test_an_unknown_ending_lists_the_known_ones(tmp_path):
    with pytest.raises(
        InvalidDataError, match=r"x\.docx ends in \.docx, which is not supported; there are \.csv, .*\.h5ad"
    ):
        read(write(tmp_path / "x.docx", "?"))
    with pytest.raises(InvalidDataError, match=r"ends in nothing"):
        read(write(tmp_path / "x", "?"))
    with pytest.raises(InvalidDataError, match=r"save it as \.xlsx"):
        read(write(tmp_path / "x.xls", "?"))


def test_a_single_image_or_text_calls_for_its_folder(tmp_path):
    with pytest.raises(InvalidDataError, match=r"x\.png is a single file; pass the folder"):
        read(write(tmp_path / "x.png", "?"))


def test_a_folder_of_both_kinds_asks_which(tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "x.png")
    write(tmp_path / "x.txt", "hello there")
    with pytest.raises(InvalidDataError, match=r'has 1 images and 1 texts; pass kind="image" or kind="text"'):
        read(tmp_path)
    assert read(tmp_path, kind="image").kind == "image"
    assert read(tmp_path, kind="text").kind == "text"
    with pytest.raises(InvalidParameterError, match="kind='sound' must be"):
        read(tmp_path, kind="sound")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InvalidDataError, match=r"has neither images \(\.png.*\) nor texts"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("table", {"size": 8}, r"size= means nothing for people\.csv, which is of kind 'table', not \['image'\]"),
        ("table", {"embed": "tfidf"}, "embed= means nothing"),
        ("column", {"text": "said", "columns": ["who"]}, r"columns= means nothing .* of kind 'text', not \['table'\]"),
        ("image", {"id": "name"}, "id= means nothing"),
        ("image", {"size": 0}, "size=0 must be a whole number, 1 or more"),
        ("image", {"size": True}, "size=True must be"),
        ("image", {"truth": "label"}, "truth='label' must be \"folder\""),
        ("text", {"embed": "magic"}, 'embed=\'magic\' must be "tfidf" or "sentence"'),
        ("text", {"n_components": 1.5}, "n_components=1.5 must be a whole number"),
        ("vector", {"columns": ["a"]}, "columns= means nothing"),
    ],
)
def test_options_that_mean_nothing_or_cannot_be_are_refused(tmp_path, name, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        read(samples(tmp_path)[name][0], **options)


def test_kind_is_for_folders(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"kind='text' is for folders; .* people\.csv pass text=COLUMN"):
        read(mixed(tmp_path / "people.csv"), kind="text")


@pytest.mark.parametrize("rows", [0, -1, 2.5, True])
def test_pieces_have_at_least_one_row(tmp_path, rows):
    recipe = read(mixed(tmp_path / "people.csv")).recipe
    with pytest.raises(InvalidParameterError, match="must be a whole number, 1 or more"):
        recipe.batches(tmp_path / "people.csv", rows=rows)


def test_a_recipe_from_the_future_is_refused(tmp_path):
    facts, arrays = read(mixed(tmp_path / "people.csv")).recipe.state()
    with pytest.raises(ModelFileError, match=f"has format 99, this version reads up to {FORMAT}; upgrade pairmargin"):
        Recipe.from_state({**facts, "format": 99}, arrays)


def test_readers_and_answers_by_id_do_without_the_extra(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    write(tmp_path / "answers.csv", "a,b,same\n0,2,yes\n")
    code = """if True:
        import sys
        for package in ("pandas", "pyarrow", "PIL", "openpyxl"):
            sys.modules[package] = None  # as if it were not installed
        from pairmargin.readers import read_items, read_pairs
        items = read_items("x.npy")
        print(len(items), read_pairs("answers.csv", items), "torch" in sys.modules)
    """
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "3 Pairs(1 pair: 1 same, 0 different) False\n"


@pytest.mark.parametrize(
    ("name", "module", "message"),
    [
        ("table", "pyarrow", r'reading people\.csv needs pyarrow, .* run: pip install "pairmargin\[files\]"'),
        ("image", "PIL", r'reading images needs PIL, .* run: pip install "pairmargin\[files\]"'),
    ],
)
def test_a_missing_package_is_named_with_the_command(tmp_path, monkeypatch, name, module, message):
    path, options = samples(tmp_path)[name]

    def fail(wanted):
        if wanted.split(".")[0] == module:
            raise ModuleNotFoundError(name=module)
        return __import__(wanted)

    monkeypatch.setattr(extras, "import_module", fail)
    with pytest.raises(MissingPackageError, match=message):
        read(path, **options)


def test_the_messages_that_the_documents_show_are_the_real_ones(tmp_path):
    flowers, rows = tmp_path / "flowers.csv", "".join(f"f{k},{k * k}\n" for k in (1, 2, 3, 4, 5, 1))
    np.save(tmp_path / "vectors.npy", np.zeros((10, 28, 28)))
    calls = [
        lambda: read(write(flowers, "a,b\n1,2\n3,4,5\n")),
        lambda: read(write(flowers, "a,b\n1,café\n", "cp1252")),
        lambda: read(write(flowers, "name,x\n" + rows), id="name"),
        lambda: read_pairs(write(tmp_path / "answers.csv", "a,b,same\nf1,f2,yes\nf11,f2,no\n"), ["f1", "f2", "f3"]),
        lambda: read(tmp_path / "vectors.npy"),
    ]
    page = (Path(__file__).parents[1] / "docs" / "reading.md").read_text()
    shown = next(block for block in re.findall(r"```text\n(.*?)\n```", page, re.DOTALL) if "line 3 of" in block)
    for call, message in zip(calls, shown.splitlines(), strict=True):
        with pytest.raises(PairMarginError) as caught:
            call()
        assert str(caught.value) == message

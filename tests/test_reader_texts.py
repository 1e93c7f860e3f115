"""Texts: tf-idf against scikit-learn's own, components, folders and columns, and embeddings with a stand-in."""

from __future__ import annotations

import importlib.util
import os
import sys
import types

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from pairmargin import InvalidDataError, InvalidParameterError, MissingPackageError, Recipe, read_items
from pairmargin.readers import texts as module
from pairmargin.readers.folders import fingerprint
from pairmargin.readers.texts import Words

pytest.importorskip("pyarrow")

SUBJECTS = {
    "sea": "the ship sails the wide sea and the waves rock the ship at sea",
    "bread": "knead the dough then bake the bread and let the bread cool",
    "moon": "the moon circles the earth while the rocket flies to the moon",
}


def corpus(n: int = 30) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.permutation(list(SUBJECTS.values())[k % 3].split())[:8]) for k in range(n)]


@pytest.fixture
def folder(tmp_path):
    for k, text in enumerate(corpus()):
        (tmp_path / f"{k:02}.txt").write_text(text)
    return tmp_path


def test_tfidf_is_scikit_learns_with_logarithms_of_counts():
    texts = corpus()
    words = Words.learn(texts, 200, "x")
    other = TfidfVectorizer(sublinear_tf=True, min_df=2)
    expected = other.fit_transform(texts).toarray()
    assert words.vocabulary == other.get_feature_names_out().tolist()
    found = module._weigh(module._count(words.vocabulary, texts), words.idf).toarray()
    assert np.allclose(found, expected, atol=1e-6)


def test_all_components_keep_the_angles_between_texts():
    texts = corpus()
    expected = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts).toarray()
    codes = Words.learn(texts, 200, "x").apply(texts)
    assert np.allclose(codes @ codes.T, expected @ expected.T, atol=1e-4)


def test_rows_have_length_1_and_texts_on_one_subject_are_near(folder):
    items = read_items(folder, n_components=3)
    assert items.kind == "text"
    assert items.features.shape == (30, 3)
    assert items.features.dtype == np.float32
    assert np.allclose(np.linalg.norm(items.features, axis=1), 1, atol=1e-5)
    alike = items.features @ items.features.T
    same = np.arange(30)[:, None] % 3 == np.arange(30) % 3
    assert alike[same].mean() > alike[~same].mean() + 0.3
    assert items.notes[0].startswith("texts as tf-idf of ")
    assert items.faces[0] == corpus()[0]
    assert items.ids[0] == "00.txt"


def test_words_that_are_not_known_leave_zeros_and_are_counted(folder, tmp_path_factory):
    recipe = read_items(folder).recipe
    other = tmp_path_factory.mktemp("other")
    (other / "a.txt").write_text("the ship")
    (other / "b.txt").write_text("quux")
    (other / "c.txt").write_text("")
    items = recipe.read(other)
    assert items.notes == ["2 texts without a known word: all zeros."]
    assert items.features.any(axis=1).tolist() == [True, False, False]


def test_a_column_of_a_table(tmp_path):
    lines = [f'{k},"{text}",{k % 3}' for k, text in enumerate(corpus())]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["code,said,subject", *lines, '30,"two\nlines of the sea",0', "31,,1"]) + "\n")
    items = read_items(path, text="said", id="code", truth="subject")
    assert items.faces[30:] == ["two\nlines of the sea", ""]
    assert items.truth[:4].tolist() == ["0", "1", "2", "0"]
    assert "1 text without a known word: all zeros." in items.notes
    assert "only said is learned from, not subject." not in items.notes
    new = tmp_path / "new.tsv"
    new.write_text("said\tcode\tmore\nthe ship sails\t7\t?\n")
    again = items.recipe.read(new)
    assert (again.ids, again.truth, again.faces) == (["7"], None, ["the ship sails"])
    assert again.notes == ["only said is learned from, not more."]
    new.write_text("text\tcode\nthe ship sails\t7\n")
    with pytest.raises(InvalidDataError, match=r"new\.tsv has no column 'said', which the recipe was made with"):
        items.recipe.read(new)


def test_a_recipe_for_a_folder_reads_no_file(folder, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("said\nthe ship\n")
    with pytest.raises(InvalidParameterError, match="the recipe is for a folder of texts"):
        read_items(folder).recipe.read(path)


def test_numbers_as_texts_are_no_problem_but_nothing_in_common_is(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("said\n" + "".join(f"{k % 4 + 10} {k % 2 + 20}\n" for k in range(12)))
    assert read_items(path, text="said").features.shape == (12, 6)
    path.write_text("said\n" + "".join(f"{chr(97 + k)}\n" for k in range(12)))
    with pytest.raises(InvalidDataError, match=r"the texts of t\.csv share no words of two letters or more"):
        read_items(path, text="said")


def test_an_encoding_is_named_or_asked_for(tmp_path):
    (tmp_path / "a.txt").write_bytes("café\nthé".encode("cp1252"))
    (tmp_path / "b.txt").write_bytes(b"coffee, tea")
    with pytest.raises(InvalidDataError, match=r'a\.txt is not in utf-8: byte 3 \(0xe9\), on line 1, .*"cp1252"'):
        read_items(tmp_path)
    assert read_items(tmp_path, encoding="cp1252").faces[0] == "café\nthé"
    (tmp_path / "a.txt").write_bytes("café".encode("utf-8-sig"))
    assert read_items(tmp_path).faces[0] == "café"


def test_a_folder_without_texts(folder, tmp_path_factory):
    with pytest.raises(InvalidDataError, match=r"has no files that end in \.txt"):
        read_items(folder).recipe.read(tmp_path_factory.mktemp("empty"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems know no such names")
def test_names_that_are_not_utf_8_are_left_out_and_told(folder):
    before = fingerprint(folder)
    place = os.fsencode(folder) + b"/f\xffolder"
    os.mkdir(place)
    for name in (os.fsencode(folder) + b"/caf\xe9.txt", place + b"/a.txt"):
        with open(name, "w") as file:
            file.write("the wide sea")
    items = read_items(folder)
    assert items.ids == [f"{k:02}.txt" for k in range(30)]
    assert items.notes[1] == (
        "2 files with a name that is not UTF-8 left out (rename to have it read): caf?.txt, f?older/a.txt."
    )
    assert fingerprint(folder) == before


def test_the_same_bits_for_each_text_alone(folder):
    items = read_items(folder)
    pieces = [piece.features for piece in items.recipe.batches(folder, rows=1)]
    assert np.array_equal(np.concatenate(pieces), items.features)


def test_the_vocabulary_comes_back_from_its_bytes():
    words = Words.learn(["naïve café", "smörgåsbord 東京都", "naïve 東京都"], 200, "x")
    again = Words.from_state(*words.state())
    assert again.vocabulary == words.vocabulary == ["café", "naïve", "smörgåsbord", "東京都"]


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="is installed")
def test_embeddings_need_their_extra(folder):
    message = r'embed="sentence" needs sentence_transformers, .* run: pip install "pairmargin\[text\]"'
    with pytest.raises(MissingPackageError, match=message):
        read_items(folder, embed="sentence")


def test_embeddings_are_asked_for_by_name_and_remembered(folder, monkeypatch):
    asked = []

    class SentenceTransformer:
        """As many letters of each kind as there are."""

        def __init__(self, name):
            asked.append(name)

        def encode(self, texts, *, convert_to_numpy, show_progress_bar):
            return np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=float)

    library = types.ModuleType("sentence_transformers")
    library.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    module._sentence_model.cache_clear()
    items = read_items(folder, embed="sentence", model="small")
    assert items.features.shape == (30, 4)
    assert items.features.dtype == np.float32
    assert np.allclose(np.linalg.norm(items.features, axis=1), 1, atol=1e-6)
    again = Recipe.from_state(*items.recipe.state()).read(folder)
    assert np.array_equal(again.features, items.features)
    assert asked == ["small"]  # loaded once
    assert items.notes == ["texts as embeddings of small."]
    module._sentence_model.cache_clear()

"""Texts as items: a column of a table or a folder of ``.txt``, as main components of tf-idf or as sentence embeddings.

Every text is brought to length 1, as is usual in latent semantic analysis: a long text then is as near to a short one
on the same subject as their words make them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..exceptions import InvalidDataError, InvalidParameterError
from ..extras import need
from .columns import texts_of
from .folders import TEXTS, find_files, folder_labels, relative
from .parts import (
    Array,
    Count,
    Options,
    Part,
    State,
    check_encoding,
    counted,
    encoding_error,
    listed,
    spans,
)
from .table_files import check_names, check_needed, in_pieces, open_table
from .tables import ids_and_truth, writing

WORDS = 20_000  # most words of the vocabulary; with 200 components they take 16 MB
COMPONENTS = 200
SENTENCE_MODEL = "all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Words:
    """Tf-idf of single words, and the main components of that; sparse until there are few of them."""

    vocabulary: list[str]
    idf: Array  # (n_words,)
    components: Array  # (n_words, n_components)

    @classmethod
    def learn(cls, texts: list[str], n_components: int, name: str) -> Words:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits

        least = 2 if len(texts) >= 10 else 1  # a word of a single text brings no two texts together
        try:
            counter = CountVectorizer(min_df=least, max_features=WORDS).fit(texts)
        except ValueError as error:  # of scikit-learn, if no word is left
            raise InvalidDataError(
                f"the texts of {name} share no words of two letters or more; are they text?"
            ) from error
        vocabulary = counter.get_feature_names_out().tolist()
        counts = _count(vocabulary, texts)
        document_frequency = np.bincount(counts.indices, minlength=len(vocabulary))
        idf = (np.log((1 + len(texts)) / (1 + document_frequency)) + 1).astype(np.float32)
        weights = _weigh(counts, idf)
        with threadpool_limits(1):  # the same bits on any number of cores
            components = randomized_svd(weights, min(n_components, *weights.shape), n_iter=5, random_state=0)[2]
        return cls(vocabulary, idf, np.ascontiguousarray(components.T, dtype=np.float32))

    def apply(self, texts: list[str]) -> Array:
        codes: Array = _weigh(_count(self.vocabulary, texts), self.idf) @ self.components
        return _unit(codes)

    def state(self) -> State:
        words = np.frombuffer("\n".join(self.vocabulary).encode(), np.uint8)
        return {}, {"vocabulary": words, "idf": self.idf, "components": self.components}

    @classmethod
    def from_state(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> Words:
        words = arrays["vocabulary"].tobytes().decode().split("\n")
        return cls(words, arrays["idf"], arrays["components"])


def _count(vocabulary: list[str], texts: list[str]) -> Any:
    """How often each word is in each text, (n_texts, n_words)."""
    from sklearn.feature_extraction.text import CountVectorizer

    return sp.csr_array(CountVectorizer(vocabulary=vocabulary).transform(texts))


def _weigh(counts: Any, idf: Array) -> Any:
    """Tf-idf of length 1; a word said ten times does not count ten times."""
    data = (1 + np.log(counts.data)).astype(np.float32) * idf[counts.indices]
    weights = sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
    length = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
    weights.data /= np.repeat(np.where(length > 0, length, 1), np.diff(weights.indptr)).astype(np.float32)
    return weights


def _unit(codes: Array) -> Array:
    """Rows of length 1; those of zeros stay so."""
    length = np.linalg.norm(codes, axis=1, keepdims=True)
    return (codes / np.where(length > 0, length, 1)).astype(np.float32)


@dataclass(frozen=True)
class Sentences:
    """Embeddings of a pretrained model of sentence-transformers."""

    model: str

    def apply(self, texts: list[str]) -> Array:
        codes = _sentence_model(self.model).encode(texts, convert_to_numpy=True, show_progress_bar=False)
        return _unit(np.asarray(codes, dtype=np.float32))

    def state(self) -> State:
        return {"model": self.model}, {}

    @classmethod
    def from_state(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> Sentences:
        return cls(facts["model"])


@lru_cache(maxsize=1)  # pieces of a file share one
def _sentence_model(name: str) -> Any:
    return need("sentence_transformers", 'embed="sentence"').SentenceTransformer(name)


@dataclass(frozen=True)
class TextMaker:
    """Texts as items."""

    embedding: Words | Sentences
    text: str | None  # the column of a table
    id: str | None
    truth: str | None
    options: Options
    kind = "text"

    @classmethod
    def learn(cls, path: Path, options: Options) -> tuple[TextMaker, Part]:
        """Read the texts, learn what their words are worth, and weigh them."""
        text, key, truth = options.get("text"), options.get("id"), options.get("truth")
        raw = next(_texts(path, None, text, key, truth, writing(options)))
        model, n_components = options.get("model") or SENTENCE_MODEL, options.get("n_components") or COMPONENTS
        embedding: Words | Sentences = Sentences(model)
        notes = [f"texts as embeddings of {model}."]
        if (options.get("embed") or "tfidf") == "tfidf":
            embedding = Words.learn(list(raw.faces), n_components, path.name)
            n_words, n_components = embedding.components.shape
            notes = [f"texts as tf-idf of {counted(n_words, 'word')} and {counted(n_components, 'component')} of that."]
        maker = cls(embedding, text, key, truth, writing(options))
        part = maker._part(raw)
        return maker, part._replace(notes=[*notes, *part.notes])

    def parts(self, path: Path, rows: int | None) -> Iterator[Part]:
        return map(self._part, _texts(path, rows, self.text, self.id, self.truth, self.options, again=True))

    def _part(self, raw: Part) -> Part:
        features = self.embedding.apply(list(raw.faces))
        notes, empty = list(raw.notes), int((~features.any(axis=1)).sum())
        if empty:
            notes.append(Count.of("", empty, "text", " without a known word: all zeros"))
        return raw._replace(features=features, notes=notes)

    def state(self) -> State:
        facts, arrays = self.embedding.state()
        own = {"text": self.text, "id": self.id, "truth": self.truth, "options": self.options}
        return facts | own | {"embed": "tfidf" if isinstance(self.embedding, Words) else "sentence"}, arrays

    @classmethod
    def from_state(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> TextMaker:
        source: Any = Words if facts["embed"] == "tfidf" else Sentences
        return cls(source.from_state(facts, arrays), facts["text"], facts["id"], facts["truth"], facts["options"])


def _texts(
    path: Path,
    rows: int | None,
    text: str | None,
    id: str | None,
    truth: str | None,
    options: Options,
    again: bool = False,
) -> Iterator[Part]:
    """The texts of a folder or of a table, as faces without features."""
    if path.is_dir():
        return _texts_of_folder(path, rows, None if again and truth != "folder" else truth, options)
    if text is None:
        raise InvalidParameterError(
            f"the recipe is for a folder of texts, but {path.name} is a file; pass the folder it is in"
        )
    return _texts_of_table(path, rows, text, id, truth, options, again)


def _texts_of_table(
    path: Path, rows: int | None, text: str, id: str | None, truth: str | None, options: Options, again: bool
) -> Iterator[Part]:
    file = open_table(path, options)
    if again:
        check_needed(file, [text] if id is None else [text, id])
        truth = truth if truth in file.names else None  # new files need no labels
    for parameter, name in (("text", text), ("id", id), ("truth", truth)):
        if name is not None:
            check_names(file, [name], parameter)
    columns = list(dict.fromkeys(name for name in (text, id, truth) if name is not None))
    notes = list(file.notes)
    if unread := [name for name in file.names if name not in columns]:
        notes.append(f"only {text} is learned from, not {listed(unread)}.")
    start = 0
    for table in in_pieces(file, columns, dict.fromkeys(columns, "category"), rows):
        ids, labels = ids_and_truth(file, table, start, id, truth)
        yield Part(ids, None, [value or "" for value in texts_of(table.column(text))], labels, notes)
        start, notes = start + table.num_rows, []


def _texts_of_folder(path: Path, rows: int | None, truth: str | None, options: Options) -> Iterator[Part]:
    encoding = options.get("encoding") or "utf-8"
    check_encoding(encoding)
    paths, notes = find_files(path, TEXTS)
    if not paths:
        raise InvalidDataError(f"the folder {path.name} has no files that end in .txt; pass another one")
    for span in spans(len(paths), rows):
        chosen = paths[span]
        faces = [_text(each, encoding) for each in chosen]
        yield Part([relative(each, path) for each in chosen], None, faces, folder_labels(chosen, truth), notes)
        notes = []


def _text(path: Path, encoding: str) -> str:
    try:
        return path.read_text("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeError:
        raise encoding_error(path, encoding) from None

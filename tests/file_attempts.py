"""Files with any content, and what reads them: `test_any_file.py` and `fuzz_files.py` share this.

Whatever a file holds, there are items, pairs or a model, or an error of ours; and no warning at all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np

from pairmargin import MaxMarginClustering, PairMarginError, Pairs, load, load_recipe, read_items, read_pairs

CORPUS = Path(__file__).parent / "data" / "fuzz"
TELLING = (b"", b"\0", b"\n", b",", b'"', b"nan", b"-1", b"1e999", b"\xff\xfe", b"\xef\xbb\xbf", b"9" * 30, b"a", b"\r")


def check_items(path: Path) -> None:
    items = read_items(path)
    features = items.features
    dense = features.toarray() if hasattr(features, "toarray") else features
    assert np.isfinite(dense).all()
    assert len(items.ids) == len(set(items.ids)) == len(dense)
    assert all(isinstance(face, str) for face in items.faces[:3])


def check_pairs(path: Path) -> None:
    assert isinstance(read_pairs(path, ["a", "b", "c", "0", "1"]), Pairs)


def check_rows(path: Path) -> None:
    assert isinstance(read_pairs(path), Pairs)


def check_pairs_csv(path: Path) -> None:
    assert isinstance(Pairs.read_csv(path), Pairs)


def check_model(path: Path) -> None:
    model = load(path)
    assert isinstance(model, MaxMarginClustering)
    assert len(model.predict(np.zeros((2, model.n_features_in_)))) == 2


def check_recipe(path: Path) -> None:
    load_recipe(path)


READERS: dict[str, tuple[Callable[[Path], None], ...]] = {
    "csv": (check_items, check_pairs, check_rows, check_pairs_csv),
    "tsv": (check_items, check_pairs),
    "npy": (check_items,),
    "npz": (check_items,),
    "mat": (check_items,),
    "parquet": (check_items, check_pairs),
    "feather": (check_items, check_pairs),
    "xlsx": (check_items, check_pairs),
    "safetensors": (check_model, check_recipe),
}


def corpus(kind: str) -> list[Path]:
    """The files of a kind that are kept."""
    return sorted(CORPUS.glob(f"*.{kind}"))


def read(kind: str, content: bytes, folder: Path) -> None:
    """Read a file with this content by all that read its kind."""
    path = folder / f"file.{kind}"
    path.write_bytes(content)
    for check in READERS[kind]:
        with warnings.catch_warnings(), suppress(PairMarginError):
            warnings.simplefilter("error")
            check(path)


def damaged(content: bytes, chance: Random) -> bytes:
    """The content with some bytes changed, left out, doubled, or in the place of others."""
    found = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(found) + 1)
        stop = min(len(found), start + chance.choice((0, 1, 1, 4, 64)))
        piece = bytes(found[start:stop])
        found[start:stop] = chance.choice(
            (chance.choice(TELLING), bytes(255 - each for each in piece), piece * 2, chance.randbytes(len(piece)))
        )
    return bytes(found[: chance.randrange(len(found) + 1)] if chance.random() < 0.1 else found)

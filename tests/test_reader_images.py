"""Folders of images: pixels that can be checked by hand, and files that are no images, or too large, or elsewhere."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zlib

import numpy as np
import pytest

from pairmargin import InvalidDataError, read_items
from pairmargin.readers.images import MOST_PIXELS
from pairmargin.readers.parts import add_notes

Image = pytest.importorskip("PIL.Image")


def save(path, pixels, **settings):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(path, **settings)


@pytest.fixture
def folder(tmp_path):
    """Three images: black, grey and white."""
    for name, shade in {"a.png": 0, "b/c.png": 51, "d.png": 255}.items():
        save(tmp_path / name, np.full((10, 16), shade))
    return tmp_path


def test_shades_are_numbers_from_0_to_1_in_the_order_of_names(folder):
    items = read_items(folder)
    assert items.ids == ["a.png", "b/c.png", "d.png"]
    assert items.features.shape == (3, 32 * 32)
    assert items.features.dtype == np.float32
    assert np.allclose(items.features, [[0], [0.2], [1]])
    assert items.faces == [str(folder / name) for name in items.ids]
    assert items.notes == ["images stretched to 32 × 32 grey pixels from 0 to 1."]


def test_size_and_colour(folder):
    save(folder / "e.png", np.broadcast_to([255, 0, 51], (8, 8, 3)))
    items = read_items(folder, size=4, colour=True)
    assert items.features.shape == (4, 4 * 4 * 3)
    assert np.allclose(items.features[3].reshape(4, 4, 3), [1, 0, 0.2])
    assert "4 × 4 coloured" in items.notes[0]


@pytest.mark.parametrize("ending", ["png", "jpg", "jpeg", "JPG", "tif", "tiff", "webp"])
def test_every_format(tmp_path, ending):
    save(tmp_path / f"x.{ending}", np.full((40, 40), 102))
    assert np.allclose(read_items(tmp_path).features, 0.4, atol=0.02)


def test_halves_stay_where_they_are_and_phones_turn_their_pictures(tmp_path):
    pixels = np.zeros((20, 20))
    pixels[:10] = 255  # white above
    save(tmp_path / "plain.png", pixels)
    turned = Image.Exif()
    turned[0x0112] = 3  # upside down
    save(tmp_path / "turned.jpg", pixels[::-1], exif=turned)
    features = read_items(tmp_path, size=4).features.reshape(2, 4, 4)
    assert np.allclose(features, [[[1] * 4, [1] * 4, [0] * 4, [0] * 4]], atol=0.05)


def test_transparent_is_white_and_16_bits_keep_their_shades(tmp_path):
    save(tmp_path / "a.png", np.zeros((8, 8, 4)))
    Image.fromarray(np.full((8, 8), 13107, dtype=np.uint16)).save(tmp_path / "b.png")  # a fifth of 65535
    Image.fromarray(np.full((8, 8), 13107, dtype=np.uint16)).save(tmp_path / "c.tif")
    Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).convert("P").save(tmp_path / "d.png")
    Image.new("CMYK", (8, 8)).save(tmp_path / "e.jpg")
    assert np.allclose(read_items(tmp_path, size=2).features, [[1], [0.2], [0.2], [0], [1]], atol=0.01)


def test_what_is_no_image_is_skipped_and_told(folder):
    (folder / "c.png").write_text("hello")
    (folder / "z.jpg").write_bytes((folder / "d.png").read_bytes()[:45])
    Image.fromarray(np.ones((4, 4), dtype=np.float32)).save(folder / "f.tif")
    items = read_items(folder)
    assert items.ids == ["a.png", "b/c.png", "d.png"]
    told = "c.png (not an image), f.tif (pixels without a known range), z.jpg (damaged or cut short)"
    assert items.notes[1] == f"3 images skipped: {told}."


def test_pieces_without_a_single_image_are_left_out(folder):
    recipe = read_items(folder).recipe
    for name in ("d0.png", "d1.png", "d2.png"):
        (folder / name).write_text("hello")
    pieces = list(recipe.batches(folder, rows=3))
    assert [piece.ids for piece in pieces] == [["a.png", "b/c.png", "d.png"]]
    assert "3 images skipped: d0.png (not an image)" in pieces[0].notes[0]
    assert [len(piece.notes) for piece in recipe.batches(folder, rows=2)] == [0, 2]
    assert [name for piece in recipe.batches(folder, rows=1) for name in piece.ids] == ["a.png", "b/c.png", "d.png"]


def test_images_that_are_skipped_in_pieces_are_counted_together(folder):
    recipe, total = read_items(folder).recipe, {}
    for k in range(30):
        (folder / f"d{k:02}.png").write_text("hello")
        save(folder / f"d{k:02}e.png", np.zeros((4, 4)))
    for piece in recipe.batches(folder, rows=4):
        add_notes(total, pickle.loads(pickle.dumps(piece.notes)))
    assert list(total.values()) == recipe.read(folder).notes
    (note,) = total.values()
    assert note.startswith("30 images skipped: d00.png (not an image), d01.png (not an image), ")
    assert note.endswith(", d19.png (not an image) and 10 more.")


def test_other_formats_are_never_decoded(tmp_path):
    content = io.BytesIO()
    Image.new("L", (4, 4)).save(content, format="GIF")
    (tmp_path / "x.png").write_bytes(content.getvalue())
    with pytest.raises(InvalidDataError, match=r"no image of the folder .* for one, x\.png \(not an image\)"):
        read_items(tmp_path)


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


@pytest.mark.parametrize("side", [8_000, 12_000, 60_000])  # beyond our own limit, and where Pillow warns and refuses
def test_a_small_file_that_unfolds_to_a_huge_image_is_refused(folder, side):
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    (folder / "bomb.png").write_bytes(content)
    items = read_items(folder)
    assert len(items) == 3
    assert "bomb.png (" in items.notes[1]
    assert "pixels" in items.notes[1]
    assert MOST_PIXELS < 8_000**2


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_links_out_of_the_folder_are_not_followed(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    save(elsewhere / "secret.png", np.zeros((4, 4)))
    (folder / "leak.png").symlink_to(elsewhere / "secret.png")
    (folder / "leaks").symlink_to(elsewhere)
    (folder / "round").symlink_to(folder)
    (folder / "again.png").symlink_to(folder / "a.png")
    (folder / "nowhere.png").symlink_to(folder / "gone.png")
    items = read_items(folder)
    assert items.ids == ["a.png", "again.png", "b/c.png", "d.png"]
    assert items.notes[1] == "3 links out of the folder or to another folder not followed: leak.png, leaks, round."


def test_a_folder_without_images(folder, tmp_path_factory):
    recipe, empty = read_items(folder).recipe, tmp_path_factory.mktemp("empty")
    with pytest.raises(InvalidDataError, match=r"the folder empty.* has no images; they should end in \.png"):
        recipe.read(empty)
    with pytest.raises(InvalidDataError, match=r"a\.png is a file; images are read from the folder"):
        recipe.read(folder / "a.png")


def test_folders_are_labels_if_asked_for(folder):
    assert read_items(folder, truth="folder").truth.tolist() == [folder.name, "b", folder.name]

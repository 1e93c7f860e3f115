"""Data sets by name: what is there, what is said when it is not, and downloads from a server of our own."""

from __future__ import annotations

import io
import os
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from pairmargin import DatasetError, dataset_readers, dataset_sources, datasets, list_datasets, load_dataset

KNOWN = {  # rows, columns, classes, size of the largest class
    "glass": (214, 9, 6, 76),
    "wdbc": (569, 30, 2, 357),
    "wine": (178, 13, 3, 71),
    "sonar": (208, 60, 2, 111),
    "segmentation": (2310, 19, 7, 330),
    "reuters": (8293, 400, 65, 3713),
    "mnist": (70_000, 784, 10, 7877),
    "coil20": (1440, 1024, 20, 72),
    "coil100": (7200, 1024, 100, 72),
    "digits": (1797, 64, 10, 183),
    "iris": (150, 4, 3, 50),
}
SHIPPED = {"wdbc": load_breast_cancer, "wine": load_wine, "digits": load_digits, "iris": load_iris}
needs_files = pytest.mark.skipif("PAIRMARGIN_DATA" not in os.environ, reason="PAIRMARGIN_DATA is not set")
loaded = cache(load_dataset)  # Reuters takes some seconds

ROWS = b"1,1.5,13,4,1,71,0,8,0,0,1\n2,1.6,12,3,2,72,0,7,0,0,7\n\n3,1.7,11,2,3,73,0,6,0,0,1\n"  # as glass.data


class Server:
    """Serves what `answers` holds: a status and a body for every path, and how many bytes it promises."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, bytes, int]] = {}
        self.asked: list[str] = []
        answers, asked = self.answers, self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                status, body, promised = answers.get(self.path, (404, b"", 0))
                self.send_response(status)
                self.send_header("Content-Length", str(promised))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def serve(self, path: str, body: bytes, status: int = 200, promised: int | None = None) -> str:
        self.answers[path] = (status, body, len(body) if promised is None else promised)
        return self.url + path


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


@pytest.fixture
def folder(monkeypatch, tmp_path) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("PAIRMARGIN_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def small_glass(monkeypatch):
    """Glass of three rows, from any address."""

    def change(url: str, digest: str = sha256(ROWS).hexdigest()) -> None:
        source = dataset_sources.SOURCES["glass"]
        file = dataset_sources.File("glass.data", len(ROWS), digest, url)
        edition = replace(source.editions[0], files=(file,))
        monkeypatch.setitem(dataset_sources.SOURCES, "glass", replace(source, editions=(edition,)))

    return change


def test_the_list_is_complete():
    assert list_datasets() == sorted(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_shape_and_classes(name):
    if name not in SHIPPED and "PAIRMARGIN_DATA" not in os.environ:
        pytest.skip("PAIRMARGIN_DATA is not set")
    dataset = loaded(name)
    rows, columns, classes, largest = KNOWN[name]
    assert dataset.data.shape == (rows, columns)
    assert dataset.data.dtype == (np.float32 if name == "mnist" else np.float64)
    assert np.isfinite(dataset.data).all()
    counts = np.bincount(dataset.target)
    assert (len(counts), counts.max()) == (classes, largest)
    assert counts.min() > 0
    assert dataset.title.endswith(f", {rows} × {columns}, {classes} classes")


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_told_of_a_data_set(name):
    source = dataset_sources.SOURCES[name]
    rows, columns, classes, _ = KNOWN[name]
    assert (source.n_rows, len(source.feature_names), len(source.classes)) == (rows, columns, classes)
    assert len(set(source.feature_names)) == columns
    assert len(set(source.classes.values())) == classes
    assert source.page.startswith("http")
    assert all((source.title, source.about, source.processing, source.terms))


@pytest.mark.parametrize("name", KNOWN)
def test_every_data_set_can_be_had(name):
    """Some edition is public or shipped, and a file without sha256 is an archive, which has checksums of its own."""
    editions = dataset_sources.SOURCES[name].editions
    assert any(all(file.url for file in edition.files) for edition in editions)
    assert all(file.sha256 or file.name.endswith(".zip") for edition in editions for file in edition.files)


@needs_files
@pytest.mark.parametrize("name", sorted(set(KNOWN) - {"digits", "iris"}))
def test_sizes_are_those_of_the_files(name):
    edition = datasets.find_edition(name)
    assert [path.stat().st_size for path in datasets.paths_of(name, edition)] == [file.size for file in edition.files]


@pytest.mark.parametrize("name", SHIPPED)
def test_scikit_learn_s_copies_need_no_file_and_no_network(name, folder, monkeypatch):
    monkeypatch.setattr(datasets, "_download", lambda *_: pytest.fail("a download was tried"))
    ours, theirs = load_dataset(name), SHIPPED[name]()
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.target_names[ours.target], theirs.target_names[theirs.target].astype(str))
    assert ours.feature_names == list(theirs.feature_names)
    assert not any(folder.iterdir())


@needs_files
@pytest.mark.parametrize("name", ["wine", "wdbc"])
def test_a_file_and_scikit_learn_s_copy_are_the_same_data_set(name, tmp_path, monkeypatch):
    from_file = load_dataset(name)
    monkeypatch.setenv("PAIRMARGIN_DATA", str(tmp_path))
    shipped = load_dataset(name)
    for key in ("data", "target", "target_names", "feature_names"):
        np.testing.assert_array_equal(from_file[key], shipped[key])


def test_x_and_y_alone():
    X, y = load_dataset("iris", return_X_y=True)
    np.testing.assert_array_equal(X, load_iris().data)
    np.testing.assert_array_equal(y, load_iris().target)


@needs_files
def test_columns_of_the_tables_have_their_names():
    glass, regions, sonar = loaded("glass"), loaded("segmentation"), loaded("sonar")
    silicon = glass.data[:, glass.feature_names.index("Si")]  # glass is mostly silica
    assert ((silicon > 69) & (silicon < 76)).all()
    assert glass.target_names[-1] == "headlamps"
    assert (glass.target == 5).sum() == 29
    assert (regions.data[:, regions.feature_names.index("region_pixel_count")] == 9).all()
    header = (Path(os.environ["PAIRMARGIN_DATA"]) / "segmentation" / "segmentation.data").read_text().splitlines()[3]
    assert header.lower().replace("-", "_").split(",") == regions.feature_names
    np.testing.assert_array_equal(np.unique(sonar.target_names[sonar.target], return_counts=True)[1], [111, 97])


@needs_files
def test_mnist_tells_its_training_part():
    mnist = loaded("mnist")
    assert (mnist.data.min(), mnist.data.max()) == (0, 1)
    np.testing.assert_array_equal(mnist.train_rows, np.arange(60_000))
    np.testing.assert_array_equal(mnist.test_rows, np.arange(60_000, 70_000))
    np.testing.assert_array_equal(np.bincount(mnist.target[mnist.test_rows])[:3], [980, 1135, 1032])
    assert mnist.feature_names[28] == "pixel_1_0"


@needs_files
def test_reuters_is_tf_idf_and_its_main_components():
    reuters = loaded("reuters")
    tfidf, data = reuters.tfidf, reuters.data
    assert sp.issparse(tfidf)
    assert tfidf.format == "csr"
    assert tfidf.shape == (8293, 18933)
    np.testing.assert_allclose(sp.linalg.norm(tfidf, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(data, axis=1), 1)
    _, lengths, directions = sp.linalg.svds(tfidf, 3, random_state=0)
    main = tfidf @ directions[::-1].T  # (n, 3), by falling length
    np.testing.assert_allclose(np.linalg.norm(main, axis=0), lengths[::-1])
    ratio = main / data[:, :3] * np.sign(data[0, :3] / main[0])  # one number a document
    np.testing.assert_allclose(ratio[:, 0], ratio[:, 1], rtol=1e-2)
    np.testing.assert_array_equal(np.bincount(reuters.target)[:4], [3713, 2055, 321, 298])
    assert (len(reuters.train_rows), len(reuters.test_rows)) == (5946, 2347)
    np.testing.assert_array_equal(np.sort(np.r_[reuters.train_rows, reuters.test_rows]), np.arange(8293))


@needs_files
def test_reuters_weights_by_hand():
    import scipy.io

    counts = scipy.io.loadmat(Path(os.environ["PAIRMARGIN_DATA"]) / "reuters" / "Reuters21578.mat")["fea"].tocsr()
    document_frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    for row in (0, 4000, 8292):
        weights = counts[row].toarray()[0] * (np.log((1 + 8293) / (1 + document_frequency)) + 1)
        np.testing.assert_allclose(loaded("reuters").tfidf[row].toarray()[0], weights / np.linalg.norm(weights))


# Pictures


def shrink_by_hand(picture: np.ndarray) -> list[float]:
    """Pixel by pixel, as the recipe says; a picture in colour is rounded twice."""
    colour = picture.ndim == 3
    values = []
    for column in range(32):
        for row in range(32):
            block = picture[4 * row : 4 * row + 4, 4 * column : 4 * column + 4].astype(float)
            if colour:
                grey = 0.2989 * block[..., 0] + 0.5870 * block[..., 1] + 0.1140 * block[..., 2]
                values.append(np.floor(np.floor(grey + 0.5).sum() / 16 + 0.5))
            else:
                values.append(block.sum() / 16)
    return values


def png(picture: np.ndarray) -> bytes:
    image = pytest.importorskip("PIL.Image")
    stream = io.BytesIO()
    image.fromarray(picture).save(stream, "PNG")
    return stream.getvalue()


def draw(n: int, *, colour: bool) -> np.ndarray:
    shape = (n, 128, 128, 3) if colour else (n, 128, 128)
    return np.random.RandomState(0).randint(256, size=shape, dtype=np.uint8)


def pack(path: Path, pictures: dict[str, np.ndarray]) -> list[Path]:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("convert.pl", "a file that has nothing to do with it")
        for name, picture in pictures.items():
            archive.writestr(name, png(picture))
    return [path]


@pytest.mark.parametrize("colour", [True, False], ids=["colour", "grey"])
def test_pictures_are_shrunk_by_the_recipe(colour, tmp_path):
    pictures = draw(6, colour=colour)
    names = [f"coil/obj{thing}__{angle}.png" for thing in (1, 2) for angle in (0, 5, 10)]
    paths = pack(tmp_path / "coil.zip", dict(reversed(list(zip(names, pictures, strict=True)))))
    expected = np.array([shrink_by_hand(picture) for picture in pictures]) / 255
    read = dataset_readers.pictures("coil/obj{}__{}.png", 2, range(0, 15, 5), dataset_readers.balance_of(expected))
    content = read(paths)
    np.testing.assert_array_equal(content.data, expected)
    np.testing.assert_array_equal(content.labels, [1, 1, 1, 2, 2, 2])


def test_pixel_names_follow_the_columns():
    """The bright pixel of row 2, column 1 is the one that is called so."""
    picture = np.zeros((128, 128), dtype=np.uint8)
    picture[8:12, 4:8] = 255
    names = dataset_sources.SOURCES["coil20"].feature_names
    assert names[int(dataset_readers._shrink(picture).argmax())] == "pixel_2_1"


def test_an_archive_of_other_pictures_is_refused(tmp_path):
    pictures = draw(2, colour=True)
    names = ["obj1__0.png", "obj1__5.png"]
    paths = pack(tmp_path / "coil.zip", dict(zip(names, pictures, strict=True)))
    with pytest.raises(DatasetError, match=r"coil\.zip lacks 1 pictures, such as obj1__10\.png; delete it"):
        dataset_readers.pictures("obj{}__{}.png", 1, range(0, 15, 5), (0.5, 0.25, 0.25))(paths)
    with pytest.raises(DatasetError, match=r"coil\.zip has other pictures: \[0\.49.*not \[0\.6, 0\.25, 0\.25\]"):
        dataset_readers.pictures("obj{}__{}.png", 1, range(0, 10, 5), (0.6, 0.25, 0.25))(paths)


def test_pictures_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DatasetError, match=r'read with Pillow: pip install "pairmargin\[experiments\]"'):
        dataset_readers._picture(b"")


@needs_files
def test_the_pictures_of_coil20_give_deng_cai_s_file(tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    archive = Path(os.environ["PAIRMARGIN_DATA"]) / "coil20" / "coil-20-proc.zip"
    if not archive.exists():
        pytest.skip(f"{archive.name} is not there")
    from_file = loaded("coil20")
    (tmp_path / "coil20").mkdir()
    (tmp_path / "coil20" / archive.name).symlink_to(archive)
    monkeypatch.setenv("PAIRMARGIN_DATA", str(tmp_path))
    rebuilt = load_dataset("coil20")
    np.testing.assert_array_equal(rebuilt.data, from_file.data)
    np.testing.assert_array_equal(rebuilt.target, from_file.target)


@needs_files
@pytest.mark.parametrize("name", ["coil20", "coil100"])
def test_balance_of_the_images_at_hand(name):
    dataset = loaded(name)
    assert dataset.data.flags.c_contiguous
    assert dataset.data.min() >= 0
    assert 0.98 < dataset.data.max() <= 1
    expected = {"coil20": dataset_sources.COIL20_BALANCE, "coil100": dataset_sources.COIL100_BALANCE}[name]
    np.testing.assert_allclose(dataset_readers.balance_of(dataset.data), expected, atol=1e-5)
    assert not np.allclose(dataset_readers.balance_of(dataset.data[::-1]), expected, rtol=0, atol=5e-4)


# Names and files


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("whine", "there is no data set 'whine' (did you mean 'wine'?); there are coil100, coil20, digits"),
        ("MNIST", "there is no data set 'MNIST' (did you mean 'mnist'?); there are"),
        ("xyzzy", "there is no data set 'xyzzy'; there are coil100"),
        (None, "there is no data set None; there are coil100"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(name, message):
    with pytest.raises(DatasetError) as refused:
        load_dataset(name)
    assert str(refused.value).startswith(message)


def test_folder_is_the_variable_s_or_the_user_s_cache(monkeypatch, tmp_path):
    pytest.importorskip("pooch")
    monkeypatch.setenv("PAIRMARGIN_DATA", "~/data")
    assert datasets.data_folder() == Path.home() / "data"
    monkeypatch.delenv("PAIRMARGIN_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_folder().name == "pairmargin"
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert datasets.data_folder() == Path.home() / ".cache" / "pairmargin"


def test_a_file_that_is_there_is_read(folder, small_glass):
    small_glass("http://127.0.0.1:9/never-asked")
    (folder / "glass").mkdir()
    (folder / "glass" / "glass.data").write_bytes(ROWS)
    glass = load_dataset("glass")
    np.testing.assert_array_equal(glass.data[:, 0], [1.5, 1.6, 1.7])
    np.testing.assert_array_equal(glass.target, [0, 5, 0])


def test_a_damaged_file_is_refused(folder):
    path = folder / "glass" / "glass.data"
    path.parent.mkdir()
    path.write_bytes(ROWS)
    with pytest.raises(DatasetError) as refused:
        load_dataset("glass")
    found, expected = sha256(ROWS).hexdigest(), dataset_sources.SOURCES["glass"].editions[0].files[0].sha256
    assert str(refused.value) == (
        f"{path} has sha256 {found}, not {expected}: damaged or another version; delete it and load it again"
    )


@pytest.mark.parametrize("damage", ["no archive", "cut", "other bytes", "not deflated"])
def test_a_damaged_archive_is_refused(damage, folder):
    path = folder / "coil20" / "coil-20-proc.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("coil-20-proc/obj1__0.png", np.random.RandomState(0).bytes(1000) * 5)
    content = bytearray(path.read_bytes())
    if damage == "other bytes":
        content[500] ^= 255
    elif damage == "not deflated":
        content[30 + len("coil-20-proc/obj1__0.png")] = 255  # the first byte after the header: no such kind of block
    path.write_bytes({"no archive": b"<html>", "cut": content[:-100]}.get(damage, content))
    with pytest.raises(DatasetError, match=r"coil-20-proc\.zip is a damaged archive \(.+\); delete it"):
        load_dataset("coil20")


# Downloads


def test_a_missing_file_is_downloaded_once(folder, server, small_glass):
    pytest.importorskip("pooch")
    small_glass(server.serve("/glass.data", ROWS))
    first, second = load_dataset("glass"), load_dataset("glass")
    np.testing.assert_array_equal(first.data, second.data)
    assert server.asked == ["/glass.data"]
    assert [path.name for path in (folder / "glass").iterdir()] == ["glass.data"]


def test_only_what_is_missing_is_downloaded(folder, server, monkeypatch):
    pytest.importorskip("pooch")
    source = dataset_sources.SOURCES["segmentation"]
    parts = {"segmentation.data": b"SKY" + b",1" * 19, "segmentation.test": b"PATH" + b",2" * 19}
    files = tuple(
        dataset_sources.File(name, len(body), sha256(body).hexdigest(), server.serve(f"/{name}", body))
        for name, body in parts.items()
    )
    edition = replace(source.editions[0], files=files)
    monkeypatch.setitem(dataset_sources.SOURCES, "segmentation", replace(source, editions=(edition,)))
    (folder / "segmentation").mkdir()
    (folder / "segmentation" / "segmentation.data").write_bytes(parts["segmentation.data"])
    X, y = load_dataset("segmentation", return_X_y=True)
    assert server.asked == ["/segmentation.test"]
    np.testing.assert_array_equal(X[:, 0], [1, 2])
    np.testing.assert_array_equal(y, [5, 4])


def test_another_file_at_the_address_is_refused_and_not_kept(folder, server, small_glass):
    pytest.importorskip("pooch")
    small_glass(server.serve("/glass.data", ROWS + b"4"))
    with pytest.raises(DatasetError) as refused:
        load_dataset("glass")
    said = str(refused.value)
    assert sha256(ROWS).hexdigest() in said
    assert sha256(ROWS + b"4").hexdigest() in said
    assert "by hand" in said
    assert not any((folder / "glass").iterdir())


def test_a_download_that_breaks_off_leaves_nothing(folder, server, small_glass):
    pytest.importorskip("pooch")
    small_glass(server.serve("/glass.data", ROWS, promised=10 * len(ROWS)))
    with pytest.raises(DatasetError, match="cannot be reached"):
        load_dataset("glass")
    assert not any((folder / "glass").iterdir())


def test_an_address_that_is_gone(folder, server, small_glass):
    pytest.importorskip("pooch")
    small_glass(f"{server.url}/moved")
    with pytest.raises(DatasetError, match=r"glass cannot be downloaded: the server says 404 Not Found; you can put"):
        load_dataset("glass")


def test_no_network_says_which_file_to_put_where(folder, monkeypatch, small_glass):
    pytest.importorskip("pooch")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    small_glass("http://127.0.0.1:9/glass.data")  # nobody listens there
    with pytest.raises(DatasetError) as refused:
        load_dataset("glass")
    assert str(refused.value) == (
        "glass cannot be downloaded: the server cannot be reached (ConnectionError); you can put its files in place by "
        f"hand:\n{folder / 'glass' / 'glass.data'} from http://127.0.0.1:9/glass.data "
        f"with sha256 {sha256(ROWS).hexdigest()}"
    )


def test_a_folder_that_cannot_be_written(folder, server, small_glass):
    pytest.importorskip("pooch")
    small_glass(server.serve("/glass.data", ROWS))
    (folder / "glass").write_text("a file in the way")
    with pytest.raises(DatasetError, match=r"glass cannot be downloaded: .*glass"):
        load_dataset("glass")


def test_without_pooch_the_pip_command_is_told(folder, monkeypatch, small_glass):
    small_glass("http://127.0.0.1:9/glass.data")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DatasetError, match=r'that needs pooch: pip install "pairmargin\[experiments\]"; you can put'):
        load_dataset("glass")


def test_coil100_comes_from_columbia_s_archive(folder):
    edition = datasets.find_edition("coil100")
    assert [file.name for file in edition.files] == ["coil-100.zip"]
    (folder / "coil100").mkdir()
    (folder / "coil100" / "COIL100_32x32_gray_rebuilt.mat").touch()
    assert datasets.find_edition("coil100") is dataset_sources.SOURCES["coil100"].editions[0]

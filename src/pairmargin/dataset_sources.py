"""The data sets that are known: what each is, whence it comes, on what terms, and how it is read.

A data set has one edition or several: UCI's file or scikit-learn's copy, Deng Cai's file or the pictures it was made
of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from sklearn.utils import Bunch

from .dataset_readers import N_COMPONENTS, Read, matlab, mnist, pictures, reuters, table


@dataclass(frozen=True)
class File:
    """One file: its name in the data set's folder, its bytes, its sha256 and its public address, where known."""

    name: str
    size: int
    sha256: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class Edition:
    """One of the forms in which a data set can be had; no files: scikit-learn ships it."""

    read: Read
    files: tuple[File, ...] = ()


@dataclass(frozen=True)
class Source:
    """What is known of a data set before it is read."""

    title: str
    about: str
    processing: str
    page: str
    terms: str
    n_rows: int
    feature_names: Sequence[str]
    classes: Mapping[Any, str]  # a label as the file has it: its name; their order is that of `target`
    editions: tuple[Edition, ...]

    @property
    def summary(self) -> str:
        """Title and numbers on one line."""
        return f"{self.title}, {self.n_rows} × {len(self.feature_names)}, {len(self.classes)} classes"


def _shipped(load: Callable[[], Bunch], labels: Sequence[str]) -> Edition:
    """A copy that comes with scikit-learn, whose targets 0, 1, … stand for these labels."""

    def read(_: list[Path]) -> Bunch:
        copy = load()
        return Bunch(data=copy.data, labels=np.array(labels)[copy.target])

    return Edition(read)


def _numbered(name: str, numbers: range) -> dict[int, str]:
    """Classes that have no names but their numbers."""
    return {number: f"{name}{number}" for number in numbers}


def _names(text: str) -> list[str]:
    return text.split(", ")


def _pixels(side: int, *, by_column: bool = False) -> list[str]:
    """``pixel_ROW_COLUMN`` for every pixel, row by row or column by column."""
    places = [(i, j) for i in range(side) for j in range(side)]
    return [f"pixel_{j}_{i}" if by_column else f"pixel_{i}_{j}" for i, j in places]


def _edition(read: Read, base: str | None, *files: tuple[str, int, str | None]) -> Edition:
    """An edition of files by path, size and sha256, at an address if they are public."""
    return Edition(
        read,
        tuple(File(Path(path).name, size, sha256, base and f"{base}/{path}") for path, size, sha256 in files),
    )


UCI = "https://archive.ics.uci.edu/dataset"
UCI_FILES = "https://archive.ics.uci.edu/ml/machine-learning-databases"
CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data"
COLUMBIA = "https://www.cs.columbia.edu/CAVE/software/softlib"
COLUMBIA_FILES = "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100"
MNIST_FILES = "https://ossci-datasets.s3.amazonaws.com/mnist"  # a mirror: the first host is often out of reach
CC_BY = "CC BY 4.0"
COIL = "research; cite {}"
COIL20_BALANCE = (0.30156, 0.15202, 0.14603)
COIL100_BALANCE = (0.26772, 0.13341, 0.14004)
NOTHING = "Nothing: the values are those of the file."

CELL = _names(
    "radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, symmetry, fractal dimension"
)
WINE = _names(
    "alcohol, malic_acid, ash, alcalinity_of_ash, magnesium, total_phenols, flavanoids, nonflavanoid_phenols, "
    "proanthocyanins, color_intensity, hue, od280/od315_of_diluted_wines, proline"
)
REGION = _names(
    "region_centroid_col, region_centroid_row, region_pixel_count, short_line_density_5, short_line_density_2, "
    "vedge_mean, vedge_sd, hedge_mean, hedge_sd, intensity_mean, rawred_mean, rawblue_mean, rawgreen_mean, exred_mean, "
    "exblue_mean, exgreen_mean, value_mean, saturation_mean, hue_mean"
)

SOURCES: dict[str, Source] = {
    "glass": Source(
        title="Glass Identification",
        about="Refractive index and oxides of splinters of glass, by the use of the glass. Seven kinds are defined "
        "and six occur: there is no kind 4. Two rows have the same features. The file's first column, an id, is left "
        "out: rows are sorted by kind, and it would give the answer away.",
        processing=NOTHING,
        page=f"{UCI}/42/glass+identification",
        terms=CC_BY,
        n_rows=214,
        feature_names=_names("RI, Na, Mg, Al, Si, K, Ca, Ba, Fe"),
        classes={
            "1": "building windows, float processed",
            "2": "building windows, not float processed",
            "3": "vehicle windows, float processed",
            "5": "containers",
            "6": "tableware",
            "7": "headlamps",
        },
        editions=(
            _edition(
                table(label=-1, first=1, last=-1, width=11),
                UCI_FILES,
                ("glass/glass.data", 11_903, "dd67373f4baf2807345df02cbfef2093d342e61ad0d82a4fb79af43ef8ce449d"),
            ),
        ),
    ),
    "wdbc": Source(
        title="Breast Cancer Wisconsin (Diagnostic)",
        about="Measures of cell nuclei in an image of a breast mass. There are 30 features: the 32 of the paper's "
        "table count the id and the diagnosis, which is the label. Here 0 is benign and 1 malignant, the other way "
        "round than in scikit-learn's load_breast_cancer.",
        processing=NOTHING,
        page=f"{UCI}/17/breast+cancer+wisconsin+diagnostic",
        terms=CC_BY,
        n_rows=569,
        feature_names=[form.format(name) for form in ("mean {}", "{} error", "worst {}") for name in CELL],
        classes={"B": "benign", "M": "malignant"},
        editions=(
            _edition(
                table(label=1, first=2, last=None, width=32),
                UCI_FILES,
                (
                    "breast-cancer-wisconsin/wdbc.data",
                    124_103,
                    "d606af411f3e5be8a317a5a8b652b425aaf0ff38ca683d5327ffff94c3695f4a",
                ),
            ),
            _shipped(sklearn.datasets.load_breast_cancer, ["M", "B"]),
        ),
    ),
    "wine": Source(
        title="Wine",
        about="Chemical analysis of wines of three cultivars from one region of Italy. The features differ in scale "
        "by a factor of thousands: standardise them.",
        processing=NOTHING,
        page=f"{UCI}/109/wine",
        terms=CC_BY,
        n_rows=178,
        feature_names=WINE,
        classes={"1": "class_0", "2": "class_1", "3": "class_2"},
        editions=(
            _edition(
                table(label=0, first=1, last=None, width=14),
                UCI_FILES,
                ("wine/wine.data", 10_782, "6be6b1203f3d51df0b553a70e57b8a723cd405683958204f96d23d7cd6aea659"),
            ),
            _shipped(sklearn.datasets.load_wine, ["1", "2", "3"]),
        ),
    ),
    "sonar": Source(
        title="Sonar, Mines vs. Rocks",
        about="The energy of a sonar's echo in 60 frequency bands, between 0 and 1, from a metal cylinder (mine) or "
        "a rock.",
        processing=NOTHING,
        page=f"{UCI}/151/connectionist+bench+sonar+mines+vs+rocks",
        terms=CC_BY,
        n_rows=208,
        feature_names=[f"band_{band}" for band in range(1, 61)],
        classes={"M": "mine", "R": "rock"},
        editions=(
            _edition(
                table(label=-1, first=0, last=-1, width=61),
                UCI_FILES,
                (
                    "undocumented/connectionist-bench/sonar/sonar.all-data",
                    87_776,
                    "e90434cdbf00fcf93ffa911fe447ae25606979658e60f1d32e155c3b5240234d",
                ),
            ),
        ),
    ),
    "segmentation": Source(
        title="Image Segmentation",
        about="Regions of 3 × 3 pixels from seven outdoor images. The 210 rows of UCI's first file come first, then "
        "the 2100 of its second. region_pixel_count is 9 in every row; 224 rows repeat an earlier one.",
        processing=NOTHING,
        page=f"{UCI}/50/image+segmentation",
        terms=CC_BY,
        n_rows=2310,
        feature_names=REGION,
        classes={name.upper(): name for name in _names("brickface, cement, foliage, grass, path, sky, window")},
        editions=(
            _edition(
                table(label=0, first=1, last=None, width=20),
                UCI_FILES,
                ("image/segmentation.data", 34_842, "ed5b5aee8081bbe875357149f73f50d7085e22cc0897f5b52eb7b52fea969a5b"),
                (
                    "image/segmentation.test",
                    345_084,
                    "2e9e966479d54c6aaec309059376dd9c89c1b46bf3a23aceeefb36d20d93a189",
                ),
            ),
        ),
    ),
    "reuters": Source(
        title="Reuters-21578, documents of one topic",
        about="News of 1987 as counts of 18933 words, in Deng Cai's selection (ModApte split, one topic each). Topics "
        "are numbered by falling size: the first two have 70 % of the documents, eight have a single one.",
        processing="Counts were turned into tf-idf (scikit-learn's TfidfTransformer: smoothed idf, rows of length 1) "
        "and reduced to 400 components by TruncatedSVD, random_state=0, without centring; then every document was "
        "brought to length 1, so that short and long ones count alike.",
        page=f"{CAI}/TextData.html",
        terms="research only; © Reuters Ltd",
        n_rows=8293,
        feature_names=[f"component_{number}" for number in range(N_COMPONENTS)],
        classes=_numbered("topic_", range(1, 66)),
        editions=(
            _edition(
                reuters,
                CAI,
                (
                    "Reuters21578/Reuters21578.mat",
                    896_756,
                    "2e442026efc64cfbcd3a531b4bc99b21eed6c5463276dbfa69d096f91dd5c245",
                ),
            ),
        ),
    ),
    "mnist": Source(
        title="MNIST handwritten digits",
        about="Grey images of 28 × 28 pixels. Rows 0 to 59999 are the training part (train_rows), the other 10000 the "
        "test part (test_rows), by other writers. data[i].reshape(28, 28) is an image.",
        processing="Pixels were divided by 255, in float32.",
        page="http://yann.lecun.com/exdb/mnist/",
        terms="© LeCun, Cortes; commonly stated CC BY-SA 3.0",
        n_rows=70_000,
        feature_names=_pixels(28),
        classes=_numbered("", range(10)),
        editions=(
            _edition(
                mnist,
                MNIST_FILES,
                (
                    "train-images-idx3-ubyte.gz",
                    9_912_422,
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                ),
                (
                    "train-labels-idx1-ubyte.gz",
                    28_881,
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                ),
                (
                    "t10k-images-idx3-ubyte.gz",
                    1_648_877,
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                ),
                (
                    "t10k-labels-idx1-ubyte.gz",
                    4_542,
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                ),
            ),
        ),
    ),
    "coil20": Source(
        title="COIL-20",
        about="Twenty objects on a turntable, each from 72 angles, as grey images of 32 × 32 pixels from 0 to 1. "
        "Pixels stand column by column: data[i].reshape(32, 32).T is an image. S. A. Nene, S. K. Nayar and H. Murase, "
        "Columbia Object Image Library (COIL-20), technical report CUCS-005-96, 1996.",
        processing="Nothing: the values are those of Deng Cai's COIL20.mat, which are the means of 4 × 4 pixels of "
        "Columbia's pictures, divided by 255.",
        page=f"{COLUMBIA}/coil-20.php",
        terms=COIL.format("CUCS-005-96"),
        n_rows=1440,
        feature_names=_pixels(32, by_column=True),
        classes=_numbered("object_", range(1, 21)),
        editions=(
            _edition(
                matlab(highest=1),
                CAI,
                ("COIL20/COIL20.mat", 3_022_227, "2a35c105dbb327492b90389e55612bcbf39187bc7c408252239903e4ce7d6958"),
            ),
            _edition(
                pictures("coil-20-proc/obj{}__{}.png", 20, range(72), COIL20_BALANCE),
                COLUMBIA_FILES,
                ("coil-20/coil-20-proc.zip", 12_691_374, None),
            ),
        ),
    ),
    "coil100": Source(
        title="COIL-100",
        about="A hundred objects on a turntable, each from 72 angles, as grey images of 32 × 32 pixels from 0 to 1. "
        "Pixels stand column by column: data[i].reshape(32, 32).T is an image. Not claimed to equal Deng Cai's "
        "COIL100.mat, which could not be had. S. A. Nene, S. K. Nayar and H. Murase, Columbia Object Image Library "
        "(COIL-100), technical report CUCS-006-96, 1996.",
        processing="Columbia's 128 × 128 colour pictures were made grey (0.2989 R + 0.5870 G + 0.1140 B, rounded), "
        "reduced to the rounded means of 4 × 4 pixels, and divided by 255.",
        page=f"{COLUMBIA}/coil-100.php",
        terms=COIL.format("CUCS-006-96"),
        n_rows=7200,
        feature_names=_pixels(32, by_column=True),
        classes=_numbered("object_", range(1, 101)),
        editions=(
            _edition(
                matlab(highest=255),
                None,
                (
                    "COIL100_32x32_gray_rebuilt.mat",
                    4_374_377,
                    "ad2daab8563013c9b37ba9d492097f2dc4fa75ca47db9e106c2cb53a9e99cf21",
                ),
            ),
            _edition(
                pictures("coil-100/obj{}__{}.png", 100, range(0, 360, 5), COIL100_BALANCE),
                COLUMBIA_FILES,
                ("coil-100/coil-100.zip", 125_000_000, None),
            ),
        ),
    ),
    "digits": Source(
        title="Handwritten digits",
        about="Grey images of 8 × 8 pixels from 0 to 16. data[i].reshape(8, 8) is an image.",
        processing="Nothing: the values are those of scikit-learn's load_digits.",
        page=f"{UCI}/80/optical+recognition+of+handwritten+digits",
        terms=CC_BY,
        n_rows=1797,
        feature_names=_pixels(8),
        classes={digit: digit for digit in "0123456789"},
        editions=(_shipped(sklearn.datasets.load_digits, list("0123456789")),),
    ),
    "iris": Source(
        title="Iris",
        about="Lengths of sepals and petals of three species of iris.",
        processing="Nothing: the values are those of scikit-learn's load_iris.",
        page=f"{UCI}/53/iris",
        terms=CC_BY,
        n_rows=150,
        feature_names=[f"{part} {size} (cm)" for part in ("sepal", "petal") for size in ("length", "width")],
        classes={name: name for name in ("setosa", "versicolor", "virginica")},
        editions=(_shipped(sklearn.datasets.load_iris, ["setosa", "versicolor", "virginica"]),),
    ),
}

"""What `wheel_check.sh` runs in an environment that has the wheel of pairmargin and what it needs, and nothing else."""

import re
import sys
import tarfile
from importlib import metadata, resources
from pathlib import Path

import numpy as np

import pairmargin

BASE = {  # what the base install may bring, with what these need in turn; docs/design/dependencies.md says why
    "pairmargin",
    *("numpy", "scipy", "scikit-learn", "torch", "safetensors", "faiss-cpu", "threadpoolctl", "typer", "rich", "jinja2"),
    *("joblib", "narwhals", "cloudpickle", "packaging"),
    *("filelock", "fsspec", "mpmath", "networkx", "sympy", "typing-extensions", "setuptools", "markupsafe"),
    *("annotated-doc", "click", "colorama", "markdown-it-py", "mdurl", "pygments", "shellingham"),
    *("annotated-types", "pydantic", "pydantic-core", "typing-inspection"),
    "pip",
}
EXTRAS = {"files", "h5ad", "text", "plots", "umap", "experiments", "docs", "dev"}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


home = Path(pairmargin.__file__).parent
assert "site-packages" in home.parts, home
assert (home / "py.typed").exists(), "py.typed is missing: type checkers would not look"
assert resources.files("pairmargin").joinpath("templates", "report.html").is_file(), "the report's page is missing"

about = metadata.metadata("pairmargin")
assert about["Version"] == pairmargin.__version__
assert set(about.get_all("Provides-Extra")) == EXTRAS, about.get_all("Provides-Extra")
assert about["License-Expression"] == "BSD-3-Clause"
assert any(str(file).endswith("LICENSE") for file in metadata.files("pairmargin"))
assert not any(str(file).startswith(("tests", "docs", "benchmarks")) for file in metadata.files("pairmargin"))

installed = {plain(each.name) for each in metadata.distributions()}
assert installed <= BASE, f"the base install is no longer light: {sorted(installed - BASE)}"

for name in pairmargin.__all__:
    try:
        getattr(pairmargin, name)
    except pairmargin.MissingPackageError as error:  # of an extra: the command that brings it is said
        assert 'pip install "pairmargin[' in str(error), error

rng = np.random.RandomState(0)
y = np.arange(60) % 3
X = rng.normal(size=(60, 4)) + 4 * np.eye(4)[y]
pairs = pairmargin.sample_pairs(y, 30, random_state=0)
model = pairmargin.MaxMarginClustering(n_clusters=3, random_state=0).fit(X, pairs=pairs)
assert pairmargin.clustering_accuracy(y, model.labels_) > 0.9
pairmargin.save(model, "model.safetensors")
assert (pairmargin.load("model.safetensors").predict(X) == model.predict(X)).all()

Path("table.csv").write_text("a,b\n1,2\n")
try:
    pairmargin.read_items("table.csv")
except pairmargin.MissingPackageError as error:
    assert str(error).endswith('run: pip install "pairmargin[files]"'), error
else:
    raise AssertionError("reading a table needs the extra `files`, which is not installed here")

with tarfile.open(sys.argv[1]) as source:
    inside = {Path(name).relative_to(Path(name).parts[0]).as_posix() for name in source.getnames()}
assert {"pyproject.toml", "README.md", "LICENSE", "src/pairmargin/py.typed"} <= inside, sorted(inside)[:20]

sys.stdout.write(f"{len(installed) - 1} packages, a fit, a model file: the wheel works\n")

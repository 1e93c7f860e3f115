"""What `wheel_check.sh` runs in an environment that has the wheel of pairmargin and what it needs, and nothing else."""

import re
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import numpy as np

import pairmargin

BASE = {  # what the base install may bring, with what these need in turn; docs/design/dependencies.md says why
    "pairmargin",
    *(
        "numpy",
        "scipy",
        "scikit-learn",
        "torch",
        "safetensors",
        "faiss-cpu",
        "threadpoolctl",
        "typer",
        "rich",
        "jinja2",
    ),
    *("joblib", "narwhals", "cloudpickle", "packaging"),
    *("filelock", "fsspec", "mpmath", "networkx", "sympy", "typing-extensions", "setuptools", "markupsafe"),
    *("annotated-doc", "click", "colorama", "markdown-it-py", "mdurl", "pygments", "shellingham"),
    *("annotated-types", "pydantic", "pydantic-core", "typing-inspection"),
    "pip",
}
EXTRAS = {"files", "h5ad", "text", "plots", "umap", "web", "experiments", "docs", "dev"}
IN_SOURCE = {"pyproject.toml", "README.md", "LICENSE", "src/pairmargin/py.typed"}


def check_contents() -> None:
    home = Path(pairmargin.__file__).parent
    assert "site-packages" in home.parts, home
    assert (home / "py.typed").exists(), "py.typed is missing: type checkers would not look"
    assert (home / "templates" / "report.html").exists(), "the report's page is missing"
    folders = {Path(str(file)).parts[0] for file in metadata.files("pairmargin") or []} - {"..", "pairmargin"}
    assert all(folder.endswith(".dist-info") for folder in folders), folders


def check_metadata() -> None:
    about = metadata.metadata("pairmargin")
    assert about["Version"] == pairmargin.__version__
    assert about["License-Expression"] == "BSD-3-Clause"
    assert set(about.get_all("Provides-Extra") or []) == EXTRAS, about.get_all("Provides-Extra")
    assert any(str(file).endswith("LICENSE") for file in metadata.files("pairmargin") or [])


def check_base_is_light() -> int:
    installed = {re.sub(r"[-_.]+", "-", each.name).lower() for each in metadata.distributions()}
    assert installed <= BASE, f"the base install is no longer light: {sorted(installed - BASE)}"
    return len(installed) - 1  # without pip


def check_a_fit() -> None:
    rng = np.random.RandomState(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + 4 * np.eye(4)[y]
    pairs = pairmargin.sample_pairs(y, 30, random_state=0)
    model = pairmargin.MaxMarginClustering(n_clusters=3, random_state=0).fit(X, pairs=pairs)
    assert pairmargin.clustering_accuracy(y, model.labels_) > 0.9
    pairmargin.save(model, "model.safetensors")
    assert (pairmargin.load("model.safetensors").predict(X) == model.predict(X)).all()


def check_what_is_missing_is_said() -> None:
    Path("table.csv").write_text("a,b\n1,2\n")
    said = ""
    try:
        pairmargin.read_items("table.csv")
    except pairmargin.MissingPackageError as error:
        said = str(error)
    assert said.endswith('run: pip install "pairmargin[files]"'), said


def check_source(archive: str) -> None:
    with tarfile.open(archive) as source:
        inside = {Path(*Path(name).parts[1:]).as_posix() for name in source.getnames()}
    assert inside >= IN_SOURCE, IN_SOURCE - inside


if __name__ == "__main__":
    check_contents()
    check_metadata()
    n_packages = check_base_is_light()
    check_a_fit()
    check_what_is_missing_is_said()
    check_source(sys.argv[1])
    sys.stdout.write(f"{n_packages} packages, a fit, a model file: the wheel works\n")

"""Imports point one way, `import pairmargin` is light, and the public names are the ones that are promised."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pairmargin

HOME = Path(pairmargin.__file__).parent
STOREYS = [  # from the top of the house to the ground: a room imports from its own storey or a lower one
    {"cli", "web", "experiments", "demo", "report", "fit_report", "files", "persist", "plotting", "__main__"},
    {"estimator", "baselines", "query", "model_selection"},
    {
        "stages",
        "training",
        "start",
        "consensus",
        "trust",
        "labelling",
        "graph",
        "neighbours",
        "cluster_count",
        "parting",
        "picked",
        "validation",
    },
    {
        "network",
        "objective",
        "rbm",
        "inputs",
        "threads",
        "eigen",
        "kmeans",
        "stored",
        "batches",
        "sample",
        "team",
        "checkpoint",
    },
    {"pairs", "metrics", "datasets", "readers"},
    {"exceptions", "extras", "looks", "writing", "enough_memory", "_version"},
]
PARTS = {
    "dataset_readers": "datasets",
    "dataset_sources": "datasets",
    "cli_data": "cli",
    "cli_experiment": "cli",
    "cli_files": "cli",
    "cli_help": "cli",
    "cli_label": "cli",
    "cli_progress": "cli",
}  # files that are one room with another
ALONE = {"pairs", "metrics", "exceptions"}  # these import nothing of ours but `exceptions` and `writing`
HEIGHT = {room: height for height, rooms in enumerate(reversed(STOREYS)) for room in rooms}


def room_of(path: Path) -> str:
    """The module or the subpackage that a file belongs to."""
    name = path.relative_to(HOME).with_suffix("").parts[0]
    return PARTS.get(name, name)


def files() -> list[Path]:
    return sorted(path for path in HOME.rglob("*.py") if path != HOME / "__init__.py")


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node, also inside functions, except what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if is_for_type_checkers(child):
            for other in child.orelse:
                yield other
                yield from statements(other)
        else:
            yield child
            yield from statements(child)


def imported_modules(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """The full names of what a source imports; ``package`` is where relative imports start from."""
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def rooms_imported_by(path: Path) -> set[str]:
    """The rooms of ours that a file looks into, other than its own."""
    package = (HOME.name, *path.relative_to(HOME).parent.parts)
    names = [name.split(".") for name in imported_modules(path.read_text(encoding="utf-8"), package)]
    inner = {PARTS.get(parts[1], parts[1]) for parts in names if parts[0] == HOME.name and len(parts) > 1}
    homes = {name: home.split(".")[0] for name, home in pairmargin._HOME.items()}
    public = {homes[name] for name in inner & set(homes)}  # `from pairmargin import Pairs`
    return ((inner - set(homes)) | public) - {room_of(path), "__version__"}


def test_the_reader_of_imports_sees_what_it_should() -> None:
    source = """
import os.path, torch
from .network import Layer
from . import rbm
from .. import objective
from pairmargin.pairs import Pairs
if TYPE_CHECKING:
    from .cli import app
else:
    from .start import start_head
def late():
    from .web.app import routes
"""
    found = set(imported_modules(source, ("pairmargin", "baselines")))
    assert found == {
        "os.path",
        "torch",
        "pairmargin.baselines.network.Layer",
        "pairmargin.baselines.rbm",
        "pairmargin.objective",
        "pairmargin.pairs.Pairs",
        "pairmargin.baselines.start.start_head",
        "pairmargin.baselines.web.app.routes",
    }


def test_reading_finds_the_imports_that_are_known_to_be_there() -> None:
    assert rooms_imported_by(HOME / "training.py") >= {"inputs", "network", "objective"}
    assert "pairs" in rooms_imported_by(HOME / "objective.py")
    assert "pairs" not in rooms_imported_by(HOME / "metrics.py")  # for type checkers alone


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(HOME).as_posix())
def test_imports_point_one_way(path: Path) -> None:
    room = room_of(path)
    assert room in HEIGHT, f"{room} has no storey yet: give it one in STOREYS, as low as it can live"
    for other in rooms_imported_by(path):
        assert other in HEIGHT, f"{path.name} imports {other}, which has no storey yet: give it one in STOREYS"
        assert HEIGHT[other] <= HEIGHT[room], f"{path.name} imports {other}, which lives above it"
        assert room not in ALONE or other in ("exceptions", "writing"), f"{path.name} imports {other}, but stands alone"


def test_no_two_rooms_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for path in files():
        graph.setdefault(room_of(path), set()).update(rooms_imported_by(path))
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"imports go round in a circle: {' → '.join(error.args[1])}")
    assert set(graph) <= set(order)


def test_every_storey_holds_rooms_that_are_there() -> None:
    rooms = [room for storey in STOREYS for room in storey]
    assert sorted(rooms) == sorted({room_of(path) for path in files()})


def test_the_page_on_architecture_has_the_same_rooms_in_the_same_storeys() -> None:
    page = Path(__file__).parents[1] / "docs" / "architecture.md"
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    told = [{name.strip("*/") for name in re.findall("`(.*?)`", line)} for line in lines if "`" in line]
    assert told == [storey - {"__main__", "_version"} for storey in STOREYS]


def test_importing_the_package_reads_neither_torch_nor_scikit_learn() -> None:
    code = "import sys, pairmargin; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    path = str(HOME.parent)
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(run.stdout.split())
    assert "pairmargin" in loaded
    assert not loaded & {"torch", "sklearn", "scipy", "numpy", "pandas", "pyarrow", "PIL", "matplotlib"}


def test_package_itself_imports_nothing_of_ours_but_its_version() -> None:
    source = (HOME / "__init__.py").read_text(encoding="utf-8")
    ours = {name for name in imported_modules(source, (HOME.name,)) if name.startswith(f"{HOME.name}.")}
    assert ours == {"pairmargin._version.__version__"}


@pytest.mark.parametrize("name", pairmargin.__all__)
def test_every_public_name_is_there(name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from pairmargin import {name}", namespace)
    assert getattr(namespace[name], "__name__", name) == name
    assert name in dir(pairmargin)


def test_public_names_stand_once_each_and_are_told_to_type_checkers() -> None:
    assert len(pairmargin.__all__) == len(set(pairmargin.__all__))  # ruff holds their order
    tree = ast.parse((HOME / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        alias.name
        for block in ast.walk(tree)
        if is_for_type_checkers(block)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == set(pairmargin.__all__) - {"__version__"}


def test_a_name_that_does_not_exist_is_refused_as_by_any_module() -> None:
    with pytest.raises(AttributeError, match=r"module 'pairmargin' has no attribute 'MMC'"):
        _ = pairmargin.MMC

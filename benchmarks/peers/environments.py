"""An environment for every peer, from its pinned versions.

    python benchmarks/peers/environments.py [--folder .peers] [--python python3.11] [metric_learn …]

The pins are for Python 3.11. What is there and up to date is left as it is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = Path(".peers")
PACKAGES = sorted(path.stem for path in HERE.glob("*.txt"))


def interpreter(folder: Path, package: str) -> Path:
    """The Python of a package's environment."""
    return folder.absolute() / package / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_ready(folder: Path, package: str) -> bool:
    """Whether an environment was made from the pins as they are now."""
    stamp = _stamp(folder, package)
    return stamp.exists() and stamp.read_text() == _pins(package).read_text()


def make(folder: Path, package: str, python: str = sys.executable) -> None:
    """Make an environment, in the place of an older one."""
    subprocess.run([python, "-m", "venv", "--clear", str(folder / package)], check=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(_pins(package))]
    subprocess.run([str(interpreter(folder, package)), *install], check=True)
    _stamp(folder, package).write_text(_pins(package).read_text())


def _pins(package: str) -> Path:
    return HERE / f"{package}.txt"


def _stamp(folder: Path, package: str) -> Path:
    return folder / package / ".ready"


def main() -> None:
    """Make those that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(PACKAGES)}; all, if none")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--python", default=sys.executable, help="a Python 3.11")
    options = parser.parse_args()
    if unknown := sorted(set(options.packages) - set(PACKAGES)):
        parser.error(f"there are no pins for {', '.join(unknown)}; there are {', '.join(PACKAGES)}")
    for package in options.packages or PACKAGES:
        if not is_ready(options.folder, package):
            print(f"making {options.folder / package}", flush=True)
            make(options.folder, package, options.python)


if __name__ == "__main__":
    main()

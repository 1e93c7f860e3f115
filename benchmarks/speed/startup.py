"""How much of PyTorch is imported by those who do not need it yet."""

from __future__ import annotations

import subprocess
import sys

from .measuring import Options
from .rows import Row

COUNT = "\nprint(sum(m.split('.')[0] == 'torch' for m in sys.modules))"
CODE = {
    "import pairmargin": "import sys, pairmargin",
    "pairmargin --help": "import sys; sys.argv = ['pairmargin', '--help']\nfrom pairmargin.__main__ import main\n"
    "try: main()\nexcept SystemExit: pass",
}


def measure(options: Options) -> list[Row]:
    rows = []
    for name, code in CODE.items():
        told = subprocess.run([sys.executable, "-c", code + COUNT], capture_output=True, text=True, check=True).stdout
        rows.append(Row("startup", f"`{name}`: modules of torch imported", float(told.split()[-1]), "modules", "<= 0"))
    return rows

"""The command ``pairmargin``, also as ``python -m pairmargin``."""

import sys

from .cli_help import HELP


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--help"], ["-h"]):
        sys.stdout.write(HELP)
        return
    from .cli import app  # it takes longer to import than to print the help

    app(prog_name="pairmargin")


if __name__ == "__main__":
    main()

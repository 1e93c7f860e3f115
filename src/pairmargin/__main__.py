"""``python -m pairmargin`` is the command ``pairmargin``."""

from .cli import main

if __name__ == "__main__":
    main()

"""Files for the readers and the model loader, by atheris, which looks for those that reach new code.

``python tests/fuzz_files.py csv -max_total_time=600`` wants ``pip install atheris``, which is not among the packages
for development. The kind of file comes first; all the rest is for libFuzzer. It begins with the files of
``tests/data/fuzz``, and those that it finds worth keeping go to the folder that is named before them, if there is one.
A file that broke something belongs there too: `test_any_file.py` reads them all.

``python tests/fuzz_files.py csv --cases 5000`` does without atheris, and damages those files at random.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", help="the ending of the files")
    parser.add_argument("--cases", type=int, help="damage files at random, without atheris")
    parser.add_argument("--seed", type=int, default=0)
    asked, of_libfuzzer = parser.parse_known_args()
    folder = Path(tempfile.mkdtemp())
    if asked.cases is not None:
        at_random(asked.kind, asked.cases, asked.seed, folder)
    else:
        by_atheris(asked.kind, of_libfuzzer, folder)


def at_random(kind: str, n_cases: int, seed: int, folder: Path) -> None:
    """Damage files of the corpus; stop at the first that breaks something, which is then in the folder."""
    from file_attempts import corpus, damaged, read

    begun = [path.read_bytes() for path in corpus(kind)]
    for case in range(n_cases):
        chance = Random(f"{kind} {seed} {case}")
        content = damaged(chance.choice(begun), chance)
        try:
            read(kind, content, folder)
        except BaseException:
            sys.stderr.write(f"case {case} of seed {seed}: {folder}\n{content!r}\n")
            raise
    sys.stdout.write(f"{n_cases} {kind} files, nothing found\n")


def by_atheris(kind: str, of_libfuzzer: list[str], folder: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["pairmargin"]):
        from file_attempts import corpus, read

    for path in corpus(kind):
        (folder / "corpus").mkdir(exist_ok=True)
        (folder / "corpus" / path.name).write_bytes(path.read_bytes())
    atheris.Setup([sys.argv[0], *of_libfuzzer, str(folder / "corpus")], lambda content: read(kind, content, folder))
    atheris.Fuzz()


if __name__ == "__main__":
    main()

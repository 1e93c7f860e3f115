#!/usr/bin/env bash
# Install the wheel in dist/ into an empty environment, outside of the checkout, and use it as a newcomer would.
# `make build` makes the wheel. This takes a minute or two, most of it for PyTorch, and so is no part of `make test`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(ls "$root"/dist/pairmargin-*.whl)
source=$(ls "$root"/dist/pairmargin-*.tar.gz)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
unset PYTHONPATH

"${PYTHON:-python3}" -m venv venv
venv/bin/python -m pip --disable-pip-version-check install --quiet -c "$root/constraints.txt" "$wheel"
venv/bin/pairmargin --version
venv/bin/pairmargin --help > help.txt
grep -q 'same' help.txt
venv/bin/python -W error "$root/tests/wheel_check.py" "$source"

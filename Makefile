# `make demo` and `make test` are all a newcomer needs; `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test coverage mutants check format docs build figures bench clean

help: ## list what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "make %-9s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) setuptools wheel torch
	$(INSTALL) --no-build-isolation -e '.[dev]'
	touch $@

$(DOCS_READY): $(READY)
	$(INSTALL) --no-build-isolation -e '.[docs]'
	touch $@

demo: $(READY) ## cluster handwritten digits from 100 answers; writes demo-report/index.html
	$(BIN)/pairmargin demo

test: $(READY) ## run every test, on all processors
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile

coverage: $(READY) ## run every test and list the lines that none of them reaches
	rm -rf build/coverage
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --show-missing

mutants: MUTMUT = PYTHONPATH=$(CURDIR)/build/mutmut $(BIN)/python -m mutmut
mutants: $(READY) ## change the code of objective, pairs and rbm in a thousand places, and list what no test notices
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --upgrade --target build/mutmut mutmut==3.8.0 "pytest<9" # it does not know pytest 9
	OMP_NUM_THREADS=1 $(MUTMUT) run --max-children 1
	$(MUTMUT) results

check: $(READY) ## lint and type-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## put the code into its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS_READY) ## run every example of the documentation and make a site of it; open site/index.html
	$(BIN)/python -m sphinx -E -W --keep-going -q -d build/doctrees docs site

build: $(READY) ## make a wheel and a source distribution in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation

figures: $(READY) ## run the paper's experiments, or what is missing of them, and put the tables in place (hours)
	$(BIN)/pairmargin experiment run all
	$(BIN)/pairmargin experiment report
	$(BIN)/python benchmarks/readme.py

bench: $(READY) ## measure speed and memory against the floor and against other packages; fills docs/speed.md (hours)
	$(BIN)/python benchmarks/bench.py

clean: ## remove what make has made
	rm -rf $(VENV) demo-report site build dist mutants src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

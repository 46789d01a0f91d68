# Three commands: `make demo`, `make test` and `make docs`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
MINUTES ?= 30

.PHONY: demo test docs lint types fuzz bench clean

demo: $(VENV)/.core
	$(BIN)/expunge demo --report expunge-demo.html

test: lint types
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

# the site, in build/site: pages, API and a gallery that is run; needs no network once set up
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going -d build/doctrees docs build/site
	$(BIN)/python scripts/check_site.py build/site

# random calls, each checked against a predictor of its own; ends with a table, and 1 on a fault
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/run.py --minutes $(MINUTES)

bench: $(VENV)/.test
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[report]'
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) build dist docs/generated .mypy_cache .ruff_cache .pytest_cache

# `make demo` and `make test` do everything on a fresh machine: each makes .venv if it is missing.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test bench reproduce lint docs-check examples clean

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py

test: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

bench: $(INSTALLED)
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

reproduce: $(INSTALLED)
	for script in benchmarks/reproduce/*.py; do $(BIN)/python $$script || exit 1; done

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs-check: $(INSTALLED)
	$(BIN)/python -m pytest --quiet tests/docs
	$(BIN)/python -m pytest --quiet --doctest-modules src plugins

examples: $(INSTALLED)
	for script in examples/*.py; do PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache mlruns mlflow.db

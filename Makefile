# `make demo` and `make test` do everything on a fresh machine: each makes .venv if it is missing.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test bench hostile reproduce lint docs docs-check doctests examples notebooks clean

$(INSTALLED): pyproject.toml constraints.txt build_loops.py $(wildcard src/trueup/_kernels/*.[ch])
	@echo "Making .venv and installing the tested versions (some minutes, once)"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: $(INSTALLED)
	@echo "Loading torch and MLflow"
	$(BIN)/python examples/demo.py

# A thread a worker, and three workers for two cores: many tests wait for what they have started. In
# the order of the folders, those of the quick core last: xdist would put the files of few tests there,
# which are the longest.
# Bytecode is written whatever the shell says: hundreds of processes import the same modules.
test: $(INSTALLED)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# Full-size simulations and speed; each writes its Markdown beside it. `make bench DATA=FOLDER` adds those
# that need a folder of public data sets, whose names and formats the scripts say.
bench: $(INSTALLED)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/mlflow_overhead.py
	$(BIN)/python benchmarks/core_simulations.py
	$(BIN)/python benchmarks/comparison_simulations.py
	$(BIN)/python benchmarks/decide_flights.py
	$(BIN)/python benchmarks/resampling_coverage.py
	$(BIN)/python benchmarks/small_validation.py
	$(BIN)/python benchmarks/autolog_overhead.py
	$(BIN)/python benchmarks/seed_race.py
	$(BIN)/python benchmarks/seed_race_flights.py
	$(BIN)/python benchmarks/tune_overhead.py
	for part in guard ilps speed; do $(BIN)/python benchmarks/calibrators.py $$part || exit 1; done
ifdef DATA
	$(BIN)/python benchmarks/consensus_suite.py --data $(DATA) --raw build/consensus_suite
endif

# Spoilt files and odd arguments by the hundred thousand, from fixed seeds: prints trials and failures.
hostile: $(INSTALLED)
	$(BIN)/python -m tests.hostile.attack

# The papers' tables. Those on public data sets need `make reproduce DATA=FOLDER`.
# Trained models are kept in ~/.cache/trueup: an interrupted call goes on.
reproduce: $(INSTALLED)
	$(BIN)/python benchmarks/reproduce/synthetic_linear.py
	for data in flights synthetic:1 fresh sizes; do \
		$(BIN)/python benchmarks/reproduce/click_models.py --data $$data || exit 1; \
	done
	$(BIN)/python benchmarks/reproduce/click_models_figures.py
ifdef DATA
	$(BIN)/python benchmarks/reproduce/field_aware.py --data $(DATA)
	$(BIN)/python benchmarks/reproduce/one_step_mse.py --data $(DATA) --raw build/one_step_mse
	$(BIN)/python benchmarks/reproduce/rolling.py --data $(DATA)
endif

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site is built strictly: a broken link or a public name without a docstring ends it.
docs: $(INSTALLED)
	$(BIN)/python docs/site/draw_architecture.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

docs-check: doctests
	$(BIN)/python -m pytest --quiet tests/docs

doctests: $(INSTALLED)
	$(BIN)/python -m pytest --quiet --doctest-modules src plugins

examples: $(INSTALLED)
	for script in examples/*.py; do PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python $$script || exit 1; done

# Each notebook is kept as a script; this runs it and writes it, with its output, to build/notebooks.
notebooks: $(INSTALLED)
	mkdir -p build/notebooks
	for script in examples/notebooks/*.py; do \
		$(BIN)/python -m jupytext --quiet --to ipynb --execute \
			--output build/notebooks/$$(basename $$script .py).ipynb $$script || exit 1; \
	done

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache mlruns mlflow.db

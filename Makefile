# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Nothing has to be installed beforehand but Python (>= 3.11) and make.
PYTHON ?= python3
BIN := .venv/bin
# Threads belong to the caller, not to the package: one each for parallel workers, no busy waiting on small machines.
export OMP_WAIT_POLICY ?= PASSIVE
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help venv venv-dev demo test test-all lint format bench bench-check baselines experiments report docs audit clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

venv:
	@$(PYTHON) tools/make_venv.py

venv-dev:
	@$(PYTHON) tools/make_venv.py dev

demo: venv ## hidden incidents of a simulated service, then real cells; writes results/demo/report.html
	$(BIN)/python -m latentdo demo --out results/demo --overwrite

test: lint ## lint, then the fast tests (under ten minutes on two cores)
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -m "not slow" src tests

test-all: lint ## every test, the slow ones and those that need a browser too, with coverage
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --cov --cov-report=term:skip-covered src tests

lint: venv-dev ## ruff, mypy --strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv-dev ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv-dev ## speed and memory; prints the tables of docs/performance.md
	$(BIN)/python -m benchmarks

bench-check: venv-dev ## has a fit become slower? ratios to a Gaussian mixture, against the stored ones
	$(ONE_THREAD) $(BIN)/python -m benchmarks.ratios

baselines: ## environments for the peers that experiments run (five, because their pins clash)
	$(PYTHON) -m venv .venv-baselines
	.venv-baselines/bin/python -m pip install --quiet -r experiments/baselines/requirements.txt
	$(PYTHON) -m venv .venv-baselines-sdcd
	.venv-baselines-sdcd/bin/python -m pip install --quiet -r experiments/baselines/requirements-sdcd.txt
	$(PYTHON) -m venv .venv-baselines-incidents
	.venv-baselines-incidents/bin/python -m pip install --quiet -r experiments/baselines/requirements-incidents.txt
	$(PYTHON) -m venv .venv-baselines-kinds
	.venv-baselines-kinds/bin/python -m pip install --quiet -r experiments/baselines/requirements-kinds.txt
	$(PYTHON) -m venv .venv-baselines-orders
	.venv-baselines-orders/bin/python -m pip install --quiet -r experiments/baselines/requirements-orders.txt
	.venv-baselines-orders/bin/python -m pip install --quiet --no-deps -r experiments/baselines/requirements-data.txt
	@if Rscript -e 'library(flexmix)' >/dev/null 2>&1; then \
	  .venv-baselines-orders/bin/python -m pip install --quiet -r experiments/baselines/requirements-mixtures.txt; \
	else echo "CMM is left out: it needs R with flexmix (Debian: r-base-core, r-cran-flexmix)"; fi

experiments: venv-dev ## what fits in a night on two cores; continues where it stopped
	$(ONE_THREAD) $(BIN)/python -m experiments

report: venv-dev ## tables, figures and docs/comparison.md from the stored results
	$(BIN)/python -m experiments.report

docs: venv-dev ## build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

audit: ## look up the pinned packages in the database of known vulnerabilities (needs a network)
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

clean: ## remove everything that make created
	rm -rf .venv .venv-* .coverage* .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist site results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

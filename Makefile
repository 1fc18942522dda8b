# One environment, .venv, in two steps: `demo` needs the package with its plots, `setup` adds what development needs.
# Stamp files in it remember what was done; a step is redone when the files it depends on change.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo lint test browser bench docs soak clean

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --quiet
WORKERS ?= 2

# python3.11 where it runs, else a python3 that is new enough. Override with `make PYTHON=...`.
PYTHON ?= $(shell for p in python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.stamp-setup ## Make .venv with everything for development, all extras included

demo: $(VENV)/.stamp-demo ## Install what it needs, solve a small real problem, draw the plan
	@$(BIN)/sparsetransport demo

lint: setup ## Style, types, import rule, spelling
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

# One thread a worker for matrix products: more of them than there are cores wait for each other.
test: export OMP_NUM_THREADS := 1
test: export OPENBLAS_NUM_THREADS := 1
test: lint browser $(VENV)/.stamp-docs ## lint, then the tests and doctests (ARGS=--cov measures coverage)
	$(BIN)/pytest --quiet -n $(WORKERS) $(ARGS)

# For the tests of the site, which are skipped without it: installed where that takes no password.
browser:
	@command -v chromium chromium-browser >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
		{ apt-get -qq update; apt-get -qq install --yes --no-install-recommends chromium; } >/dev/null 2>&1 || true

bench: setup ## Run the benchmarks and print their tables
	@$(BIN)/python -m benchmarks.run $(ARGS)

docs: $(VENV)/.stamp-docs ## Build the site with its gallery in build/site; warnings are errors
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs build/site $(ARGS)

soak: setup ## Solve for an hour: memory must stay flat and random problems must check (failures go to soak/)
	@$(BIN)/python -m benchmarks.soak --minutes 30 --keep soak $(ARGS)

clean: ## Remove the environment, caches and build products
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* coverage.xml
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none was found."; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-demo: pyproject.toml | $(BIN)/python
	@echo "Installing sparsetransport into $(VENV) (about a minute)"
	@$(PIP) --editable '.[plot]'
	@touch $@

# One call for both, so that the pins of requirements-dev.txt hold for the extras too.
$(VENV)/.stamp-setup: pyproject.toml requirements-dev.txt | $(BIN)/python
	@echo "Installing the development environment into $(VENV) (a minute or two)"
	@$(PIP) --requirement requirements-dev.txt --editable '.[all]'
	@touch $(VENV)/.stamp-demo $@

$(VENV)/.stamp-docs: requirements-docs.txt $(VENV)/.stamp-setup
	@$(PIP) --requirement requirements-docs.txt
	@touch $@

# make run ARGS="..."   set up, then run pi3nn-run (the main job by default)
# make test             set up, then the tests (minutes)
# make test-slow        what needs longer or system packages; PI3NN_SYSTEM_TESTS=1: installs them, starts daemons
# make paper            the whole paper (hours): PROTOCOL=released, BUDGET=quick (minutes), BUDGET=grid
# make docs             the documentation as a site: build/site/index.html
# make lint, format, clean

PYTHON ?= python3
ARGS ?= experiment=uci dataset=boston
PROTOCOL ?= paper
BUDGET ?= full
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt

.PHONY: run paper test test-slow system docs lint format clean

run: $(VENV)/.run
	@$(BIN)/pi3nn-run $(ARGS)

paper: $(VENV)/.run
	@$(BIN)/python scripts/reproduce_paper --protocol $(PROTOCOL) --budget $(BUDGET)

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(VENV)/.test system
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

# What slow tests need of the system. It is installed where PI3NN_SYSTEM_TESTS=1 says that the machine is for tests;
# elsewhere tests that miss something are skipped.
PACKAGES := texlive-latex-recommended chromium slurmctld slurmd slurm-client munge
system:
	@{ command -v pdflatex && command -v chromium && PATH=$$PATH:/usr/sbin command -v slurmctld; } >/dev/null \
	  || { [ "$$PI3NN_SYSTEM_TESTS" = 1 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install \
	       -qq -y --no-install-recommends $(PACKAGES) >/dev/null; } \
	  || echo "pdflatex, chromium or Slurm is missing: tests that need it are skipped (PI3NN_SYSTEM_TESTS=1 installs them)"

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --quiet --strict

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("pi3nn needs Python 3.11 or newer: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras: what is installed already is not looked at again.
$(VENV)/.run: $(BIN)/python $(SOURCES)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@# The kernel, which is else built on first use; without a compiler PyTorch does its work.
	@$(BIN)/python -c "from pi3nn.engine.native.build import library; library('float')" 2>/dev/null || true
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.run
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test,lint]'
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

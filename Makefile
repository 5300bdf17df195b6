# Everything runs in .venv, made from the first Python found that the package supports. `make help` lists the targets.
#
# Settings, as in `make test JOBS=4`:
#   PYTHON       the interpreter that .venv is made from
#   JOBS         processes that share the tests; 0 for none beside pytest itself
#   PYTEST_ARGS  further arguments of pytest, such as PYTEST_ARGS="-k wheel"
#   SINCE        the commit since which `make test-changed` looks for changes; HEAD, what is not committed
#   MINUTES      those of `make test-long`, after which it begins no test, and counts those that are left as skipped
#   MATRIX       what `make test-matrix` runs: versions of Python, each with the oldest dependencies that are supported,
#                the newest ones, or those of constraints.txt
#   BENCHMARKS   the scripts that `make bench` runs; all of benchmarks/ by default

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3 python; do \
    if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' >/dev/null 2>&1; \
    then echo $$p; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Bytecode, as pip makes of a package that is copied: a process that may write none compiles for a second otherwise.
BYTECODE := $(BIN)/python -m compileall -q __init__.py __main__.py cli data inference models

JOBS ?= 2
PYTEST_ARGS ?=
MINUTES ?=
# A worker that crashes ends the run: xdist would otherwise wait for it for ever. Files start in the order of
# tests/conftest.py, the longest first.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(PYTEST_ARGS)
SINCE ?= HEAD
MATRIX ?= 3.11-oldest 3.11-newest 3.12-pinned 3.12-newest 3.13-pinned 3.13-newest 3.14-pinned 3.14-newest
BENCHMARKS ?= $(sort $(wildcard benchmarks/*.py))

.DEFAULT_GOAL := help
.PHONY: help demo lint test test-changed test-long test-slow test-engines test-matrix notebooks docs bench clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 to 3.14 found; name one with make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.package: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	$(BYTECODE)
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[test,pyro]"
	$(BYTECODE)
	@touch $@ $(VENV)/.package

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[docs,pyro]"
	$(BYTECODE)
	@touch $@ $(VENV)/.package

demo: $(VENV)/.package  ## Dawid-Skene on the anaesthetists' ratings by EM, SVI and NUTS
	$(BIN)/crowdppl demo

lint: $(VENV)/.test  ## style, format, order of imports and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/house.py
	@mkdir -p $(VENV)/typing && ln -sfn ../.. $(VENV)/typing/crowdppl
	$(BIN)/mypy

test: lint  ## lint, then every test that takes seconds
	$(PYTEST)

test-changed: $(VENV)/.test  ## the tests of what differs from a commit: make test-changed SINCE=origin/main
	@paths="$$($(BIN)/python tests/changed.py $(SINCE))" && if [ -n "$$paths" ]; then $(PYTEST) $$paths; fi

test-long: $(VENV)/.test  ## the tests that take over two seconds each, or are of one more story or option
	CROWDPPL_TEST_MINUTES=$(MINUTES) $(PYTEST) -m "long and not slow and not gpu and not notebook"

test-slow: $(VENV)/.test  ## the tests that take minutes
	$(PYTEST) -m "slow and not gpu"

$(VENV)/.engines: pyproject.toml constraints.txt | $(VENV)/.test
	$(PIP) -e ".[dask,spark,ray]"
	@touch $@

test-engines: $(VENV)/.engines  ## the tests of frames of Dask, Spark (450 MB; Java) and Ray, in local mode
	$(BIN)/python -m pytest -m "not slow" $(PYTEST_ARGS) tests/inference/sources/test_partitions.py

$(VENV)/.matrix: constraints.txt | $(BIN)/python
	$(PIP) uv
	@touch $@

test-matrix: $(VENV)/.matrix  ## the tests without Pyro, with the oldest and the newest versions that are supported
	BIN=$(BIN) JOBS=$(JOBS) sh tests/matrix.sh $(VENV)/matrix "$(MATRIX)" $(PYTEST_ARGS)

notebooks: $(VENV)/.test  ## execute the notebooks on small settings
	$(PYTEST) --dist load -m notebook tests/test_notebooks.py

docs: $(VENV)/.docs  ## the documentation, in build/docs; a broken reference is an error
	$(BIN)/python -m sphinx -q -n -W --keep-going -b html -d build/doctrees docs build/docs

bench: $(VENV)/.test  ## run the scripts in benchmarks/ one after the other
	@for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:  ## remove the environment and everything that is built
	rm -rf $(VENV) build dist docs/modules docs/notebooks docs/reference *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

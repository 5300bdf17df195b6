# Everything runs in .venv, made from the first Python found that the package supports. `make help` lists the targets.

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
    if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1; \
    then echo $$p; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Processes that share the tests, and arguments for pytest: make test JOBS=0 PYTEST_ARGS="-k wheel"
JOBS ?= 2
PYTEST_ARGS ?=
# A worker that crashes ends the run: xdist would otherwise wait for it for ever.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --max-worker-restart 0 $(PYTEST_ARGS)
BENCHMARKS ?= $(sort $(wildcard benchmarks/*.py))

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow notebooks lint bench clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "  make %-10s %s\n", $$1, $$2 }'

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no Python 3.11, 3.12 or 3.13 found; name one with make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.package: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[test,pyro]"
	@touch $@ $(VENV)/.package

demo: $(VENV)/.package  ## Dawid-Skene on the anaesthetists' ratings by EM, SVI and NUTS
	$(BIN)/crowdppl demo

lint: $(VENV)/.test  ## style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p $(VENV)/typing && ln -sfn ../.. $(VENV)/typing/crowdppl
	$(BIN)/mypy

test: lint  ## lint, then every test that takes seconds
	$(PYTEST)

test-slow: $(VENV)/.test  ## the tests that take minutes
	$(PYTEST) -m "slow and not gpu"

notebooks: $(VENV)/.test  ## execute the notebooks on small settings
	$(PYTEST) --dist load -m notebook tests/test_notebooks.py

bench: $(VENV)/.test  ## run the scripts in benchmarks/ one after the other
	@for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:  ## remove the environment and everything that is built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

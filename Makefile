# make demo    the published EKS benchmark predicted, explained and improved upon (core install, no torch)
# make test    every test
# make lint    ruff and mypy
# make bench   times of the scenarios that must stay fast
#
# The environment is .venv, built once and again when pyproject.toml changes. PYTHON=... names the interpreter to
# build it with; otherwise the first Python of at least 3.11 that is found.

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench clean
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
PYTEST_ARGS ?= -n auto --dist loadfile

help:
	@sed -n 's/^# \{0,1\}//; 1,4p' Makefile

# An environment for the tests holds all that the demo needs, so the demo builds a smaller one only if there is none.
demo: $(if $(wildcard $(VENV)/dev.stamp),$(VENV)/dev.stamp,$(VENV)/core.stamp)
	@echo "==> goodput demo"
	@$(VENV)/bin/goodput demo

test: $(VENV)/dev.stamp
	@echo "==> Running the tests"
	@$(PY) -m pytest $(PYTEST_ARGS)

lint: $(VENV)/dev.stamp
	@echo "==> ruff"
	@$(PY) -m ruff check .
	@echo "==> mypy --strict"
	@$(PY) -m mypy

bench: $(VENV)/dev.stamp
	@echo "==> Benchmarks"
	@$(PY) -m benchmarks

clean:
	rm -rf $(VENV) build dist *.egg-info

$(VENV)/core.stamp: pyproject.toml $(PY)
	@echo "==> Installing goodput-planner and what it needs into $(VENV) (once; about a minute)"
	@$(PIP) install -e .
	@touch $@

$(VENV)/dev.stamp: pyproject.toml $(PY)
	@echo "==> Installing goodput-planner with its test tools into $(VENV) (once; about a minute)"
	@$(PIP) install -e '.[dev]'
	@touch $(VENV)/core.stamp $@

$(PY):
	@set -e; \
	found=; \
	for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "goodput-planner needs Python 3.11 or newer and found none as: $(or $(PYTHON),python3 python3.14 ... python3.11)." >&2; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3 $(or $(MAKECMDGOALS),demo)" >&2; \
	  exit 1; \
	fi; \
	if ! $$found -c 'import venv, ensurepip' >/dev/null 2>&1; then \
	  echo "$$found has no venv module. On Debian or Ubuntu: apt-get install python3-venv" >&2; \
	  exit 1; \
	fi; \
	echo "==> Creating $(VENV) with $$($$found --version)"; \
	$$found -m venv --clear $(VENV)

# Needs Python 3.11 or newer with its headers, a C compiler and make; the rest is put into .venv.

PYTHON ?= $(shell for p in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo webhooks-demo test lint stress soak bench plots clean

help: ## show this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/demo ## a blocked database, with and without admission (2 minutes)
	$(BIN)/python examples/blocked_db/demo.py

webhooks-demo: .venv/demo ## a flood, an exhausted ceiling, a killed worker: no event lost or done twice (1 minute)
	$(BIN)/python examples/webhook_fanout/demo.py

test: .venv/dev ## all tests
	$(BIN)/python -m pytest

lint: .venv/dev ## style, types and import directions
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

stress: .venv/dev ## only the tests with real threads under pressure
	$(BIN)/python -m pytest -m stress

soak: .venv/dev ## half an hour of mixed load, reloads, kills and aborts (MINUTES=30)
	$(BIN)/python -m tests.soak $(MINUTES)

bench: .venv/dev ## measure against what a user would pick instead
	$(BIN)/python -m benchmarks

plots: .venv/dev ## pictures and table of the limits side by side, from the simulator
	$(BIN)/python -m benchmarks.plots

clean: ## remove what these targets made
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of extras; newer than setup.cfg means that it is installed.
.venv/demo .venv/dev: .venv/%: setup.cfg
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found; set PYTHON=/path/to/python" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
		{ rm -rf .venv; echo "make: cannot create .venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

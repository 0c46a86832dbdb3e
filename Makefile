# Every target sets up what it needs in $(VENV) and is quick the second time.
#
#   make test PYTHON=python3.13 VENV=.venv313      another interpreter, beside the first
#   make test ARGS='tests/test_layers.py -x'       a part of the suite
#   make demo ARGS='--help'                        arguments of the example

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= auto
ARGS   ?=
PROGRAMS ?= 10000

BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal

.PHONY: demo test exhaustive fuzz lint bench

demo: $(VENV)/.installed-examples
	$(BIN)/python examples/digits.py $(ARGS)

test: $(VENV)/.installed-dev
	$(PYTEST) $(ARGS)

exhaustive: $(VENV)/.installed-dev
	$(PYTEST) -m exhaustive $(ARGS)

fuzz: $(VENV)/.installed-dev
	$(PYTEST) tests/fuzz --programs $(PROGRAMS) $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.installed-dev
	$(BIN)/python bench/run.py $(ARGS)

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed-%: pyproject.toml | $(VENV)/.created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@

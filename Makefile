# Everything a newcomer needs: `make demo` and `make test` work from a clean clone with python3 and make alone.
VENV   := .venv
PYTHON := $(VENV)/bin/python
PRECIS := $(VENV)/bin/precis
RUNS   := runs/demo

.PHONY: install demo test test-slow check format clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --upgrade pip==26.2
	$(PYTHON) -m pip install --quiet --constraint constraints.txt torch==2.13.0
	$(PYTHON) -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

test: install
	$(PYTHON) -m pytest -q -n 2 -m 'not slow and not gpu'

test-slow: install
	$(PYTHON) -m pytest -q -m 'slow and not gpu'

check: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

format: install
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

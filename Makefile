# Two commands do everything: `make demo` and `make test`. Both need Python (3.10 or newer) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test fix snapshots figures bench clean

demo: $(VENV)/installed  ## open the explorer on the lecture's MLP in the browser
	$(BIN)/irviz demo

test: $(VENV)/installed-dev  ## run every check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -ra

fix: $(VENV)/installed-dev  ## format, and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

snapshots: $(VENV)/installed-dev  ## write the expected DOT texts and outlines anew, to be reviewed
	IRVIZ_SNAPSHOTS=write $(BIN)/python -m pytest -q tests/view

figures: $(VENV)/installed-dev  ## draw the pictures in assets/ anew
	$(BIN)/python assets/figures.py

bench: $(VENV)/installed-dev  ## measure, and print the figures
	$(BIN)/python bench/run.py
	$(BIN)/python bench/scale.py
	$(BIN)/python bench/record.py
	$(BIN)/python bench/runs.py

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: $(VENV)/pip pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: $(VENV)/pip pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(VENV)/installed $@

clean:  ## delete the virtual environment
	rm -rf $(VENV)

# Two commands do everything: `make demo` and `make test`. Both need Python (3.10 or newer) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JAVASCRIPT := irviz/explorer/viewer irviz/cli/page
CHECKED := $(JAVASCRIPT:%=%/checked)
# the first needs no Python, and so runs during an installation
LINTS := js style prose types contracts
# one more than there are processors, as many tests wait for a browser or a process
WORKERS := $(shell $(PYTHON) -c "import os; print(min(os.cpu_count() + 1, 4))")

BENCHES = lecture_mlp.py large_modules.py diff.py recording_cost.py worker_overhead.py \
	fresh_process_overhead.py kernels.py page.py viewer.py:2000 strangers.py small_files.py event_loop.py \
	exchanged_folders.py:--compiles:1000 planted_bugs.py admitted_texts.py pictures.py \
	other_explorers.py:--peers:$(VENV)/peers/bin/python
export PYTHONDONTWRITEBYTECODE =  # each of many processes would compile irviz again

.PHONY: demo js lint style prose types contracts pytest changed check quick test deep fix snapshots figures docs bench fuzz package audit clean $(CHECKED)

demo: $(VENV)/installed  ## open the explorer on the lecture's MLP in the browser
	$(BIN)/irviz demo

js:  ## check the JavaScript: types, lint, tests, and that the bundles are current
	@if command -v npm >/dev/null; then \
	$(MAKE) --no-print-directory $(CHECKED); \
	else echo "The JavaScript is not checked: that needs Node.js 20."; test -z "$$IRVIZ_NO_SKIPS"; fi

$(CHECKED): %/checked: %/node_modules/.package-lock.json
	cd $* && npm run check

%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	cd $* && npm ci && touch $(CURDIR)/$@

lint:  ## check format, lint, spelling and style, types and contracts, all at once
	@$(MAKE) --no-print-directory --jobs $(LINTS)

style: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

prose: $(VENV)/installed-dev
	$(BIN)/codespell
	$(BIN)/python docs/check_prose.py *.md docs bench assets irviz notebooks

types: $(VENV)/installed-dev
	$(BIN)/mypy

contracts: $(VENV)/installed-dev
	$(BIN)/lint-imports

pytest: $(VENV)/installed-dev  ## run the tests that ARGUMENTS choose
	$(BIN)/python -m pytest -ra -n $(WORKERS) $(ARGUMENTS)

changed: $(VENV)/installed-dev  ## run the tests that a change touches, workers included, without a browser
	@tests=$$($(BIN)/python tests/changed.py) && if [ -n "$$tests" ]; then \
	$(BIN)/python -m pytest -ra -n $(WORKERS) $$tests; fi

check: lint changed  ## lint, and run the tests that a change touches: before every commit

quick: ARGUMENTS = -m "not (build or worker or browser or torch)" --ignore=tests/browser
quick: lint pytest  ## lint, and run every test that needs no build, worker, browser or torch

test:  ## lint, and run every test, at once: many tests wait, for a browser or a process
	@$(MAKE) --no-print-directory --jobs $(LINTS) pytest

deep: ARGUMENTS = -m hypothesis --hypothesis-profile=deep
deep: pytest  ## run the property tests with four times as many examples, as .ci/run does

fix: $(VENV)/installed-dev  ## format, and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

snapshots: $(VENV)/installed-dev  ## write the expected DOT texts and outlines anew, to be reviewed
	IRVIZ_SNAPSHOTS=write $(BIN)/python -m pytest -q tests/view

figures: $(VENV)/installed-dev  ## draw the figures of the course, of the README and of the packages
	$(BIN)/irviz figures
	$(BIN)/python assets/screenshot.py
	$(BIN)/python assets/architecture.py

docs: $(VENV)/installed-docs  ## write the documentation as pages to build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

bench: $(VENV)/installed-dev $(VENV)/peers/bin/netron  ## measure all; exit code 1 if an aim is missed
	@missed=; for script in $(BENCHES); do \
	echo "== $$script"; $(BIN)/python bench/$$(echo $$script | tr : ' ') || missed="$$missed $$script"; \
	done; test -z "$$missed" || { echo "aims are missed by$$missed"; exit 1; }

# explorers of models that irviz is compared with
$(VENV)/peers/bin/netron: $(VENV)/pip
	$(PYTHON) -m venv $(VENV)/peers
	$(VENV)/peers/bin/pip install --quiet --disable-pip-version-check netron onnx ai-edge-model-explorer model-explorer-onnx

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: $(VENV)/pip pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

# Python compiles what it loads: that is a part of what is installed
$(VENV)/installed-dev: $(VENV)/pip pyproject.toml
	$(BIN)/pip install --no-compile --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(VENV)/installed $@

$(VENV)/installed-docs: $(VENV)/pip pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $(VENV)/installed $@

fuzz: $(VENV)/installed-dev  ## open mutated files for ten minutes; what should not happen is kept in found/
	$(BIN)/python tests/fuzz.py $(ARGUMENTS)

package: $(VENV)/installed-dev  ## build the wheel, and use it in an empty environment
	bash tests/package.sh

audit: $(VENV)/installed-dev  ## look up known vulnerabilities of what irviz installs
	$(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	@$(BIN)/python tests/audit.py

clean:  ## delete the virtual environment
	rm -rf $(VENV)

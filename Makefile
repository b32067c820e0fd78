# Every target sets up .venv by itself; only Python 3.11+ and a package index are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
# Compiled modules and rewritten tests are kept: the tests start about a hundred processes, each of which would compile them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test pytest slowest test-slow test-gpu findings drills crash fuzz bench lint format docs release-check clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,oracle,ray,hub,datasets]"
	touch $@

demo: setup
	$(BIN)/python examples/demo.py

# The tests, and lint at the same time.
test: setup
	$(MAKE) --no-print-directory -j 2 lint pytest

pytest: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The 30 slowest tests and the seconds of each folder of tests.
slowest: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=30

test-slow: setup
	$(BIN)/python -m pytest -m slow

test-gpu: setup
	$(BIN)/python -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "no CUDA device can be used here")'
	$(BIN)/python -m pytest -m gpu

# The findings that take seconds, and their numbers in docs/findings.md; `spdebench findings --all --out` has all.
findings: setup
	$(BIN)/spdebench findings --out docs/findings.md

drills: setup
	$(BIN)/python tests/drills/run.py

# Interrupts every modifying call of every writing command, and writes the table in docs/security.md.
crash: setup
	$(BIN)/python tests/crash/run.py --write docs/security.md

fuzz: setup
	SPDEBENCH_FUZZ=10 $(BIN)/python -m pytest tests/security

bench: setup
	$(BIN)/spdebench bench data
	$(BIN)/spdebench bench metrics
	$(BIN)/spdebench bench kernels

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation site, build/docs/index.html; executed notebooks are kept in build/docs-cache.
docs: $(VENV)/.docs-ready
	$(BIN)/python -m sphinx -b html -W --keep-going -q -d build/docs-cache/doctrees docs build/docs
	@echo "open build/docs/index.html"

$(VENV)/.docs-ready: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# Whether tag (of this commit, or TAG=vX.Y.Z), version.py, CITATION.cff and CHANGELOG.md name the same version.
release-check:
	@$(PYTHON) tools/release_check.py $(TAG)

clean:
	rm -rf docs/api docs/equations docs/models
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache

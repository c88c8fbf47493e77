PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is imported is compiled then: all of it would take longer.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# What is depended on, in a fifth of pip's time. Where it cannot, or only pip was told of an index, pip does it all.
UV := VIRTUAL_ENV=$(VENV) UV_HTTP_TIMEOUT=20 UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1 $(BIN)/uv pip install --quiet
READY := $(VENV)/.ready
HOST := $(VENV)/openclaw-host/complete
DEPENDENCIES := $(VENV)/.dependencies
LIVE := $(VENV)/.live
# What the wheel is made of. With the folders: where a file was deleted, its folder is newer.
SOURCES := setup.py MANIFEST.in $(shell find src plugins/openclaw -not -path '*/node_modules*' -not -path '*/__pycache__*' -not -path '*.egg-info*' 2> /dev/null)
# Without what an earlier build left: a module that was deleted would be in the wheel again.
REMAKE := rm -rf build/lib build/bdist.* && $(PIP)
# Of two that run beside each other, one is printed after the other; make 3 cannot.
SYNCED := $(if $(filter 3.%,$(MAKE_VERSION)),,--output-sync=target)

# Compiled modules are kept between the many processes of the tests, whatever the machine says. Empty is unset.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m pytest
# Thousands of small databases are written, and all wait for the disk: in memory, where there is plenty. `make prove` uses the disk.
SCRATCH := $(if $(TMPDIR),,$(shell { test "$$(df --output=avail /dev/shm | tail -1)" -gt 8000000 && d=$$(mktemp -d /dev/shm/obXXXXXX) && \
	cp /bin/true $$d/run && $$d/run && echo TMPDIR=/dev/shm; rm -rf "$$d"; } 2> /dev/null))
IN_MEMORY := env $(SCRATCH) $(PYTEST)

.PHONY: run test check unit unit-a-to-f unit-g-to-z whole host plugin web prove prove-cluster bench docs site wheel lock audit develop clean

## run: set everything up and start the provider
run: $(READY)
	@$(BIN)/offbook model install > /dev/null || echo "Without its embedding model, recall goes by text."
	@$(BIN)/offbook serve

## test: set everything up and pass every check and test. Those on the real host mostly wait: all run beside each other
test:
	@$(MAKE) --no-print-directory --jobs=6 $(SYNCED) host check whole $(UNIT_HALVES)

check: $(READY)
	$(BIN)/ruff check src tests benchmarks docs release
	$(BIN)/ruff format --check src tests benchmarks docs release
	$(BIN)/mypy
	$(BIN)/lint-imports

# In two halves, so that each test is collected and compiled once. They give way to the host, which takes longest.
UNIT_HALVES := unit-a-to-f unit-g-to-z
unit: $(READY)
	@$(MAKE) --no-print-directory --jobs=2 $(SYNCED) $(UNIT_HALVES)

$(UNIT_HALVES): unit-%: $(READY)
	nice -n 5 $(IN_MEMORY) -o cache_dir=.pytest_cache/$@ $(if $(filter a-%,$*),tests/unit/[a-f]*/,tests/unit/[g-z]*/ tests/unit/test_*.py)

# A file stays with one process, which makes its fixtures once.
whole: $(READY)
	nice -n 2 $(IN_MEMORY) -o cache_dir=.pytest_cache/whole tests --ignore=tests/host --ignore=tests/unit --numprocesses=2 --dist=loadfile

## host: the proofs on the real, pinned OpenClaw, which is installed into .venv first (850 MB). A gateway a process, a file at a time
host: $(READY) $(HOST)
	$(IN_MEMORY) -o cache_dir=.pytest_cache/host tests/host --numprocesses=2 --dist=loadfile --no-loadscope-reorder

## plugin: build plugins/openclaw/dist again, and run the plugin's own tests
plugin: $(READY)
	$(BIN)/python -m tests.host.building
	$(BIN)/python -m pytest tests/host/test_plugin.py -k "built or own"

## web: build the web page into the package again, and the documentation's pictures of it with `make web SCREENSHOTS=1`
web: $(READY)
	$(BIN)/python -m tests.web.tools
	@test -z "$(SCREENSHOTS)" || $(BIN)/python -m docs.generate.screenshots

## prove: the long campaigns, for hours: 2,000 kills, a million fuzzed requests, 100,000 damaged files, every fault and every foreign id against every verb, 500 forgets, two hours of mixed load, 200 turns in every window and language; docs/explanation/what-was-tried.md is made from them
prove: $(READY)
	sed 's/^follow_imports = "skip"//' pyproject.toml > $(VENV)/mypy.toml && $(BIN)/mypy --config-file $(VENV)/mypy.toml
	$(PYTEST) tests/unit tests/contract --numprocesses=2 --hypothesis-profile=thorough --timeout=0
	PROVE_KILLS=1000 $(PYTEST) tests/acceptance/test_kill.py
	$(BIN)/python -m benchmarks.prove
	PROVE_REQUESTS=1000000 $(PYTEST) tests/acceptance/test_fuzz.py --timeout=0
	PROVE_FORGETS=500 $(PYTEST) tests/stateful/test_forgets.py --timeout=0
	PROVE_TURNS=200 $(PYTEST) tests/host/test_long_conversation.py --timeout=0
	PROVE_SWAPS=10 $(PYTEST) tests/host/test_compaction.py --timeout=0
	PROVE_ENGINES=5 $(PYTEST) tests/host/test_engines.py --timeout=0 -s
	$(BIN)/python -m benchmarks --only conservation --only forgetting
	$(BIN)/python -m docs.generate.pages

## prove-cluster: three nodes over one PostgreSQL, killed, stopped and cut off, round after round (ROUNDS=30, SEED=1)
prove-cluster: $(READY)
	PROVE_CLUSTER=$(or $(ROUNDS),30) PROVE_SEED=$(or $(SEED),1) $(PYTEST) tests/acceptance/test_nodes.py --timeout=0 -s

## bench: measure what is promised of speed and safety (BENCH="--quick", BENCH="--only acknowledge")
bench: $(READY)
	$(BIN)/python -m benchmarks $(BENCH)

## wheel: build the wheel, and try it in a fresh environment with only what it declares (`make test` does, too)
wheel: $(READY)
	$(BIN)/python -m pytest tests/wheel

## site: the documentation as pages, into build/site
site: $(READY)
	$(BIN)/python -m mkdocs build --strict --quiet

## docs: write the reference pages again from the code (a test compares them)
docs: $(READY)
	$(BIN)/python -m docs.generate.pages

## lock: make requirements.lock anew, with its bill of materials and the page of licences. Asks pip's index
lock: $(READY)
	$(BIN)/python -m release.lock

## audit: known faults of what is locked, by pip-audit in an environment of its own. Exit status 2: nothing could be looked up
audit: $(READY)
	@test -x $(VENV)/audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet pip-audit; } || true
	@$(BIN)/python -m release.audit $(VENV)/audit/bin/pip-audit

## develop: from now on .venv runs the sources as they lie here, not the wheel that is built from them (`make clean` ends it)
develop: $(DEPENDENCIES)
	@$(PIP) --no-deps --editable .
	@touch $(LIVE) $(READY)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache

# The wheel is built, installed and tested, as its users have it: what it lacks is missing here, too.
$(READY): $(DEPENDENCIES) $(SOURCES)
	@test -f $(LIVE) || test -z "$$(find $(SOURCES) -prune -newer $(DEPENDENCIES))" || ($(REMAKE) --no-deps --force-reinstall . && touch $(DEPENDENCIES))
	@$(BIN)/offbook --home $(VENV)/no-data model status > /dev/null || echo "The embedding model came damaged or not at all."
	@touch $(READY)

# Beside the other installation, which keeps one core busy. Where it fails, the tests that need it try again and say why.
$(HOST):
	@$(PYTHON) -m tests.host.installing > /dev/null 2>&1 || true

$(DEPENDENCIES): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Offbook into $(VENV) …"
	@$(BIN)/python -m pip config list | grep -qE '[.](index-url|no-index|constraint)=' || { $(PIP) uv && $(UV) -r pyproject.toml --extra dev; } || echo "uv could not: pip installs instead."
	@if test -f $(LIVE); then $(PIP) --editable '.[dev]'; else $(REMAKE) '.[dev]'; fi
	@touch $(DEPENDENCIES)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Of two that run beside each other, one is printed after the other; make 3 cannot.
SYNCED := $(if $(filter 3.%,$(MAKE_VERSION)),,--output-sync=target)

.PHONY: run test check unit host plugin bench docs clean

## run: set everything up and start the provider
run: $(READY)
	@$(BIN)/offbook model install > /dev/null || echo "Without its embedding model, recall goes by text."
	@$(BIN)/offbook serve

## test: set everything up and pass every check and test. Those on the real host mostly wait: they run beside the others
test: check
	@$(MAKE) --no-print-directory --jobs=2 $(SYNCED) unit host

check: $(READY)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/python -m pytest --ignore=tests/host

## host: the proofs on the real, pinned OpenClaw, which is installed into .venv first (850 MB)
host: $(READY)
	$(BIN)/python -m pytest tests/host

## plugin: build plugins/openclaw/dist again, and run the plugin's own tests
plugin: $(READY)
	$(BIN)/python -m tests.host.building
	$(BIN)/python -m pytest tests/host/test_plugin.py -k "built or own"

## bench: measure what is promised of speed and safety (BENCH="--quick", BENCH="--only acknowledge")
bench: $(READY)
	$(BIN)/python -m benchmarks $(BENCH)

## docs: write the reference pages again from the code (a test compares them)
docs: $(READY)
	$(BIN)/python -m offbook.reference

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache

$(READY): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Offbook into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/offbook --home $(VENV)/no-data model status > /dev/null || echo "The embedding model came damaged or not at all."
	@touch $(READY)

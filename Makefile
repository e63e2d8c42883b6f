# Every task of the project; nothing but git and make is needed beforehand.
#   DUCKDB_VERSION=…      build and test, in a folder of its own, with another pinned DuckDB of scripts/deps.env
#   DUCKDB_ROOT=<folder>  use an installed DuckDB instead of a pinned one
#   ARGS=…                passed on to the program a target runs
.DEFAULT_GOAL := build
.PHONY: deps build dev python test test-unit test-property test-volume test-mutants test-interop test-spark test-python-versions test-engines fuzz asan tsan arm64 demo bench lint format clean

cmake_args := -DDUCKDB_VERSION=$(DUCKDB_VERSION) $(if $(DUCKDB_ROOT),-DDUCKDB_ROOT=$(abspath $(DUCKDB_ROOT)))

# Where the release build is. As deep as build/, so that ccache finds what was compiled there.
default_version := $(shell sed -n 's/^DUCKDB_DEFAULT_VERSION=//p' scripts/deps.env)
build_dir := build$(addprefix -duckdb-,$(filter-out $(default_version),$(DUCKDB_VERSION)))

define build_preset
	cmake --preset $(1) $(cmake_args) >/dev/null
	cmake --build --preset $(1)
endef

deps: ## install what is missing
	@scripts/install_deps.sh

build: deps ## build/bin/strandline and everything else; DUCKDB_VERSION=2.0.1: build-duckdb-2.0.1/
	cmake --preset release -B $(build_dir) $(cmake_args) >/dev/null
	cmake --build $(build_dir)

dev: deps ## unoptimised build with debug information, in build-dev/
	$(call build_preset,dev)

python: build ## the Python package, for build/venv/bin/python; `pip install .` for others
	scripts/python.sh $(build_dir)

test: build ## every test
	scripts/test.sh $(build_dir)

test-unit: build ## the C++ tests only; ARGS='-R delta' chooses
	ctest --test-dir $(build_dir) --output-on-failure $(ARGS)

test-property: build ## the property tests only, on many more histories
	STRANDLINE_PROPERTY_SEED=$${STRANDLINE_PROPERTY_SEED:-$$(date +%s)} \
	STRANDLINE_PROPERTY_HISTORIES=$${STRANDLINE_PROPERTY_HISTORIES:-100000} build/tests/property_test $(ARGS)
	STRANDLINE_PROPERTY_SEED=$${STRANDLINE_PROPERTY_SEED:-$$(date +%s)} \
	STRANDLINE_CRASH_HISTORIES=$${STRANDLINE_CRASH_HISTORIES:-2000} build/tests/fault_test --gtest_filter='CrashHistories.*' $(ARGS)
	STRANDLINE_PROPERTY_SEED=$${STRANDLINE_PROPERTY_SEED:-$$(date +%s)} \
	STRANDLINE_BACKUP_CASES=$${STRANDLINE_BACKUP_CASES:-3000} build/tests/fault_test --gtest_filter='Backups.*' $(ARGS)

test-volume: python ## random pipelines of many events against an oracle in SQL (hours); figures by kind
	scripts/volume.sh --known-bad --seed $${STRANDLINE_VOLUME_SEED:-$$(date +%s)} \
	  --batches $${STRANDLINE_VOLUME_BATCHES:-10000} $(ARGS)

test-interop: build ## all tests with other readers and writers of Delta tables, Spark among them
	scripts/interop.sh $(ARGS)

test-spark: build ## the Spark SQL of AUTO CDC on a local Spark: every row case
	scripts/spark.sh $(ARGS)

test-python-versions: build ## `pip install` and the Python tests with CPython 3.10 to 3.13; ARGS='3.12' chooses
	scripts/python_versions.sh $(ARGS)

test-mutants: deps ## whether the tests bite: the mutations of tests/mutants/, in build-mutants/; ARGS='cdc' chooses
	@scripts/venv.sh
	build/venv/bin/python tests/mutants/mutants.py $(ARGS)

test-engines: deps ## every test with each pinned DuckDB but the default; ARGS='2.0.1' chooses
	scripts/test_engines.sh $(ARGS)

fuzz: ## libFuzzer on all that reads bytes of others, in build-fuzz/; ARGS='SECONDS TARGET…'
	@scripts/install_deps.sh fuzz
	$(call build_preset,fuzz)
	scripts/fuzz.sh $(ARGS)

asan: deps ## C++ tests under address and undefined-behaviour sanitizers, in build-asan/
	$(call build_preset,asan-ubsan)
	scripts/test.sh build-asan $(ARGS)

tsan: deps ## C++ tests under the thread sanitizer, in build-tsan/
	$(call build_preset,tsan)
	ctest --test-dir build-tsan --output-on-failure $(ARGS)

arm64: ## cross-build for arm64 Linux, in build-arm64/; `ctest --test-dir build-arm64` emulates it
	@scripts/install_deps.sh arm64
	$(call build_preset,arm64)

demo: build ## the documents' tutorial, step by step
	examples/tutorial/demo.sh

bench: build ## the benchmarks of docs/BENCHMARKS.md (hours; one: bench/run.sh NAME)
	bench/run.sh $(ARGS)

lint: ## clang-format and clang-tidy, both version 19; ruff for Python
	@scripts/install_deps.sh lint
	@scripts/venv.sh
	build/venv/bin/python -m ruff check .
	build/venv/bin/python -m ruff format --check bindings
	git ls-files '*.h' '*.cc' | xargs clang-format-19 --dry-run --Werror
	$(call build_preset,tidy)

format: ## format all C++ files and the Python package
	@scripts/install_deps.sh lint
	@scripts/venv.sh
	build/venv/bin/python -m ruff format bindings
	git ls-files '*.h' '*.cc' | xargs clang-format-19 -i

clean: ## remove what was built; downloads in .deps/ stay
	rm -rf build build-duckdb-* build-dev build-asan build-tsan build-tidy build-arm64 build-fuzz build-mutants build-cp3*

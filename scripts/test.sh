#!/usr/bin/env bash
# Runs the tests of a build folder and closes with one line 'N passed, N failed, N skipped'.
# The Python tests (tests/*/test_*.py) run against release builds: build/ and build-duckdb-*/.
# Usage: scripts/test.sh BUILD_DIR [ctest arguments]
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="$1"
shift
results="$build/test-results"
rm -rf "$results"
mkdir -p "$results"

ctest --test-dir "$build" --output-on-failure -j "$(nproc)" \
  --output-junit test-results/ctest.junit "$@"

if [[ "$build" == build || "$build" == build-duckdb-* ]]; then
  if scripts/python.sh "$build"; then
    export STRANDLINE_PROGRAM="$PWD/$build/bin/strandline"
    # Before the package that build/venv finds by itself.
    export PYTHONPATH="$PWD/$build/python${PYTHONPATH:+:$PYTHONPATH}"
    scripts/install_deps.sh test || echo "the database servers cannot be installed: their tests are skipped"
    # Spark has runs of its own: make test-interop, make test-spark.
    build/venv/bin/python -m pytest -q -rs -n "$(nproc)" --dist loadfile tests \
      --ignore=tests/interop/spark --ignore=tests/spark --junitxml="$results/python.pytest.xml"
  fi
  [[ -f "$results/python.pytest.xml" ]] || touch "$results/python.broken"
fi

python3 scripts/count_tests.py "$results"

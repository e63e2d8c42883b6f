#!/usr/bin/env bash
# Runs tests/volume/run.py with the oracle on a version of DuckDB of its own, in build/oracle.
# Needs the Python package (scripts/python.sh). STRANDLINE_ORACLE_DUCKDB names another version.
# Usage: scripts/volume.sh [options of tests/volume/run.py]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
version="${STRANDLINE_ORACLE_DUCKDB:-2.0.1}"
oracle="build/oracle/$version"
if [[ ! -d "$oracle/duckdb" ]]; then
  rm -rf "$oracle.part"
  build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target "$oracle.part" "duckdb==$version"
  mv "$oracle.part" "$oracle"
fi
PYTHONPATH="$PWD/$oracle${PYTHONPATH:+:$PYTHONPATH}" exec build/venv/bin/python tests/volume/run.py "$@"

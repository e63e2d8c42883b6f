#!/usr/bin/env bash
# Runs the benchmark in its own Python environment; arguments go to bench.py.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
stamp=build/bench-venv/.installed
if ! cmp -s bench/requirements.txt "$stamp"; then
  python3 -m venv build/bench-venv
  build/bench-venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement bench/requirements.txt
  cp bench/requirements.txt "$stamp"
fi
exec build/bench-venv/bin/python bench/bench.py "$@"

#!/usr/bin/env bash
# Runs a benchmark in its own Python environment: bench/run.sh [bench|log|keys|batches|history] [arguments of its script].
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
script=bench
if [[ "${1:-}" =~ ^(bench|log|keys|batches|history)$ ]]; then
  script="$1"
  shift
fi
stamp=build/bench-venv/.installed
if ! cmp -s bench/requirements.txt "$stamp"; then
  python3 -m venv build/bench-venv
  build/bench-venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement bench/requirements.txt
  cp bench/requirements.txt "$stamp"
fi
exec build/bench-venv/bin/python "bench/$script.py" "$@"

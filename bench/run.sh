#!/usr/bin/env bash
# Runs a benchmark in its own Python environment: bench/run.sh [bench|log|keys|batches|history|feed|snapshot|prospect] [arguments of its script].
# Without a name it runs all of them with these arguments.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts=(bench log keys batches history feed snapshot prospect)
if [[ " ${scripts[*]} " == *" ${1:-all} "* ]]; then
  scripts=("$1")
  shift
fi
stamp=build/bench-venv/.installed
if ! cmp -s bench/requirements.txt "$stamp"; then
  python3 -m venv build/bench-venv
  build/bench-venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement bench/requirements.txt
  cp bench/requirements.txt "$stamp"
fi
for script in "${scripts[@]}"; do
  build/bench-venv/bin/python "bench/$script.py" "$@"
done

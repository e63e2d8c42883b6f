#!/usr/bin/env bash
# Makes build/venv with the pinned Python packages of tests/requirements.txt.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=tests/requirements.txt
stamp=build/venv/.installed
cmp -s "$requirements" "$stamp" && exit 0
python3 -m venv build/venv
build/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
cp "$requirements" "$stamp"

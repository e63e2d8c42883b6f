#!/usr/bin/env bash
# Builds the Python package for the tests: build/python/strandline, importable from build/venv.
# Only the extension is compiled; the library and the program are those of build/.
# Usage: scripts/python.sh [BUILD_DIR]      (another release build: found where PYTHONPATH names it)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build}"
scripts/venv.sh
cmake --preset release -B "$build" -DSTRANDLINE_PYTHON="$PWD/build/venv/bin/python" >/dev/null
cmake --build "$build" --target strandline strandline_python
[[ "$build" == build ]] || exit 0
site="$(build/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
echo "$PWD/build/python" >"$site/strandline.pth"

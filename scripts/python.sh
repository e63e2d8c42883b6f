#!/usr/bin/env bash
# Builds the Python package for the tests: build/python/strandline, importable from build/venv.
# Only the extension is compiled; the library and the program are those of build/.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/venv.sh
cmake --preset release -DSTRANDLINE_PYTHON="$PWD/build/venv/bin/python" >/dev/null
cmake --build --preset release --target strandline strandline_python
site="$(build/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
echo "$PWD/build/python" >"$site/strandline.pth"

#!/usr/bin/env bash
# Runs the programs that `strandline plan --dialect spark` prints on a local Spark: every row case.
# Where Spark cannot be installed the tests are skipped and the reason is printed.
# Usage: scripts/spark.sh [pytest arguments]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=build/spark-install.log

install_spark() {
  scripts/install_deps.sh interop &&
    build/venv/bin/python -m pip install --quiet --disable-pip-version-check \
      --requirement tests/interop/spark/requirements.txt
}

scripts/venv.sh
if install_spark >"$log" 2>&1; then
  export STRANDLINE_SPARK=yes
else
  export STRANDLINE_SPARK_MISSING="Spark cannot be installed: $(tail -n 1 "$log")"
  echo "$STRANDLINE_SPARK_MISSING (all of it in $log)"
fi
build/venv/bin/python -m pytest -q -rs tests/spark "$@"

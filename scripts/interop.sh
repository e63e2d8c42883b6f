#!/usr/bin/env bash
# Runs all interoperability tests, those with Spark included. Where Spark cannot be installed its
# tests are skipped and the reason is printed.
# Usage: scripts/interop.sh [pytest arguments]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/deps.env
jars=".deps/delta-spark-$DELTA_SPARK_VERSION"
log=build/interop-install.log

install_jars() {
  local name sum pin file
  mkdir -p "$jars"
  for pin in $DELTA_SPARK_JARS; do
    name="${pin%%:*}" sum="${pin#*:}" file="$jars/$name-$DELTA_SPARK_VERSION.jar"
    [[ -f "$file" ]] && continue
    mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy \
      -Dartifact="io.delta:$name:$DELTA_SPARK_VERSION" -DoutputDirectory="$PWD/$jars/new" || return 1
    if ! sha256sum --quiet --check <<<"$sum  $jars/new/${file##*/}"; then
      echo "$name is not the pinned file"
      return 1
    fi
    mv "$jars/new/${file##*/}" "$file"
  done
}

install_spark() {
  scripts/install_deps.sh interop &&
    build/venv/bin/python -m pip install --quiet --disable-pip-version-check \
      --requirement tests/interop/spark/requirements.txt &&
    install_jars && rm -rf "$jars/new"
}

scripts/venv.sh
if install_spark >"$log" 2>&1; then
  export STRANDLINE_SPARK_JARS="$PWD/$jars"
else
  export STRANDLINE_SPARK_MISSING="Spark cannot be installed: $(tail -n 1 "$log")"
  echo "$STRANDLINE_SPARK_MISSING (all of it in $log)"
fi
build/venv/bin/python -m pytest -q -rs tests/interop "$@"

#!/usr/bin/env bash
# Builds with every pinned DuckDB but the default one, each in a folder of its own, runs all tests
# there and prints what passed, version by version. Tests that need an extension of DuckDB are skipped
# by name where there is none for the version.
# Usage: scripts/test_engines.sh [VERSION…]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/deps.env
versions=("$@")
if [[ ${#versions[@]} -eq 0 ]]; then
  mapfile -t versions < <(awk -v default="$DUCKDB_DEFAULT_VERSION" \
    '$2 == "header" && $1 != default { print $1 }' <<<"$DUCKDB_PACKAGES")
fi

told=()
failed=0
for version in "${versions[@]}"; do
  build="build-duckdb-$version"
  cmake --preset release -B "$build" -DDUCKDB_VERSION="$version" >/dev/null
  cmake --build "$build"
  "$build/bin/strandline" --version
  scripts/test.sh "$build" | tee "$build/tests.log" || failed=1
  told+=("DuckDB $version: $(tail -n 1 "$build/tests.log")")
done
printf '%s\n' "${told[@]}"
exit "$failed"

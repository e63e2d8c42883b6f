#!/usr/bin/env bash
# Puts the pinned DuckDB into .deps/duckdb-<version>-<arch>/{lib,include} and prints that folder.
# Does nothing when it is there already.
# Usage: scripts/fetch_duckdb.sh [x86_64|aarch64]      (default: this machine)
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$root/scripts/deps.env"
arch="${1:-$(uname -m)}"
case "$arch" in
  x86_64 | aarch64) ;;
  *) echo "no prebuilt DuckDB for '$arch': set DUCKDB_ROOT to an installed one" >&2; exit 1 ;;
esac
package_var="DUCKDB_LIB_PACKAGE_$arch" sha_var="DUCKDB_LIB_SHA256_$arch"

target="$root/.deps/duckdb-$DUCKDB_VERSION-$arch"
if [[ -f "$target/.complete" ]]; then echo "$target"; exit 0; fi

mkdir -p "$root/.deps"
work="$(mktemp -d "$root/.deps/fetch.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/out/lib" "$work/out/include" "$work/sdist" "$work/npm"
verify() { echo "$1  $2" | sha256sum --check --quiet - >&2; }

echo "fetching DuckDB $DUCKDB_VERSION ($arch)" >&2
archive="$(cd "$work/npm" && npm pack --silent "${!package_var}@$DUCKDB_LIB_VERSION")"
verify "${!sha_var}" "$work/npm/$archive"
tar -xzf "$work/npm/$archive" -C "$work/out/lib" --strip-components=1 package/libduckdb.so

# pip checks the hash before it looks inside. It then asks the package for its metadata, which takes
# seconds and compiles nothing; the time limit is for the case that this ever changes.
echo "duckdb==$DUCKDB_VERSION --hash=sha256:$DUCKDB_SDIST_SHA256" >"$work/requirements.txt"
timeout 300 python3 -m pip --disable-pip-version-check download --quiet --no-deps --no-binary duckdb \
  --require-hashes --dest "$work/sdist" --requirement "$work/requirements.txt" >&2
sdist="duckdb-$DUCKDB_VERSION"
verify "$DUCKDB_SDIST_SHA256" "$work/sdist/$sdist.tar.gz"
tar -xzf "$work/sdist/$sdist.tar.gz" -C "$work/out/include" --strip-components=5 \
  "$sdist/external/duckdb/src/include/duckdb.h"

touch "$work/out/.complete"
rm -rf "$target"
mv "$work/out" "$target"
echo "$target"

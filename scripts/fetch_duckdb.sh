#!/usr/bin/env bash
# Puts a pinned DuckDB into .deps/duckdb-<version>-<arch>/{lib,include} and prints that folder.
# Does nothing when it is there already.
# Usage: scripts/fetch_duckdb.sh [x86_64|aarch64 [VERSION]]      (default: this machine, the default version)
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$root/scripts/deps.env"
arch="${1:-$(uname -m)}"
version="${2:-$DUCKDB_DEFAULT_VERSION}"

# Prints "package version sha256" of a row of the table.
row() { awk -v version="$version" -v what="$1" '$1 == version && $2 == what { print $3, $4, $5 }' <<<"$DUCKDB_PACKAGES"; }
if [[ -z "$(row header)" ]]; then
  echo "DuckDB $version is none of the pinned versions ($(awk '$2 == "header" { printf " %s", $1 }' <<<"$DUCKDB_PACKAGES") ): set DUCKDB_ROOT to an installed one" >&2
  exit 1
fi
if [[ -z "$(row "$arch")" ]]; then
  echo "no prebuilt DuckDB $version for '$arch': set DUCKDB_ROOT to an installed one" >&2
  exit 1
fi

target="$root/.deps/duckdb-$version-$arch"
if [[ -f "$target/.complete" ]]; then echo "$target"; exit 0; fi

mkdir -p "$root/.deps"
work="$(mktemp -d "$root/.deps/fetch.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/out/lib" "$work/out/include" "$work/header" "$work/library"
verify() { echo "$1  $2" | sha256sum --check --quiet - >&2; }

# pip checks the hash before it looks inside.
pip_download() {
  local folder="$1" pinned="$2" sum="$3"
  shift 3
  echo "duckdb==$pinned --hash=sha256:$sum" >"$work/requirements.txt"
  timeout 300 python3 -m pip --disable-pip-version-check download --quiet --no-deps \
    --require-hashes --dest "$folder" --requirement "$work/requirements.txt" "$@" >&2
}

# The Python wheel's module has the whole C interface in it, and needs symbols of the interpreter,
# which no call of the C interface comes to. A second library gives them where there is no
# interpreter: functions that end the program, empty objects. Where there is one, its own come first.
library_of_wheel() {
  local module="$1" compiler=gcc native
  native="$(uname -m)"
  [[ "$arch" == "$native" ]] || compiler="$arch-linux-gnu-gcc"
  "$root/scripts/install_deps.sh" wheel >&2
  {
    echo '#include <stdlib.h>'
    nm --dynamic --undefined-only "$module" | awk '$2 ~ /^_?Py/ { print $2 }' | sort -u |
      while read -r symbol; do
        case "$symbol" in
          PyExc_* | *_Type | *Struct | _PyWeakref_RefType) echo "void* $symbol[64];" ;;
          *) echo "void $symbol(void) { abort(); }" ;;
        esac
      done
  } >"$work/no_python.c"
  "$compiler" -shared -fPIC -O1 -Wl,-soname,libduckdb_no_python.so \
    -o "$work/out/lib/libduckdb_no_python.so" "$work/no_python.c"
  cp "$module" "$work/out/lib/libduckdb.so"
  # One change a call: patchelf of Debian 12 fails on several.
  local change
  for change in '--add-needed libduckdb_no_python.so' '--set-rpath $ORIGIN' '--set-soname libduckdb.so'; do
    # shellcheck disable=SC2086
    patchelf $change "$work/out/lib/libduckdb.so"
  done
}

echo "fetching DuckDB $version ($arch)" >&2
read -r package pinned sum <<<"$(row "$arch")"
case "$package" in
  npm:*)
    archive="$(cd "$work/library" && npm pack --silent "${package#npm:}@$pinned")"
    verify "$sum" "$work/library/$archive"
    tar -xzf "$work/library/$archive" -C "$work/out/lib" --strip-components=1 package/libduckdb.so
    ;;
  pypi:*)
    pip_download "$work/library" "$pinned" "$sum" --only-binary :all: --python-version 3.11 \
      --platform "manylinux_2_28_$arch"
    python3 -m zipfile -e "$work"/library/*.whl "$work/library"
    library_of_wheel "$(echo "$work"/library/_duckdb.*.so)"
    ;;
esac

# pip asks a source distribution for its metadata, which takes seconds and compiles nothing; the time
# limit is for the case that this ever changes.
read -r package pinned sum <<<"$(row header)"
pip_download "$work/header" "$pinned" "$sum" --no-binary duckdb
verify "$sum" "$work/header/duckdb-$pinned.tar.gz"
tar -xzf "$work/header/duckdb-$pinned.tar.gz" -C "$work/out/include" --strip-components=5 \
  "duckdb-$pinned/external/duckdb/src/include/duckdb.h"

touch "$work/out/.complete"
rm -rf "$target"
mv "$work/out" "$target"
echo "$target"

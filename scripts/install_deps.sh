#!/usr/bin/env bash
# Installs the Debian packages the build needs, only those that are missing.
# Usage: scripts/install_deps.sh [test|lint|arm64|interop|fuzz|wheel]
#   test     adds the database servers that tests read from
#   lint     adds clang-format and clang-tidy
#   arm64    the cross compiler, with the libraries for arm64 (arm64 becomes a foreign architecture)
#   interop  adds Java and Maven, for Spark
#   fuzz     adds clang and its fuzzer runtime
#   wheel    adds patchelf, for a DuckDB out of its Python wheel
set -euo pipefail

packages=(g++ cmake ninja-build ccache python3)
libraries=(
  libroaring-dev libsimdjson-dev libfmt-dev libspdlog-dev libcli11-dev libyaml-cpp-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
# Tools that may as well come from elsewhere: what counts is that they run.
command -v npm >/dev/null || packages+=(npm)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
case "${1:-}" in
  test) packages+=(postgresql mariadb-server-core mariadb-client-core openssl) ;;
  lint) packages+=(clang-format-19 clang-tidy-19) ;;
  fuzz) packages+=(clang-19 libclang-rt-19-dev) ;;
  wheel) packages+=(patchelf) ;;
  interop)
    command -v java >/dev/null || packages+=(openjdk-17-jre-headless)
    command -v mvn >/dev/null || packages+=(maven)
    ;;
  arm64)
    packages+=(g++-aarch64-linux-gnu qemu-user)
    # CLI11 is headers only. Some of the others cannot be there for two architectures at once: the
    # next native build brings its own back.
    libraries=(libcli11-dev lib{roaring,simdjson,fmt,spdlog,yaml-cpp,gtest,gmock,benchmark}-dev:arm64)
    ;;
esac
packages+=("${libraries[@]}")

# Of a package without an architecture in its name the native one counts.
native="$(dpkg --print-architecture)"
missing=()
for package in "${packages[@]}"; do
  found="$(dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "$package" 2>/dev/null || true)"
  if [[ "$package" == *:* ]]; then wanted="${package#*:}"; else wanted="($native|all)"; fi
  grep -Eqx "$wanted installed" <<<"$found" || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ "$(id -u)" -ne 0 ]]; then as_root=(sudo); fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
if [[ "${1:-}" == arm64 ]]; then "${as_root[@]}" dpkg --add-architecture arm64; fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

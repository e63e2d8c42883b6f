#!/usr/bin/env bash
# Installs the Debian packages the build needs, only those that are missing.
# Usage: scripts/install_deps.sh [lint|arm64]
#   lint   adds clang-format and clang-tidy
#   arm64  adds the cross compiler and the arm64 libraries (and arm64 as a foreign architecture)
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache
  libroaring-dev libsimdjson-dev libfmt-dev libspdlog-dev libcli11-dev libyaml-cpp-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  python3
)
# Tools that may as well come from elsewhere: what counts is that they run.
command -v npm >/dev/null || packages+=(npm)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
case "${1:-}" in
  lint) packages+=(clang-format-19 clang-tidy-19) ;;
  arm64)
    packages+=(g++-aarch64-linux-gnu qemu-user)
    packages+=(lib{roaring,simdjson,fmt,spdlog,yaml-cpp,gtest,gmock,benchmark}-dev:arm64)
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  status="$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)"
  [[ "$status" == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ "$(id -u)" -ne 0 ]]; then as_root=(sudo); fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
if [[ "${1:-}" == arm64 ]]; then "${as_root[@]}" dpkg --add-architecture arm64; fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

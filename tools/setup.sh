#!/usr/bin/env bash
# Installs the dependencies of Lathe from the packages of Debian 12. Does nothing if all are installed.
#   setup.sh [--tests]            --tests also installs the programs that tests run, and an MPI; without one, tests with
#                                 several processes print SKIP
#   setup.sh --only PACKAGE...    only these packages
set -euo pipefail
packages=(g++ cmake ninja-build pkg-config llvm-19-dev libzstd-dev zlib1g-dev libfmt-dev nlohmann-json3-dev
          libssl-dev libpcre2-dev libutf8proc-dev libcli11-dev catch2 ccache mold git ca-certificates)
test_packages=(libopenmpi-dev openmpi-bin)
export DEBIAN_FRONTEND=noninteractive

# install PACKAGE...: installs the packages that are missing
install() {
  local missing=() as_root=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) == *'install ok installed'* ]] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "Installing: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: these packages are missing; install them as root: ${missing[*]}" >&2; return 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

case "${1:-}" in
  --only) install "${@:2}" ;;
  --tests)
    install "${packages[@]}" make dpkg-dev
    install "${test_packages[@]}" || echo "setup: no MPI is installed; tests of several processes say SKIP" >&2
    ;;
  *) install "${packages[@]}" ;;
esac

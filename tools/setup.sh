#!/usr/bin/env bash
# Installs what Lathe is built with, from Debian 12's own packages; does nothing where all of it is there.
set -euo pipefail
packages=(g++ cmake ninja-build pkg-config llvm-19-dev libzstd-dev zlib1g-dev libfmt-dev nlohmann-json3-dev
          libssl-dev libpcre2-dev libutf8proc-dev libcli11-dev catch2 ccache mold git ca-certificates)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "Installing: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: these packages are missing; install them as root: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

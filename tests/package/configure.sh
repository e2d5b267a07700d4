#!/usr/bin/env bash
# Configures Lathe as a subproject of a program, and with compilers that are too old. Builds nothing.
#   configure.sh SOURCE COMPILER
set -euo pipefail
source=$1 compiler=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake -S "$source/tests/package/subproject" -B "$scratch/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
      -DLATHE_SOURCE="$source" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
ninja -C "$scratch/build" -t commands app >"$scratch/commands"
grep -q 'ir/support/dim.cpp' "$scratch/commands"
! grep -e ' -Werror' "$scratch/commands" || { echo "warnings are errors in a subproject" >&2; exit 1; }

# refuses ID VERSION TEXT: an old compiler is rejected with the required versions.
refuses() {
  if cmake -DCMAKE_CXX_COMPILER=c++ -DCMAKE_CXX_COMPILER_ID="$1" -DCMAKE_CXX_COMPILER_VERSION="$2" -P "$source/tools/cmake/compiler.cmake" 2>"$scratch/error"; then
    echo "$1 $2 is not refused" >&2
    exit 1
  fi
  said=$(tr -s ' \n' ' ' <"$scratch/error")
  grep -q "Lathe needs g++ 12 or clang++ 16 and newer; .* is $1 $2" <<<"$said" || { echo "$said" >&2; exit 1; }
}
refuses Clang 14.0.6
refuses GNU 11.4.0
cmake -DCMAKE_CXX_COMPILER_ID=Clang -DCMAKE_CXX_COMPILER_VERSION=16.0.6 -P "$source/tools/cmake/compiler.cmake"

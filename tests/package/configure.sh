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

# lathe_add_graph() of a subproject uses the command of the tree.
mkdir "$scratch/graphs"
cp "$source/examples/embedded/cmake/softmax.lathe" "$scratch/graphs"
echo 'int main(void) { return 0; }' >"$scratch/graphs/main.c"
graphs() {
  cat >"$scratch/graphs/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(App LANGUAGES C CXX)
add_subdirectory("$source" lathe)
lathe_add_graph(softmax $1)
add_executable(app main.c)
target_link_libraries(app PRIVATE softmax)
END
  rm -rf "$scratch/graphs/build"
  cmake -S "$scratch/graphs" -B "$scratch/graphs/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" $2 >"$scratch/log" 2>&1
}
graphs 'FILE softmax.lathe PREFIX p MAX n=10 TARGETS x86-64-v2 x86-64-v4 DTYPE bf16 EVALUATION' -DLATHE_TOOLS=ON ||
  { cat "$scratch/log"; exit 1; }
ninja -C "$scratch/graphs/build" -t commands app >"$scratch/commands"
grep -q 'compile .*/graphs/softmax.lathe --prefix p --max n=10 --target x86-64-v2,x86-64-v4 --dtype bf16 --evaluation --emit' \
     "$scratch/commands"
grep -q 'app .*softmax.graph/libp.a .*-lm' "$scratch/commands"
! graphs 'FILE softmax.lathe' -DLATHE_TOOLS=OFF || exit 1
grep -q 'lathe_add_graph(softmax) needs the lathe command' "$scratch/log"
! graphs 'FILES softmax.lathe' -DLATHE_TOOLS=ON || exit 1
grep -q 'give FILE, and only the arguments' "$scratch/log"

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

# find_package() only warns, because the C targets suit any compiler.
cmake -DCMAKE_FIND_PACKAGE_NAME=Lathe -DCMAKE_CXX_COMPILER=c++ -DCMAKE_CXX_COMPILER_ID=Clang -DCMAKE_CXX_COMPILER_VERSION=14.0.6 \
      -P "$source/tools/cmake/compiler.cmake" 2>"$scratch/error"
grep -q 'Lathe needs g++ 12 or clang++ 16 and newer' "$scratch/error"

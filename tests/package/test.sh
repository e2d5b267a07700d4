#!/usr/bin/env bash
# Installs a build into a scratch folder; configures, builds and runs programs against it, outside the tree: the first
# program, one with user-defined ops, and two in C: with the C API, and with compiled graphs.
#   test.sh BUILD SOURCE COMPILER
set -euo pipefail
build=$1 source=$2 compiler=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
# A program's own headers may have the same names as Lathe's.
headers=$(cd "$scratch/prefix/include/lathe" && find . -name '*.h' -printf '%P\n')
for header in $headers; do
  mkdir -p "$(dirname "$scratch/own/$header")"
  echo '#error "this is no header of Lathe"' >"$scratch/own/$header"
done
flags="${4:-} -I$scratch/own"
build_in() {
  cmake -S "$1" -B "$1/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -DCMAKE_CXX_FLAGS="$flags" \
        -DCMAKE_C_FLAGS="$flags"
  cmake --build "$1/build"
}
cp -r "$source/examples/first_program" "$scratch/app"
build_in "$scratch/app"
"$scratch/app/build/first_program" | tee "$scratch/output"
mkdir "$scratch/custom"
cp "$source/examples/first_program/CMakeLists.txt" "$scratch/custom"
cp "$source/examples/guides/custom-ops.cpp" "$scratch/custom/main.cpp"
build_in "$scratch/custom"
"$scratch/custom/build/first_program" | tee "$scratch/custom/output"
grep -q '%1 = my.swish %x, %beta' "$scratch/custom/output"

cp -r "$source/examples/bindings" "$scratch/c"
cat >"$scratch/c/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(train LANGUAGES C)
find_package(Lathe REQUIRED)
add_executable(train train.c)
target_link_libraries(train PRIVATE Lathe::c)
END
build_in "$scratch/c"
"$scratch/c/build/train" "$scratch/c/curve.lathe" | tee "$scratch/c/output"
grep -q '^step 200: loss 0.000' "$scratch/c/output"

# A program in C with two graphs: one compiled by the command, one by a program in C++.
cp -r "$source/examples/embedded/cmake" "$scratch/graphs"
build_in "$scratch/graphs"
"$scratch/graphs/build/train" | tee "$scratch/graphs/output"
grep -q '^step 30: loss 0\.0' "$scratch/graphs/output"
grep -q '^softmax 0.333 0.333 0.333$' "$scratch/graphs/output"
needed=$(readelf -d "$scratch/graphs/build/train" | grep -oE 'NEEDED.*\[[^]]*' | sed 's/.*\[//')
! grep -vE '^(libm|libc)\.so' <<<"$needed" || { echo "the program needs more than the C library" >&2; exit 1; }

# No installed file refers to the tree, and the program learned its task.
! grep -rlF -e "$source" -e "$build" "$scratch/prefix/lib/cmake" "$scratch/prefix/include" ||
  { echo "the package names its build or source folder" >&2; exit 1; }
# The program needs only Lathe, and the package has no other dependencies.
needed=$(readelf -d "$scratch/app/build/first_program" | grep -oE 'NEEDED.*\[[^]]*' | sed 's/.*\[//')
! grep -vE '^(liblathe|libstdc\+\+|libgcc_s|libm|libc|libasan|libubsan|libtsan|ld-linux)' <<<"$needed" ||
  { echo "the program needs more than Lathe" >&2; exit 1; }
needed=$(readelf -d "$scratch/c/build/train" | grep -oE 'NEEDED.*\[[^]]*' | sed 's/.*\[//')
grep -q '^liblathe_c\.so\.1$' <<<"$needed"
! grep -vE '^(liblathe_c|libm|libc|libasan|libubsan|libtsan|ld-linux)' <<<"$needed" ||
  { echo "the program in C needs more than the C library" >&2; exit 1; }
# Only the plugin, if there is one, is linked with an MPI.
mpi='lib(mpi|open-rte|open-pal|pmix)'
lathe=$scratch/prefix/bin/lathe library=$(find "$scratch/prefix" -name 'liblathe.so')
plugin=$(find "$scratch/prefix" -name liblathe_mpi.so)
for file in "$lathe" "$library"; do
  linked=$(ldd "$file")
  grep -q libstdc++ <<<"$linked"
  ! grep -E "$mpi" <<<"$linked" || { echo "$file is linked with an MPI" >&2; exit 1; }
done
if [ -n "$plugin" ]; then
  linked=$(ldd "$plugin")
  grep -qE "$mpi" <<<"$linked" || { echo "$plugin is linked with no MPI" >&2; exit 1; }
fi
! grep -rn find_dependency "$scratch/prefix/lib/cmake" || { echo "the package asks for others" >&2; exit 1; }
# Each installed header compiles on its own, and is only found as <lathe/...>.
for header in $headers; do
  echo "#include <lathe/$header>"
done >"$scratch/every.cpp"
"$compiler" -std=c++20 -fsyntax-only -I"$scratch/own" -I"$scratch/prefix/include" "$scratch/every.cpp"
# Pages that headers refer to are installed too.
pages=$(grep -rhoE 'docs/[a-z/-]+\.md' "$scratch/prefix/include" | sort -u)
[ -n "$pages" ]
for page in $pages; do
  [ -f "$(echo "$scratch"/prefix/share/doc/*)/$page" ] || { echo "$page is not installed" >&2; exit 1; }
done
grep -q '^3 1 4 1 5 -> 5 1 4 1 3$' "$scratch/output"

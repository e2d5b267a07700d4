#!/usr/bin/env bash
# Packs a build with CPack, unpacks the results, and compiles and runs a program in C with the packed command.
#   archives.sh BUILD SOURCE
set -euo pipefail
build=$1 source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || { echo "SKIP: no dpkg-dev"; exit 0; }

cd "$scratch"
cpack --config "$build/CPackConfig.cmake" -B "$scratch/packed" >log 2>&1 || { cat log; exit 1; }
package=$(ls packed/lathe_*.deb) plugin=$(ls packed/lathe-mpi_*.deb 2>/dev/null || true)
mkdir tar && tar xzf packed/lathe-*.tar.gz -C tar --strip-components=1
dpkg-deb -x "$package" deb

# The same files in both, except the plugin, which has a package of its own.
(cd tar && find . -not -type d) | sort >tar.list
(cd deb/usr && find . -not -type d) | sort >deb.list
[ -z "$plugin" ] || { dpkg-deb -x "$plugin" mpi && (cd mpi/usr && find . -not -type d) >>deb.list && sort -o deb.list deb.list; }
diff tar.list deb.list
for file in bin/lathe lib/liblathe.so lib/liblathe_c.so include/lathe/lathe_c.h include/lathe/lathe.h include/lathe/library.h include/lathe/aot/lathe_pool.h \
            lib/cmake/Lathe/LatheConfig.cmake lib/cmake/Lathe/LatheGraphs.cmake share/doc/Lathe/docs/c-library.md; do
  [ -e "deb/usr/$file" ] || { echo "$file is not packed" >&2; exit 1; }
done

# The dependencies are those of the binaries, without folders of the machine that packed them.
depends=$(dpkg-deb -f "$package" Depends)
for library in libllvm libc6 libstdc++6; do
  grep -q "$library" <<<"$depends" || { echo "no dependency on $library: $depends" >&2; exit 1; }
done
! grep -q mpi <<<"$depends" || { echo "the command depends on an MPI: $depends" >&2; exit 1; }
if [ -n "$plugin" ]; then
  depends=$(dpkg-deb -f "$plugin" Depends)
  grep -q '^lathe (= .*mpi' <<<"$depends" || { echo "the plugin depends on $depends" >&2; exit 1; }
fi
for binary in deb/usr/bin/lathe deb/usr/lib/liblathe.so; do
  sections=$(readelf -SdW "$binary")
  ! grep -E 'RUNPATH|RPATH|\.symtab' <<<"$sections" || { echo "$binary is not prepared" >&2; exit 1; }
done

deb/usr/bin/lathe compile "$source/examples/embedded/cmake/softmax.lathe" --prefix softmax --max n=3 -o library
cat >main.c <<'END'
#include <stdio.h>

#include "lathe_memory.h"
#include "lathe_pool.h"
#include "softmax.h"

int main(void) {
  const float x[3] = {1, 1, 1};
  float y[3];
  softmax library;
  lathe_pool pool;
  softmax_call call = {.dims = {3}, .inputs = {x}, .outputs = {y}, .workers = &pool.workers};
  if (lathe_pool_start(&pool, 2) != 0) return 1;
  int32_t error = softmax_init(&library, &call.dims);
  call.workspace_bytes = (size_t)softmax_workspace_bytes(&library, 2);
  call.workspace = lathe_memory_get(call.workspace_bytes);
  if (!error) error = softmax_run(&library, &call);
  printf("%s: %.3f %.3f %.3f\n", softmax_message(error), (double)y[0], (double)y[1], (double)y[2]);
  lathe_pool_stop(&pool);
  return error;
}
END
cc -Wall -Wextra -Werror -Ilibrary -Ideb/usr/include/lathe/aot main.c -Llibrary -lsoftmax -lm -pthread -o main
./main | tee output
grep -q '^no error: 0.333 0.333 0.333$' output

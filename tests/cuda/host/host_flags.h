#pragma once

/// Command that builds CUDA text for the host under tests/cuda/shim, in `{scratch}` with its lathe.cuh, as a shared
/// library.
#define LATHE_HOST_BUILD(source, library)                                                                        \
  "c++ -std=c++20 -O0 -w -ffp-contract=off -fno-strict-aliasing -fsanitize=signed-integer-overflow "             \
  "-fsanitize-undefined-trap-on-error -fno-gnu-unique -shared -fPIC -I'{root}' -I'{scratch}' '{scratch}/" source \
  "' " LATHE_SHIM_FIBERS " " LATHE_HOST_LINKER " -o '{scratch}/" library "'"

#pragma once

#define LATHE_HOST_COMPILER                                                                          \
  "c++ -std=c++20 -O0 -w -ffp-contract=off -fno-strict-aliasing -fsanitize=signed-integer-overflow " \
  "-fsanitize-undefined-trap-on-error -fno-gnu-unique -fPIC -I'{root}' "

/// Command that builds CUDA text for the host under tests/cuda/shim, in `{scratch}` with its lathe.cuh, as a shared
/// library.
#define LATHE_HOST_BUILD(source, library)                                                                     \
  LATHE_HOST_COMPILER "-shared -I'{scratch}' '{scratch}/" source "' " LATHE_SHIM_FIBERS " " LATHE_HOST_LINKER \
                      " -o '{scratch}/" library "'"

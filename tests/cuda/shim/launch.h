#pragma once

#include "tests/cuda/shim/cuda_shim.h"

/// A launch on the host.
struct ShimLaunch {
  long long grid[3];
  int block[3];
  unsigned long long seed;          ///< of the order in which blocks and threads run
  void (*kernel)(void* arguments);  ///< one thread
  void* arguments;
};

/// Runs every block. Gives 0, or 1 where not all threads of a block met the same barriers.
int shim_run(const ShimLaunch& launch);

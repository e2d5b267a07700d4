#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "tests/cuda/shim/cuda_shim.h"

/// A launch on the host.
struct ShimLaunch {
  long long grid[3];
  int block[3];
  unsigned long long seed;          ///< selects the order in which blocks and threads run
  void (*kernel)(void* arguments);  ///< one thread
  void* arguments;
  bool is_resident = false;  ///< all blocks run at the same time
};

/// Runs every block. Returns 0, or 1 if the threads of a block, or the blocks of a resident grid, did not reach the
/// same barriers.
int shim_run(const ShimLaunch& launch);

/// A kernel in the form that the driver launches: with a pointer to each argument, first the 8-byte words, then the
/// maps.
template <auto kernel>
struct ShimEntry;

template <class... A, void (*kernel)(A...)>
struct ShimEntry<kernel> {
  static constexpr int maps = (0 + ... + (std::is_class_v<A> ? 1 : 0));
  static constexpr int words = static_cast<int>(sizeof...(A)) - maps;

  /// Like shim_run().
  static int run(void** arguments, const long long* grid, const int* block, unsigned long long seed,
                 bool is_resident) {
    return shim_run(
        {{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, seed, thread, arguments, is_resident});
  }

 private:
  static void thread(void* arguments) { call(static_cast<void**>(arguments), std::index_sequence_for<A...>()); }
  template <std::size_t... i>
  static void call(void** arguments, std::index_sequence<i...>) {
    kernel(*static_cast<A*>(arguments[i])...);
  }
};

/// Symbols that the mock driver looks up in a library of one kernel.
#define SHIM_ENTRY(kernel)                                                                            \
  extern "C" {                                                                                        \
  extern const int shim_words = ShimEntry<&kernel>::words, shim_maps = ShimEntry<&kernel>::maps;      \
  int shim_launch(void** arguments, const long long* grid, const int* block, unsigned long long seed, \
                  int is_resident) {                                                                  \
    return ShimEntry<&kernel>::run(arguments, grid, block, seed, is_resident != 0);                   \
  }                                                                                                   \
  }

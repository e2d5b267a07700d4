#pragma once

#include <cstddef>

/// What the machine operations of the shim ask of the threads.

inline constexpr std::size_t shim_warp_threads = 32;

/// Acts for all threads of a warp, each of which has given a pointer to what is its own.
using ShimCollective = void (*)(void* const* lanes);

/// The number of the running thread in its block.
std::size_t shim_thread();
/// Waits until all threads of the warp have come with the same `act`, which the last one runs.
void shim_meet(ShimCollective act, void* own);
/// A block of so many threads starts, none of which has copies under way.
void shim_start_copies(std::size_t threads);

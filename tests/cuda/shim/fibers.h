#pragma once

#include <cstddef>
#include <random>

/// What the machine operations of the shim ask of the threads.

inline constexpr std::size_t shim_warp_threads = 32, shim_group_threads = 128;

/// Acts for all threads of a warp or warp group, each of which has given a pointer to what is its own. False: what
/// they ask for is wrong, and none of them goes on.
using ShimCollective = bool (*)(void* const* lanes);

/// The number of the running thread in its block.
std::size_t shim_thread();
/// Waits until all threads of the warp, or warp group, have come with the same `act`, which the last one runs.
void shim_meet(ShimCollective act, void* own, std::size_t threads = shim_warp_threads);
/// Waits until over(what, number).
using ShimCondition = bool (*)(const void* what, unsigned number);
void shim_wait_until(ShimCondition over, const void* what, unsigned number);
/// A block of so many threads starts, none of which has copies under way.
void shim_start_copies(std::size_t threads);
/// Some of the copies that a barrier waits for arrive. False where there are none.
bool shim_land_copies(std::mt19937_64& random);
/// A block starts: nobody has come to the barrier of the users.
void shim_start_user_barrier();

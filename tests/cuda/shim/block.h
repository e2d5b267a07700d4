#pragma once

#include <cstddef>
#include <random>

/// What the machine operations of the shim ask of the threads of a block. Two back ends give it: fibers.cpp, and
/// where SHIM_OS_THREADS is defined os_threads.cpp.

inline constexpr std::size_t shim_warp_threads = 32, shim_warpgroup_threads = 128;

/// Acts for all threads of a warp or warpgroup, each of which has given a pointer to what is its own. False: what
/// they ask for is wrong, and none of them goes on.
using ShimCollective = bool (*)(void* const* lanes);

/// The number of the running thread in its block.
std::size_t shim_thread();
/// Waits until all threads of the warp, or warpgroup, have come with the same `act`, which the last one runs. Orders
/// no accesses to memory.
void shim_meet(ShimCollective act, void* own, std::size_t threads = shim_warp_threads);
/// Waits until over(what, number), which may become so before shim_wake().
using ShimCondition = bool (*)(const void* what, unsigned number);
void shim_wait_until(ShimCondition over, const void* what, unsigned number);

/// A block of so many threads starts, none of which has copies or products under way.
void shim_start_copies(std::size_t threads);
void shim_start_products();
/// Some of the copies that a barrier waits for arrive. False where there are none.
bool shim_land_copies(std::mt19937_64& random);

#ifdef SHIM_OS_THREADS
void shim_wake();
/// The same for all copies of this thread, of which each has its own.
bool shim_land_own_copies();

// What ThreadSanitizer is told: the machine operations' accesses to memory, in the name of the thread, and what
// orders the accesses of two threads: all that one did before it passed on, the other does after when it has taken up
// from the same position. Copies are done as if by another thread: what orders them is that this one passes on.
inline constexpr bool shim_tells_accesses = true;
void shim_reads(const void* p, std::size_t bytes);
void shim_writes(void* p, std::size_t bytes);
void shim_pass_on(const void* position);
void shim_take_up(const void* position);
void shim_copies(void* to, const void* from, std::size_t bytes_to, std::size_t bytes_from);
void shim_pass_on_copies(const void* position);
/// The same for what is read while the thread goes on.
void shim_by_agent(void (*tells)(const void*), const void* what);
#else
inline void shim_wake() {}
inline constexpr bool shim_tells_accesses = false;
inline void shim_reads(const void*, std::size_t) {}
inline void shim_writes(void*, std::size_t) {}
inline void shim_pass_on(const void*) {}
inline void shim_take_up(const void*) {}
inline void shim_copies(void*, const void*, std::size_t, std::size_t) {}
inline void shim_pass_on_copies(const void*) {}
inline void shim_by_agent(void (*)(const void*), const void*) {}
#endif
/// What orders the accesses before and after the phase of an mbarrier that is under way.
const void* shim_present_phase(const unsigned long long* barrier);
/// shim_arrive without streamed anything on.
void shim_count_arrival(unsigned long long* barrier);
/// Bytes that a phase waits for have arrived.
void shim_count_bytes(unsigned long long* barrier, unsigned bytes);

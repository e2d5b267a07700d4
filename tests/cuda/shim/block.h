#pragma once

#include <cstddef>
#include <random>

/// Services that the shim's intrinsics need from the threads of a block. There are two backends: fibers.cpp,
/// and os_threads.cpp if SHIM_OS_THREADS is defined.

inline constexpr std::size_t shim_warp_threads = 32, shim_warpgroup_threads = 128, shim_named_barriers = 16;

/// Acts for all threads of a warp or warpgroup; each thread passes a pointer to its own data. Returns false for an
/// invalid operation, and then none of the threads continues.
using ShimCollective = bool (*)(void* const* lanes);

/// Returns the index of the running thread in its block.
std::size_t shim_thread();
/// Blocks that may run in turns, and the slot that the running one has among them.
#ifdef SHIM_OS_THREADS
inline constexpr std::size_t shim_resident_blocks = 1;
inline std::size_t shim_slot() { return 0; }
#else
inline constexpr std::size_t shim_resident_blocks = 3;
std::size_t shim_slot();
#endif
/// Waits until all threads of the warp or warpgroup have called it with the same `act`, which the last one runs. Does
/// not order memory accesses.
void shim_meet(ShimCollective act, void* own, std::size_t threads = shim_warp_threads);
/// Waits until over(what, number) is true, which may happen before shim_wake().
using ShimCondition = bool (*)(const void* what, unsigned number);
void shim_wait_until(ShimCondition over, const void* what, unsigned number);

/// Starts a block of `threads` threads, without pending copies or matmuls.
void shim_start_copies(std::size_t threads);
void shim_start_products();
/// Completes some of the copies that a barrier waits for. Returns false if there are none.
bool shim_land_copies(std::mt19937_64& random);

#ifdef SHIM_OS_THREADS
void shim_wake();
/// The same for all copies of this thread; each thread has its own.
bool shim_land_own_copies();

// Events for ThreadSanitizer: the memory accesses of intrinsics, on behalf of the thread, and what orders the
// accesses of two threads. Everything that one thread did before it passes on a position happens before what another
// one does after taking up the same position. Copies run as if by another thread; passing on their position orders
// them.
inline constexpr bool shim_tells_accesses = true;
void shim_reads(const void* p, std::size_t bytes);
void shim_writes(void* p, std::size_t bytes);
void shim_pass_on(const void* position);
void shim_take_up(const void* position);
void shim_copies(void* to, const void* from, std::size_t bytes_to, std::size_t bytes_from);
void shim_pass_on_copies(const void* position);
/// The same for reads that happen while the thread continues.
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
/// Returns the position that orders the accesses before and after the current phase of an mbarrier.
const void* shim_present_phase(const unsigned long long* barrier);
/// shim_arrive without passing on a position.
void shim_count_arrival(unsigned long long* barrier);
/// Counts bytes that a phase waits for as arrived.
void shim_count_bytes(unsigned long long* barrier, unsigned bytes);

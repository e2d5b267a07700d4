#pragma once

// Includes C's functions without the C++ overloads, whose header takes most of a kernel's compile time.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS

#include <cstring>

/// Enough of the CUDA language to build printed kernels with a host C++ compiler and run them. Every thread of a
/// block is a fiber, run in random order from barrier to barrier, or an OS thread if SHIM_OS_THREADS is defined.
/// Shared memory is poisoned before each block.

#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// All shared memory is in one section of the library, so that it can be found.
#define __shared__ static __attribute__((section("cuda_shared")))

struct ShimIndex {
  unsigned x, y, z;
};
#ifdef SHIM_OS_THREADS
extern __thread ShimIndex threadIdx, blockIdx;
#else
extern ShimIndex threadIdx, blockIdx;
#endif
extern ShimIndex blockDim, gridDim;

/// Yields to the other threads of the block until all have reached it.
void __syncthreads();

// Operations that lathe.cuh writes as PTX. The 32 threads of a warp meet in shim_ldmatrix and shim_mma.
/// Asynchronous: `to` is poisoned until the thread waits; the wait copies.
void shim_cp_async(void* to, const void* from, int bytes);
void shim_commit_copies();
void shim_wait_copies(int pending);
/// ldmatrix.sync.aligned.m8n8.x4(.trans).shared.b16
void shim_ldmatrix(bool transposed, const void* row, unsigned* parts);
/// mma.sync.aligned.m16n8k16.row.col.f32.T.T.f32, sum as C and D; `value` widens an element.
void shim_mma(float (*value)(unsigned short bits), float* sum, const unsigned* a, unsigned b_low, unsigned b_high);

/// The address in shared memory.
unsigned shim_shared_address(const void* p);
/// mbarrier.init, .arrive, .try_wait.parity until it is true; cp.async.mbarrier.arrive.noinc, which may arrive at any
/// time.
void shim_init_barrier(unsigned long long* barrier, unsigned arrivals);
void shim_arrive(unsigned long long* barrier);
void shim_arrive_with_copies(unsigned long long* barrier);
/// mbarrier.expect_tx
void shim_expect_bytes(unsigned long long* barrier, unsigned bytes);
/// cp.async.bulk.tensor of a ShimTensorMap with the 128-byte swizzle. It may complete at any time; the destination is
/// poisoned until then.
void shim_copy_box(void* to, const void* map, unsigned long long* barrier, const int* at, unsigned long rank);
void shim_wait_barrier(const unsigned long long* barrier, unsigned parity);
/// bar.sync of this barrier for this number of threads if the thread waits, else bar.arrive. A round of a barrier in
/// which no thread waits, or threads name different numbers, never ends.
void shim_named_barrier(unsigned barrier, unsigned threads, bool waits);
void __syncwarp();
/// bar.sync, or __syncwarp with a mask, of the threads [first, first + threads) of a block.
void shim_part_barrier(unsigned first, unsigned threads);
/// The dynamic shared memory of the block.
unsigned char* shim_dynamic_shared();
/// prefetch.global.L2 of a resident grid. Reads no value: other blocks may write the line meanwhile.
void shim_prefetch(const void* line);
/// ld.acquire, red.release.add, and a wait until the highest bit differs from that of `before`, on a word that the
/// blocks of a resident grid share.
unsigned shim_grid_word(const unsigned* word);
void shim_grid_arrive(unsigned* word, unsigned amount);
void shim_grid_wait(const unsigned* word, unsigned before);
/// Polls an element that another block of the grid writes: waits until over(what, 0). Called after such a write.
void shim_await_written(bool (*over)(const void* what, unsigned), const void* what);
void shim_wrote_awaited();
/// wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T of N = 2 * lanes, .commit_group, .wait_group; 128 threads meet for
/// each. The matmul runs at the wait; until then the sums are poisoned. If `held` is given, the left operand is these
/// 4 registers of each thread instead of the descriptor's. One that `starts` overwrites the sums.
void shim_wgmma(float (*value)(unsigned short bits), float* sum, int lanes, unsigned long long a,
                const unsigned* held, unsigned long long b, bool a_transposed, bool b_transposed, bool starts);
void shim_commit_wgmma();
void shim_wait_wgmma(int pending);

/// Waits until *passed is `rank`: other blocks may run meanwhile. Adds 1 to it, with release semantics; the wait has
/// acquire semantics.
void shim_wait_blocks(const int* passed, int rank);
void shim_pass_block(int* passed);

/// For values of up to 8 bytes.
void shim_from_lane(void* value, int bytes, int lane);
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  shim_from_lane(&value, sizeof value, lane);
  return value;
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
  return __shfl_sync(mask, value, static_cast<int>(threadIdx.x % 32) ^ bits);
}

inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return ::fma(a, b, c); }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dsqrt_rn(double a) { return ::sqrt(a); }

template <class To, class From>
To shim_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline int __float_as_int(float a) { return shim_bits<int>(a); }
inline float __int_as_float(int a) { return shim_bits<float>(a); }
inline long long __double_as_longlong(double a) { return shim_bits<long long>(a); }
inline double __longlong_as_double(long long a) { return shim_bits<double>(a); }

inline int atomicAdd(int* at, int value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }
inline unsigned long long atomicCAS(unsigned long long* at, unsigned long long compare, unsigned long long value) {
  __atomic_compare_exchange_n(at, &compare, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return compare;
}

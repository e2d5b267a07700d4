#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda::detail {

std::string_view prelude_pipelines() {
  return R"cuda(
// ---- pipelines of stages in shared memory: some threads produce what others consume ----

LATHE_FUNCTION void init_barrier(u64* barrier, u32 arrivals) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
#else
  shim_init_barrier(barrier, arrivals);
#endif
}
LATHE_FUNCTION void arrive(u64* barrier) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
  shim_arrive(barrier);
#endif
}
/// This thread arrives when all copies that it has started have ended.
LATHE_FUNCTION void arrive_with_copies(u64* barrier) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
  shim_arrive_with_copies(barrier);
#endif
}
/// The phase that is under way ends when so many bytes more have arrived.
LATHE_FUNCTION void expect_bytes(u64* barrier, u32 bytes) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
#else
  shim_expect_bytes(barrier, bytes);
#endif
}
/// Waits until the phase of this parity is over: all have arrived.
LATHE_FUNCTION void wait_barrier(u64* barrier, u32 parity) {
#ifdef __CUDA_ARCH__
  u32 over;
  do {
    asm volatile(
        "{\n.reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n}"
        : "=r"(over)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (!over);
#else
  shim_wait_barrier(barrier, parity);
#endif
}
/// A thread that has started copies ends after them.
LATHE_FUNCTION void wait_all_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
/// What threads and their copies have written is seen by wgmma and TMA, which go through another proxy.
LATHE_FUNCTION void show_to_other_proxy() {
#ifdef __CUDA_ARCH__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
/// From here on the threads of this warpgroup have so many registers: others, or they themselves, get the rest.
template <int registers>
LATHE_FUNCTION void give_registers() {
#ifdef __CUDA_ARCH__
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
template <int registers>
LATHE_FUNCTION void take_registers() {
#ifdef __CUDA_ARCH__
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
/// Of the first `threads` threads of the block.
template <int threads>
LATHE_FUNCTION void consumer_barrier() {
#ifdef __CUDA_ARCH__
  asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
#else
  shim_user_barrier(threads);
#endif
}

/// A tensor as TMA knows it, made by cuTensorMapEncodeTiled.
struct alignas(64) TensorMap {
  u64 words[16];
};
/// A box of the tensor, from the coordinates on, the innermost first, sets out for shared memory; its bytes arrive at
/// the barrier.
template <class... At>
LATHE_FUNCTION void copy_tensor_box(void* to, const TensorMap& from, u64* barrier, At... coordinates) {
  const i32 at[] = {i32(coordinates)...};
#ifdef __CUDA_ARCH__
#define LATHE_COPY_BOX(rank, list, ...)                                                                      \
  asm volatile("cp.async.bulk.tensor." rank                                                                  \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" list "}], [%2];" ::  \
                   "r"(shared_address(to)),                                                                  \
               "l"(&from), "r"(shared_address(barrier)), __VA_ARGS__                                         \
               : "memory")
  if constexpr (sizeof...(At) == 2) LATHE_COPY_BOX("2d", "%3, %4", "r"(at[0]), "r"(at[1]));
  if constexpr (sizeof...(At) == 3) LATHE_COPY_BOX("3d", "%3, %4, %5", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  if constexpr (sizeof...(At) == 4)
    LATHE_COPY_BOX("4d", "%3, %4, %5, %6", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
  if constexpr (sizeof...(At) == 5)
    LATHE_COPY_BOX("5d", "%3, %4, %5, %6, %7", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]));
#undef LATHE_COPY_BOX
#else
  shim_copy_box(to, &from, barrier, at, sizeof...(At));
#endif
}

/// A thread's state in a pipeline: the slot of its present iteration, the parity of its rounds, and the slot that its
/// products under way still read, or -1. Of each slot a barrier says that it is full, and one behind these that it is empty.
/// What consumers tell the producers goes through a word behind a barrier that says that it is there, and one that it
/// was heard; `told` is the parity of that.
template <int stages>
struct StagePipeline {
  u64* barriers;
  int at;
  u32 round;
  int held;
  u32 first_producer;
  u32 told;

  LATHE_FUNCTION i32 slot() const { return at; }
  LATHE_FUNCTION void wait_empty() const { wait_barrier(barriers + stages + at, round ^ 1); }
  LATHE_FUNCTION void wait_full() const { wait_barrier(barriers + at, round); }
  LATHE_FUNCTION void wait_copied() const {
    wait_full();
    show_to_other_proxy();
  }
  /// By one thread. Of each box so many rows of 128 bytes arrive.
  template <int rows, class T, class... At>
  LATHE_FUNCTION void copy_box(T* to, i64 first, const TensorMap& from, At... coordinates) const {
    if (threadIdx.x != first_producer) return;
    expect_bytes(barriers + at, rows * 128);
    copy_tensor_box(to + first, from, barriers + at, coordinates...);
  }
  LATHE_FUNCTION void sent() {
    arrive(barriers + at);
    advance();
  }
  LATHE_FUNCTION void filled() {
    arrive_with_copies(barriers + at);
    advance();
  }
  LATHE_FUNCTION void used() {
    empty(at);
    advance();
  }
  /// The products of this iteration stay under way; those of the iteration before are done.
  LATHE_FUNCTION void multiplied() {
    commit_wgmma();
    wait_wgmma<1>();
    empty(held);
    held = at;
    advance();
  }
  /// All products of the iterations before are done.
  template <class... Sums>
  LATHE_FUNCTION void wait_sums(Sums&... sums) {
    wait_wgmma<0>();
    (touch(sums), ...);
    empty(held);
    held = -1;
  }
  /// Those of this iteration are too. (Where none have been started, ptxas makes wgmma one after the other: C7520.)
  template <class... Sums>
  LATHE_FUNCTION void wait_own_sums(Sums&... sums) {
    commit_wgmma();
    wait_sums(sums...);
  }
  /// By all consumers, who have the same value; one of them tells it.
  LATHE_FUNCTION bool tell(bool value) {
    if (threadIdx.x == 0) {
      wait_barrier(barriers + 2 * stages + 1, told ^ 1);
      barriers[2 * stages + 2] = value;
      arrive(barriers + 2 * stages);
    }
    told ^= 1;
    return value;
  }
  LATHE_FUNCTION bool hear() {
    wait_barrier(barriers + 2 * stages, told);
    const bool value = barriers[2 * stages + 2] != 0;
    arrive(barriers + 2 * stages + 1);
    told ^= 1;
    return value;
  }
  /// One thread of a warp arrives for all.
  LATHE_FUNCTION void empty(int slot) const {
    if (slot < 0) return;
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barriers + stages + slot);
  }
  LATHE_FUNCTION void advance() {
    if (++at == stages) at = 0, round ^= 1;
  }
};

/// For all threads of a block: `producers` of them and `consumers`. What they have stored in shared memory is seen by all,
/// and by wgmma, from here on.
template <int stages, bool tells = false>
LATHE_FUNCTION StagePipeline<stages> start_pipeline(u64* barriers, u32 producers, u32 consumers) {
  if (threadIdx.x == 0)
    for (int i = 0; i < stages; ++i) {
      init_barrier(barriers + i, producers);
      init_barrier(barriers + stages + i, consumers / 32);
    }
  if (tells && threadIdx.x == 0) {
    init_barrier(barriers + 2 * stages, 1);
    init_barrier(barriers + 2 * stages + 1, producers);
  }
  show_to_other_proxy();
  __syncthreads();
  return {barriers, 0, 0, -1, consumers, 0};
}
)cuda";
}

}  // namespace lathe::cuda::detail

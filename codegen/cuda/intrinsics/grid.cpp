#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/intrinsics/hooks.h"
#include "codegen/cuda/phases/phase_mapping.h"
#include "ir/kernel/intrinsics/gpu/grid/grid_phases.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::cuda {

namespace {

std::string phase_call(const kernel::Instruction& in, const KernelText& k) {
  const kernel::KernelPhase phase = kernel::RunPhase::of(in).phase;
  std::vector<std::string> args;
  for (const kernel::IntrinsicBuffer& buffer : phase.buffers) args.push_back(k.buffer(buffer.id));
  for (std::size_t i = 0; i < phase.dims.size(); ++i) args.push_back(k.arg(i));
  args.emplace_back("status");
  args.push_back(std::to_string(phase.code));
  args.emplace_back("grid.first");
  return fmt::format("grid.first = {}({})", phase_symbol(k.kernel(), phase), fmt::join(args, ", "));
}

std::string barrier_call(const kernel::Instruction&, const KernelText&) { return "grid.wait()"; }

/// Returns whether a barrier follows the prefetch.
bool is_before_barrier(const kernel::Instruction& prefetch, const kernel::Kernel& kernel) {
  bool is_after = false;
  for (const kernel::Statement& s : kernel.body) {
    const kernel::Instruction* in = kernel::intrinsic_operation(kernel, s);
    is_after = is_after || in == &prefetch;
    if (is_after && !kernel::is_grid_prefetch(kernel::record_of(*in)))
      return kernel::record_of(*in) == &kernel::grid_barrier_record;
  }
  return false;
}

std::string_view arrival_before(const kernel::Instruction& prefetch, const KernelText& k) {
  return is_before_barrier(prefetch, k.kernel()) ? "grid.arrive(), " : "";
}

std::string prefetch_call(const kernel::Instruction& in, const KernelText& k) {
  return fmt::format("{}grid.prefetch({}, {}, {})", arrival_before(in, k),
                     k.buffer(kernel::GridPrefetch::of(in).from), k.arg(0), k.arg(1));
}

std::string prefetch_rows_call(const kernel::Instruction& in, const KernelText& k) {
  const auto prefetch = kernel::GridPrefetchRows::of(in);
  return fmt::format("{}grid.prefetch_rows({}, {}, {}, {}, {}, {})", arrival_before(in, k), k.buffer(prefetch.from),
                     k.arg(0), k.arg(1), k.arg(2), k.arg(3), prefetch.most);
}

std::string clear_call(const kernel::Instruction& in, const KernelText& k) {
  const auto clear = kernel::GridClear::of(in);
  return fmt::format("grid.clear({}, {})", k.buffer(clear.cleared), k.arg(0));
}

constexpr std::string_view grid_device_text = R"cuda(
// ---- phases: the blocks of other kernels, run by the blocks of a resident grid ----

#ifdef __CUDA_ARCH__
#define LATHE_PHASE __device__ __noinline__
#else
#define LATHE_PHASE static
#endif

struct BlockIndex {
  u32 x, y, z;
};

LATHE_FUNCTION unsigned char* dynamic_shared() {
#ifdef __CUDA_ARCH__
  extern __shared__ __align__(16) unsigned char phase_memory[];
  return phase_memory;
#else
  return shim_dynamic_shared();
#endif
}
/// The functions of phases are not inlined: without this, their accesses would be to any kind of memory.
template <class T>
LATHE_FUNCTION void expect_global(const T* p) {
#ifdef __CUDA_ARCH__
  __builtin_assume(__isGlobal(p));
#endif
}
template <class T>
LATHE_FUNCTION void expect_global(Awaited<T> p) {
  expect_global(p.at);
}
LATHE_FUNCTION i64 block_count(i64 lo, i64 hi, i64 step) { return lo >= hi ? 0 : (hi - lo - 1) / step + 1; }

/// Hands out the blocks of a phase, of x * y * z threads each. A block of the grid runs `at_once` of them at a time,
/// each in `held` of its threads. All threads of a block of the phase get the same blocks.
template <int x, int y, int z, int held, int at_once, int block_threads, int shared_bytes, int axes>
struct PhaseBlock {
  BlockIndex block, thread;
  u32 place;
  i64 number, count, columns, rows;

  /// `first` is the block of the grid that runs block 0.
  LATHE_FUNCTION PhaseBlock(u32 first, i64 blocks_x, i64 blocks_y, i64 blocks_z)
      : place(threadIdx.x / held), count(blocks_x * blocks_y * blocks_z), columns(blocks_x), rows(blocks_y) {
    const u32 own = threadIdx.x % held;
    thread = {own % x, own / x % y, own / (x * y)};
    const u32 after_first = blockIdx.x + (blockIdx.x < first ? gridDim.x : 0) - first;
    number = place < at_once && own < x * y * z ? i64(place) * gridDim.x + after_first : count;
  }
  /// Returns the block of the grid that runs block 0 of the next phase: the first one that has no block of this phase,
  /// so that small phases run at the same time.
  LATHE_FUNCTION u32 next(u32 first) const {
    if (count > i64(gridDim.x)) return first;
    const u32 then = first + u32(count);
    return then < gridDim.x ? then : then - gridDim.x;
  }
  LATHE_FUNCTION bool is_inside() {
    if (number >= count) return false;
    if constexpr (axes == 1)
      block = {u32(number), 0, 0};
    else
      block = {u32(number % columns), u32(number / columns % rows), u32(number / columns / rows)};
    return true;
  }
  LATHE_FUNCTION void advance() { number += i64(at_once) * gridDim.x; }
  LATHE_FUNCTION unsigned char* shared() const { return dynamic_shared() + place * shared_bytes; }
  /// Waits for the threads of the block of the phase.
  LATHE_FUNCTION void barrier() const {
    if constexpr (held == block_threads && held == x * y * z) {
      __syncthreads();
    } else {
#ifdef __CUDA_ARCH__
      if constexpr (held == 32)
        __syncwarp(x * y * z == 32 ? 0xffffffffu : (1u << (x * y * z % 32)) - 1);
      else
        asm volatile("bar.sync %0, %1;" ::"r"(place + 1), "n"(held) : "memory");
#else
      shim_part_barrier(place * held, x * y * z);
#endif
    }
  }
};

/// Prefetches the cache lines of rows that are `stride` bytes apart; each thread of the grid takes some. Not inlined,
/// because addresses would stay in registers from one wait to the next.
[[maybe_unused]] LATHE_PHASE void prefetch_lines(const char* start, i64 row_bytes, i64 rows, i64 stride) {
  const u32 lines = u32((row_bytes + 127) / 128), count = lines * u32(rows);
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const char* const at = start + i / lines * stride + i % lines * 128;
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
#else
    shim_prefetch(at);
#endif
  }
}

/// The barrier of all threads of a resident grid. Each round adds 2^31 to the word: block 0 adds what the others, which
/// add 1 each, leave. So the highest bit flips when the last block arrives, and the word needs no reset.
struct ResidentGrid {
  static constexpr u32 flips = 0x80000000u;
  u32* word;
  u32 before = 0;  // the word at the last barrier; of thread 0
  u32 first = 0;   // the block that runs block 0 of the next phase
  bool has_arrived = false;

  /// The highest bit cannot flip before this block has arrived.
  LATHE_FUNCTION explicit ResidentGrid(u64* at) : word(reinterpret_cast<u32*>(at)) {
    if (threadIdx.x == 0) before = seen();
  }
  LATHE_FUNCTION u32 seen() const {
#ifdef __CUDA_ARCH__
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
#else
    return shim_grid_word(word);
#endif
  }
  /// Makes the writes of all threads of this block visible to threads that have waited.
  LATHE_FUNCTION void arrive() {
    if (has_arrived) return;
    __syncthreads();
    has_arrived = true;
    if (threadIdx.x != 0) return;
    const u32 own = blockIdx.x == 0 ? flips - (gridDim.x - 1) : 1;
#ifdef __CUDA_ARCH__
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(own) : "memory");
#else
    shim_grid_arrive(word, own);
#endif
  }
  LATHE_FUNCTION void wait() {
    arrive();
    has_arrived = false;
    if (threadIdx.x == 0) {
#ifdef __CUDA_ARCH__
      while (((seen() ^ before) & flips) == 0) {
      }
#else
      shim_grid_wait(word, before);
#endif
      before ^= flips;
    }
    __syncthreads();
  }
  /// Prefetches elements into L2 between the arrival at a barrier and its wait, or before a phase.
  template <class T>
  LATHE_FUNCTION void prefetch(const T* from, i64 first, i64 count) const {
    prefetch_lines(reinterpret_cast<const char*>(from + first), count * i64(sizeof(T)), 1, 0);
  }
  /// Same for `count` elements every `stride`, `rows` times, or the first ones of each row if these are more than `most`.
  template <class T>
  LATHE_FUNCTION void prefetch_rows(const T* from, i64 first, i64 count, i64 rows, i64 stride, i64 most) const {
    const i64 of_row = count * rows > most ? most / rows : count;
    prefetch_lines(reinterpret_cast<const char*>(from + first), of_row * i64(sizeof(T)), rows, stride * i64(sizeof(T)));
  }
  /// Sets all bits of the elements, which start at a multiple of 16 bytes.
  template <class T>
  LATHE_FUNCTION void clear(T* to, i64 count) const {
    constexpr i64 lanes = 16 / sizeof(T);
    using Word = WordOf<T>;
    const i64 own = i64(blockIdx.x) * blockDim.x + threadIdx.x, whole = count / lanes;
    for (i64 i = own; i < whole; i += i64(gridDim.x) * blockDim.x)
      reinterpret_cast<vec<u32, 4>*>(to)[i] = broadcast<4>(~0u);
    if (own < count - whole * lanes) reinterpret_cast<Word*>(to)[whole * lanes + own] = static_cast<Word>(~Word(0));
  }
};
)cuda";

constexpr std::string_view grid_words[] = {"BlockIndex", "PhaseBlock",    "ResidentGrid",  "block_count",
                                           "checks",     "expect_global", "first",         "grid",
                                           "phase",      "phase_memory",  "prefetch_lines"};
constexpr IntrinsicHook grid_table[] = {{&kernel::run_phase_record, phase_call},
                                        {&kernel::grid_barrier_record, barrier_call},
                                        {&kernel::grid_prefetch_record, prefetch_call},
                                        {&kernel::grid_prefetch_rows_record, prefetch_rows_call},
                                        {&kernel::grid_clear_record, clear_call}};

}  // namespace

extern const HookFamily grid_hooks;
constinit const HookFamily grid_hooks{grid_device_text, grid_words, grid_table};

}  // namespace lathe::cuda

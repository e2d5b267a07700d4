#include "ir/kernel/intrinsics/gpu/wgmma.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/intrinsics/pipelines.h"

namespace lathe::cuda {

namespace {

std::string wgmma_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::Wgmma::of(in);
  const bool of_value = s.left_value != kernel::none;
  const auto tiles = [&](const kernel::SharedOperand& m) {
    return fmt::format("{}({}, {})", m.transposed ? "transposed_tiles" : "tiles", k.buffer(m.buffer),
                       k.int32(m.first));
  };
  std::string depth = of_value || s.depth == kernel::wgmma_depth ? "" : fmt::format("<{}>", s.depth);
  if (s.starts) depth = fmt::format("<{}, true>", s.depth);
  return fmt::format("wgmma{}({}, {}, {})", depth, k.var(s.sums), of_value ? k.value(s.left_value) : tiles(s.left),
                     tiles(s.right));
}

std::string commit_sums_text(const kernel::Instruction&, const KernelText&) { return "commit_wgmma()"; }

std::string wait_sums_text(const kernel::Instruction& in, const KernelText& k) {
  const auto wait = kernel::WaitSums::of(in);
  std::vector<std::string_view> sums;
  for (const kernel::VarId var : wait.sums) sums.push_back(k.var(var));
  if (wait.leaving > 0 && wait.ended)
    return fmt::format("wait_ended_sums<{}>({})", wait.leaving, fmt::join(sums, ", "));
  if (wait.leaving > 0) return fmt::format("wait_older_sums<{}>({})", wait.leaving, fmt::join(sums, ", "));
  const bool ends_group = !wait.ended && pipeline_role(k.role()).in_stage;
  return fmt::format("{}(pipeline, {})", ends_group ? "wait_own_sums" : "wait_sums", fmt::join(sums, ", "));
}

// Follows the PTX ISA, section "Asynchronous Warpgroup Level Matrix Instructions":
//   "Register Fragments and Shared Memory Matrix Layouts": D, and a left operand in registers, have the layout of
//   mma. Of each 16 x 8 sums of m64nNk16, thread t of a warp has rows t / 4 and t / 4 + 8, columns 2 (t % 4) and the
//   next. Of each 16 x 16 elements of A it has the same pairs in the first 8 columns, then in the last 8.
//   "Shared Memory Matrix Layout", "Matrix Descriptor Format": address, leading and stride byte offsets, in units of
//   16 bytes, are at bits 0, 16 and 32. The base offset is at bit 49; it is 0 because swizzle patterns begin at
//   multiples of 1024 bytes. The 128-byte swizzle is 1 at bit 62. For rows contiguous along k, the stride is the
//   distance of 8 rows. For elements contiguous along rows ("MN-major", transposed), the leading offset is the
//   distance of 64 rows and the stride that of 8 k. Both layouts give 8192 and 1024 bytes, because tiles are 64 x 64.
//   "wgmma.fence": required before the first product, and after accesses to registers of sums or of A.
//   "wgmma.commit_group", "wgmma.wait_group": registers, including those of A, must not be accessed before the wait.
//   "Async proxy": the threads that store data make it visible to wgmma by fence.proxy.async.
constexpr std::string_view wgmma_device_text = R"cuda(
// ---- tensor cores of sm_90a: the 128 threads of a warpgroup multiply tiles in shared memory ----

/// Tiles of 64 rows of 64 elements. The 128-byte swizzle stores 16-byte chunk i of a row at chunk i ^ (row % 8).
template <class T, bool is_transposed>
struct SwizzledTiles {
  const T* first;
};
template <class T>
LATHE_FUNCTION SwizzledTiles<T, false> tiles(const T* p, i32 first) {
  return {p + first};
}
template <class T>
LATHE_FUNCTION SwizzledTiles<T, true> transposed_tiles(const T* p, i32 first) {
  return {p + first};
}

/// Returns the matrix descriptor of an operand: its address, the distance of tiles (8192 bytes), the distance of groups
/// of 8 rows (1024 bytes), and the 128-byte swizzle. The address and distances are in units of 16 bytes.
LATHE_FUNCTION u64 tile_descriptor(const void* first) {
  return u64(shared_address(first) % (1 << 18) / 16) | u64(8192 / 16) << 16 | u64(1024 / 16) << 32 | u64(1) << 62;
}
/// Returns the descriptor offset of the next 16 elements of k: along a row, or 16 rows further if transposed.
template <bool is_transposed>
LATHE_FUNCTION u64 next_sixteen() {
  return (is_transposed ? 16 * 128 : 16 * 2) / 16;
}

#ifdef __CUDA_ARCH__
#define LATHE_EIGHT(i)                                                                                        \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]),     \
      "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define LATHE_SUMS_8 LATHE_EIGHT(0)
#define LATHE_SUMS_16 LATHE_SUMS_8, LATHE_EIGHT(8)
#define LATHE_SUMS_32 LATHE_SUMS_16, LATHE_EIGHT(16), LATHE_EIGHT(24)
#define LATHE_SUMS_64 LATHE_SUMS_32, LATHE_EIGHT(32), LATHE_EIGHT(40), LATHE_EIGHT(48), LATHE_EIGHT(56)
#define LATHE_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define LATHE_NAMES_16 LATHE_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define LATHE_NAMES_32 \
  LATHE_NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LATHE_NAMES_64                                                                               \
  LATHE_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LATHE_WGMMA(lanes, columns, type, operands, ...)                                                  \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type                       \
               " {" LATHE_NAMES_##lanes "}, " operands ";"                                                \
               : LATHE_SUMS_##lanes                                                                       \
               : __VA_ARGS__)
#define LATHE_WGMMA_OF(T, lanes, columns, operands, ...)                                               \
  if constexpr (same_type<T, bf16>::value)                                                                \
    LATHE_WGMMA(lanes, columns, "bf16", operands, __VA_ARGS__);                                           \
  else                                                                                                    \
    LATHE_WGMMA(lanes, columns, "f16", operands, __VA_ARGS__)
#endif

/// Starts sum[64 x 2 lanes] += a[64 x 16] * b[16 x 2 lanes]; = if is_first.
template <class T, bool is_first, int lanes, bool A, bool B>
LATHE_FUNCTION void wgmma_of_tiles(f32* sum, u64 a, u64 b) {
#ifdef __CUDA_ARCH__
#define LATHE_OPERANDS "l"(a), "l"(b), "n"(A), "n"(B), "n"(!is_first)
  if constexpr (lanes == 8) {
    LATHE_WGMMA_OF(T, 8, "16", "%8, %9, %12, 1, 1, %10, %11", LATHE_OPERANDS);
  } else if constexpr (lanes == 16) {
    LATHE_WGMMA_OF(T, 16, "32", "%16, %17, %20, 1, 1, %18, %19", LATHE_OPERANDS);
  } else if constexpr (lanes == 32) {
    LATHE_WGMMA_OF(T, 32, "64", "%32, %33, %36, 1, 1, %34, %35", LATHE_OPERANDS);
  } else {
    LATHE_WGMMA_OF(T, 64, "128", "%64, %65, %68, 1, 1, %66, %67", LATHE_OPERANDS);
  }
#undef LATHE_OPERANDS
#else
  const auto value = [](u16 bits) { return widen(T{bits}); };
  shim_wgmma(value, sum, lanes, a, nullptr, b, A, B, is_first);
#endif
}
/// Starts the same += with a in registers.
template <class T, int lanes, bool B>
LATHE_FUNCTION void wgmma_of_registers(f32* sum, const u32* a, u64 b) {
#ifdef __CUDA_ARCH__
#define LATHE_OPERANDS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(B)
  if constexpr (lanes == 8) {
    LATHE_WGMMA_OF(T, 8, "16", "{%8, %9, %10, %11}, %12, 1, 1, 1, %13", LATHE_OPERANDS);
  } else if constexpr (lanes == 16) {
    LATHE_WGMMA_OF(T, 16, "32", "{%16, %17, %18, %19}, %20, 1, 1, 1, %21", LATHE_OPERANDS);
  } else if constexpr (lanes == 32) {
    LATHE_WGMMA_OF(T, 32, "64", "{%32, %33, %34, %35}, %36, 1, 1, 1, %37", LATHE_OPERANDS);
  } else {
    LATHE_WGMMA_OF(T, 64, "128", "{%64, %65, %66, %67}, %68, 1, 1, 1, %69", LATHE_OPERANDS);
  }
#undef LATHE_OPERANDS
#else
  const auto value = [](u16 bits) { return widen(T{bits}); };
  shim_wgmma(value, sum, lanes, 0, a, b, false, B, false);
#endif
}
/// Orders register accesses (sums, or a left operand) before wgmma; required whenever registers have changed.
LATHE_FUNCTION void fence_wgmma() {
#ifdef __CUDA_ARCH__
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/// Makes the sums opaque to the compiler. Otherwise ptxas serializes wgmma whose sums start from known zeros (C7518,
/// C7520), and it could move uses of the sums before a wait.
template <int lanes>
LATHE_FUNCTION void touch(vec<f32, lanes>& sums) {
#ifdef __CUDA_ARCH__
#pragma unroll
  for (int i = 0; i < lanes; ++i) asm volatile("" : "+f"(sums.lane[i])::"memory");
#endif
}
/// Groups the matmuls started since the last commit.
LATHE_FUNCTION void commit_wgmma() {
#ifdef __CUDA_ARCH__
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  shim_commit_wgmma();
#endif
}
/// Waits until at most the `pending` latest groups are in flight.
template <int pending>
LATHE_FUNCTION void wait_wgmma() {
#ifdef __CUDA_ARCH__
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#else
  shim_wait_wgmma(pending);
#endif
}

/// Starts sums += left * right^T over `depth` elements of k; = if `starts`. Called by all threads of a warpgroup. Each
/// warp computes 16 of the 64 rows, and its threads hold the same sums as for a 16-row mma. The sums must not be
/// accessed before a wait.
template <int depth = 64, bool starts = false, int lanes, class T, bool A, bool B>
LATHE_FUNCTION void wgmma(vec<f32, lanes>& sums, SwizzledTiles<T, A> left, SwizzledTiles<T, B> right) {
  const u64 a = tile_descriptor(left.first), b = tile_descriptor(right.first);
  fence_wgmma();
#pragma unroll
  for (int k = 0; k < depth / 16; ++k) {
    const u64 a_k = a + k * next_sixteen<A>(), b_k = b + k * next_sixteen<B>();
    if (starts && k == 0)
      wgmma_of_tiles<T, true, lanes, A, B>(sums.lane, a_k, b_k);
    else
      wgmma_of_tiles<T, false, lanes, A, B>(sums.lane, a_k, b_k);
  }
}
/// The same with the left operand in registers, laid out like sums: each thread holds 4 elements of each 16 x 8 tile.
template <int lanes, int held, class T, bool B>
LATHE_FUNCTION void wgmma(vec<f32, lanes>& sums, const vec<T, held>& left, SwizzledTiles<T, B> right) {
  const u64 b = tile_descriptor(right.first);
  u32 a[held / 2];
#pragma unroll
  for (int i = 0; i < held / 2; ++i) {
    a[i] = u32(left.lane[2 * i].bits) | u32(left.lane[2 * i + 1].bits) << 16;
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(a[i])::"memory");  // computed before the fence
#endif
  }
  fence_wgmma();
#pragma unroll
  for (int k = 0; k < held / 8; ++k)
    wgmma_of_registers<T, lanes, B>(sums.lane, a + 4 * k, b + k * next_sixteen<B>());
}

/// Waits for all matmuls of earlier iterations.
template <class Pipeline, class... Sums>
LATHE_FUNCTION void wait_sums(Pipeline& pipeline, Sums&... sums) {
  wait_wgmma<0>();
  (touch(sums), ...);
  pipeline.release_held();
}
/// Also waits for the matmuls of this iteration. If an iteration starts none, ptxas serializes wgmma (C7520).
template <class Pipeline, class... Sums>
LATHE_FUNCTION void wait_own_sums(Pipeline& pipeline, Sums&... sums) {
  commit_wgmma();
  wait_sums(pipeline, sums...);
}
/// Waits for all matmuls except those of the `leaving` latest groups.
template <int leaving, class... Sums>
LATHE_FUNCTION void wait_ended_sums(Sums&... sums) {
  wait_wgmma<leaving>();
  (touch(sums), ...);
}
/// Ends the latest group, then waits in the same way.
template <int leaving, class... Sums>
LATHE_FUNCTION void wait_older_sums(Sums&... sums) {
  commit_wgmma();
  wait_ended_sums<leaving>(sums...);
}
)cuda";

constexpr std::string_view wgmma_words[] = {"tiles",           "transposed_tiles", "wgmma",     "touch",
                                            "fence_wgmma",     "commit_wgmma",     "wait_sums", "wait_own_sums",
                                            "wait_older_sums", "wait_ended_sums"};
constexpr IntrinsicHook wgmma_table[] = {{&kernel::wgmma_record, wgmma_text},
                                         {&kernel::commit_sums_record, commit_sums_text},
                                         {&kernel::wait_sums_record, wait_sums_text}};

}  // namespace

extern const HookFamily wgmma_hooks;
constinit const HookFamily wgmma_hooks{wgmma_device_text, wgmma_words, wgmma_table};

}  // namespace lathe::cuda

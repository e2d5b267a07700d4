#include "ir/kernel/intrinsics/gpu/mma.h"

#include <fmt/core.h>

#include "codegen/cuda/intrinsics/hooks.h"

namespace lathe::cuda {

namespace {

std::string mma_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::Mma::of(in);
  const auto matrix = [&](const kernel::SharedOperand& m) {
    return fmt::format("{}({}, {}, {})", m.transposed ? "transposed" : "matrix", k.buffer(m.buffer), k.int32(m.first),
                       k.int32(m.stride));
  };
  return fmt::format("mma<{}, {}>({}, {}, {})", s.left.rows, s.right.rows, matrix(s.left), matrix(s.right),
                     k.value(s.sums));
}

constexpr std::string_view mma_device_text = R"cuda(
// ---- tensor cores: the 32 threads of a warp multiply tiles in shared memory ----

/// Rows of 16 elements. Element (row, k) is first[row * stride + k], or first[k * stride + row] if transposed.
template <class T, bool is_transposed>
struct Matrix {
  const T* first;
  i32 stride;
};
template <class T>
LATHE_FUNCTION Matrix<T, false> matrix(const T* p, i32 first, i32 stride) {
  return {p + first, stride};
}
template <class T>
LATHE_FUNCTION Matrix<T, true> transposed(const T* p, i32 first, i32 stride) {
  return {p + first, stride};
}

/// A thread's elements of a 16 x 16 tile. The thread holds elements k = 2 (lane % 4) and k + 1 of row lane / 4 of each
/// 8 x 8 part. The parts are rows 0 .. 7 and rows 8 .. 15 for k < 8, then the same rows for k >= 8.
struct fragment {
  u32 part[4];
};

/// Loads a fragment. Threads 8 i .. 8 i + 7 pass the addresses of the rows of part i.
template <bool is_transposed>
LATHE_FUNCTION fragment ldmatrix(const void* row) {
  fragment r;
#ifdef __CUDA_ARCH__
  const u32 at = shared_address(row);
  if constexpr (is_transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.part[0]), "=r"(r.part[1]), "=r"(r.part[2]), "=r"(r.part[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.part[0]), "=r"(r.part[1]), "=r"(r.part[2]), "=r"(r.part[3])
                 : "r"(at)
                 : "memory");
#else
  shim_ldmatrix(is_transposed, row, r.part);
#endif
  return r;
}

template <class T>
LATHE_FUNCTION fragment load_fragment(Matrix<T, false> m, int row) {
  const int lane = threadIdx.x % 32;
  return ldmatrix<false>(m.first + (row + lane % 16) * m.stride + lane / 16 * 8);
}
template <class T>
LATHE_FUNCTION fragment load_fragment(Matrix<T, true> m, int row) {
  const int lane = threadIdx.x % 32;
  return ldmatrix<true>(m.first + (lane % 8 + lane / 16 * 8) * m.stride + row + lane / 8 % 2 * 8);
}

/// sum[16 x 8] += a[16 x 16] * b[16 x 8]
template <class T>
LATHE_FUNCTION void mma_16x8x16(f32* sum, const u32* a, u32 b_low, u32 b_high) {
#ifdef __CUDA_ARCH__
#define LATHE_MMA(type)                                                                                       \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "      \
      "{%8, %9}, {%0, %1, %2, %3};"                                                                           \
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                                \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high))
  if constexpr (same_type<T, bf16>::value)
    LATHE_MMA("bf16");
  else
    LATHE_MMA("f16");
#undef LATHE_MMA
#else
  const auto value = [](u16 bits) { return widen(T{bits}); };
  shim_mma(value, sum, a, b_low, b_high);
#endif
}

/// Returns sums + left * right^T. Called by all threads of a warp. Sums are stored as 16 x 8 tiles in row-major order.
/// A thread holds four sums of each tile: rows lane / 4 and lane / 4 + 8, columns 2 (lane % 4) and 2 (lane % 4) + 1.
template <int rows, int columns, class T, bool A, bool B>
LATHE_FUNCTION vec<f32, rows * columns / 32> mma(Matrix<T, A> left, Matrix<T, B> right,
                                                 vec<f32, rows * columns / 32> sums) {
  fragment a[rows / 16];
#pragma unroll
  for (int i = 0; i < rows / 16; ++i) a[i] = load_fragment(left, i * 16);
#pragma unroll
  for (int j = 0; j < columns / 16; ++j) {
    const fragment b = load_fragment(right, j * 16);
#pragma unroll
    for (int i = 0; i < rows / 16; ++i) {
      f32* const two_tiles = sums.lane + (i * (columns / 8) + j * 2) * 4;
      mma_16x8x16<T>(two_tiles, a[i].part, b.part[0], b.part[2]);
      mma_16x8x16<T>(two_tiles + 4, a[i].part, b.part[1], b.part[3]);
    }
  }
  return sums;
}
)cuda";

constexpr std::string_view mma_words[] = {"mma", "matrix", "transposed", "fragment"};
constexpr IntrinsicHook mma_table[] = {{&kernel::mma_record, mma_text, true}};

}  // namespace

extern const HookFamily mma_hooks;
constinit const HookFamily mma_hooks{mma_device_text, mma_words, mma_table};

}  // namespace lathe::cuda

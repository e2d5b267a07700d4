#include <fmt/core.h>

#include "codegen/cuda/intrinsics/hooks.h"
#include "ir/kernel/intrinsics/split_bf16.h"

namespace lathe::cuda {

namespace {

std::string dot_pairs_text(const kernel::Instruction&, const KernelText& k) {
  return fmt::format("dot_pairs({}, {}, {})", k.arg(0), k.arg(1), k.arg(2));
}

constexpr std::string_view pair_device_text = R"cuda(
// ---- dot products of pairs of bf16 ----

/// Flushes subnormals to zero of the same sign.
LATHE_FUNCTION f32 flushed(f32 x) { return abs(x) < 0x1p-126f ? ::copysignf(0.0f, x) : x; }
LATHE_FUNCTION f32 dot_pair(bf16 a0, bf16 b0, bf16 a1, bf16 b1, f32 c) {
  const f32 odd = flushed(fma(flushed(widen(a1)), flushed(widen(b1)), flushed(c)));
  return flushed(fma(flushed(widen(a0)), flushed(widen(b0)), odd));
}
LATHE_FUNCTION f32 dot_pairs(vec<bf16, 2> a, vec<bf16, 2> b, f32 c) {
  return dot_pair(a.lane[0], b.lane[0], a.lane[1], b.lane[1], c);
}
template <int N>
LATHE_FUNCTION vec<f32, N> dot_pairs(vec<bf16, 2 * N> a, vec<bf16, 2 * N> b, vec<f32, N> c) {
  vec<f32, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i)
    r.lane[i] = dot_pair(a.lane[2 * i], b.lane[2 * i], a.lane[2 * i + 1], b.lane[2 * i + 1], c.lane[i]);
  return r;
}
)cuda";

constexpr std::string_view pair_words[] = {"flushed", "dot_pairs", "dot_pair"};
constexpr IntrinsicHook pair_table[] = {{&kernel::dot_pairs_record, dot_pairs_text}};

}  // namespace

extern const HookFamily pair_hooks;
constinit const HookFamily pair_hooks{pair_device_text, pair_words, pair_table};

}  // namespace lathe::cuda

#include <fmt/core.h>

#include "codegen/cuda/intrinsics/hooks.h"
#include "ir/kernel/intrinsics/fast_math.h"

namespace lathe::cuda {

namespace {

std::string fast_exp_text(const kernel::Instruction&, const KernelText& k) {
  return fmt::format("fast_exp({})", k.arg(0));
}

std::string fast_exp2_text(const kernel::Instruction&, const KernelText& k) {
  return fmt::format("fast_exp2({})", k.arg(0));
}

std::string fast_div_text(const kernel::Instruction&, const KernelText& k) {
  return fmt::format("fast_div({}, {})", k.arg(0), k.arg(1));
}

// PTX ISA: "ex2.approx" is 2^x within 2 units in the last place, with subnormals flushed to zero (ftz). "div.full" is
// within 2 units for all magnitudes, without the branch for rare operands of a rounded division.
constexpr std::string_view fast_math_device_text = R"cuda(
// ---- approximate hardware functions, for results that are rounded to 16 bits ----

LATHE_FUNCTION f32 fast_exp2(f32 x) {
#ifdef __CUDA_ARCH__
  f32 power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return f32(::exp2(f64(x)));
#endif
}
LATHE_FUNCTION f32 fast_exp(f32 x) {
#ifdef __CUDA_ARCH__
  return fast_exp2(x * 1.44269504088896341f);
#else
  return exp(x);
#endif
}
LATHE_FUNCTION f32 fast_div(f32 a, f32 b) {
#ifdef __CUDA_ARCH__
  f32 quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
  return quotient;
#else
  return a / b;
#endif
}
template <int N>
LATHE_FUNCTION vec<f32, N> fast_div(vec<f32, N> a, vec<f32, N> b) {
  vec<f32, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = fast_div(a.lane[i], b.lane[i]);
  return r;
}
template <int N>
LATHE_FUNCTION vec<f32, N> fast_exp2(vec<f32, N> x) {
  vec<f32, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = fast_exp2(x.lane[i]);
  return r;
}
template <int N>
LATHE_FUNCTION vec<f32, N> fast_exp(vec<f32, N> x) {
  vec<f32, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = fast_exp(x.lane[i]);
  return r;
}
)cuda";

constexpr std::string_view fast_math_words[] = {"fast_exp", "fast_exp2", "fast_div"};
constexpr IntrinsicHook fast_math_table[] = {{&kernel::fast_exp_record, fast_exp_text},
                                             {&kernel::fast_exp2_record, fast_exp2_text},
                                             {&kernel::fast_div_record, fast_div_text}};

}  // namespace

extern const HookFamily fast_math_hooks;
constinit const HookFamily fast_math_hooks{fast_math_device_text, fast_math_words, fast_math_table};

}  // namespace lathe::cuda

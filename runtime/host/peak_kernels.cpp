#include "runtime/host/peak_kernels.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef LATHE_MEASURED
#error "without -O2 these loops measure memory instead of registers: see lathe_measured_sources() in unity.cmake"
#endif

namespace lathe {

namespace {

/// Number of independent multiply-adds: enough for a latency of 5 on two ports.
constexpr int chains = 12;
constexpr float factor = 0.999f, addend = 0.001f;

#if defined(__x86_64__)

[[gnu::target("avx512f,fma")]] float fma_avx512(std::int64_t rounds) {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(factor), b = _mm512_set1_ps(addend);
  for (; rounds > 0; --rounds) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  }
  __m512 total = sums[0];
  for (int i = 1; i < chains; ++i) total = _mm512_add_ps(total, sums[i]);
  return _mm512_cvtss_f32(total);
}

[[gnu::target("avx2,fma")]] float fma_avx2(std::int64_t rounds) {
  __m256 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(factor), b = _mm256_set1_ps(addend);
  for (; rounds > 0; --rounds) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  }
  __m256 total = sums[0];
  for (int i = 1; i < chains; ++i) total = _mm256_add_ps(total, sums[i]);
  return _mm256_cvtss_f32(total);
}

#endif

using Vector4 [[gnu::vector_size(16)]] = float;

/// Uses SSE2 or NEON, which all machines of the architecture have.
float multiply_add_4(std::int64_t rounds) {
  Vector4 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = Vector4{} + static_cast<float>(i);
  Vector4 a = Vector4{} + factor, b = Vector4{} + addend;
  asm volatile("" : "+m"(a), "+m"(b));  // hides the values, so that the loop has no closed form
  for (; rounds > 0; --rounds) {
#pragma GCC unroll 12
    for (Vector4& sum : sums) sum = sum * a + b;
  }
  Vector4 total = sums[0];
  for (int i = 1; i < chains; ++i) total += sums[i];
  return total[0];
}

FmaProbe make_probe(const char* name, int lanes, bool fma, FmaKernel run) {
  return {.unit = {name, lanes, fma}, .flops_per_round = std::int64_t{2} * chains * lanes, .run = run};
}

}  // namespace

FmaProbe fma_probe() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return make_probe("AVX-512", 16, true, fma_avx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return make_probe("AVX2", 8, true, fma_avx2);
  return make_probe("SSE", 4, false, multiply_add_4);
#else
  return make_probe("128-bit", 4, false, multiply_add_4);
#endif
}

float read_sum(const float* data, std::int64_t count) {
  Vector4 sums[8] = {};
  for (std::int64_t i = 0; i < count; i += 32) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      Vector4 part;
      std::memcpy(&part, data + i + std::int64_t{4} * k, sizeof part);
      sums[k] += part;
    }
  }
  Vector4 total = {};
  for (const Vector4& sum : sums) total += sum;
  return total[0] + total[1] + total[2] + total[3];
}

}  // namespace lathe

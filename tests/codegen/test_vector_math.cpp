#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include <fmt/core.h>

#include "tests/codegen/harness.h"
#include "tests/support/kernels/function_accuracy.h"

using namespace lathe;
using namespace lathe::kernel;
using codegen::TargetCpu;

namespace {

Kernel unary_kernel(ScalarOp op) {
  Builder b(fmt::format("math_{}", name(op)));
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Value n = b.dim("n");
  b.parallel_for(0, n, 16, [&](Value i) { b.store(y, i, b.apply(op, {b.load(x, i, 16)})); });
  return b.finish();
}

Kernel pow_kernel() {
  Builder b("math_pow");
  Buffer x = b.buffer("x", f32, Access::read), z = b.buffer("z", f32, Access::read);
  Buffer y = b.buffer("y", f32, Access::write);
  Value n = b.dim("n");
  b.parallel_for(0, n, 16,
                 [&](Value i) { b.store(y, i, b.apply(ScalarOp::pow, {b.load(x, i, 16), b.load(z, i, 16)})); });
  return b.finish();
}

/// Returns |got - exact| in f32 ulps of `exact`, which may be subnormal; infinite for wrong special values.
double error(float got, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : INFINITY;
  if (got == rounded) return got == 0 && exact == 0 && std::signbit(got) != std::signbit(exact) ? INFINITY : 0.5;
  if (std::isinf(got) || std::isinf(rounded)) {
    // Within one position of the largest number, both are correct.
    const double largest = std::numeric_limits<float>::max();
    return std::abs(exact) > 0.9999999 * largest && std::abs(exact) < 1.0000002 * largest ? 1 : INFINITY;
  }
  const double position = std::max(std::ldexp(1.0, std::ilogb(exact) - 23), 0x1p-149);
  return std::abs(got - exact) / position;
}

/// Returns every `step`-th bit pattern of f32: all exponents, both signs, infinities and NaN.
std::vector<float> all_patterns(std::uint32_t step) {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += step)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  const float inf = std::numeric_limits<float>::infinity();
  for (const float v : {0.0f,       -0.0f,       inf,           -inf,    std::nanf(""), 88.72283f, 88.722839f,
                        -87.33655f, -103.97207f, -103.9721f,    -103.9f, 1.0f,          -1.0f,     0x1p-126f,
                        0x1p-149f,  -0x1p-149f,  3.4028235e38f, 0.675f,  0.9375f,       4.0f})
    values.push_back(v);
  while (values.size() % 16) values.push_back(1.0f);
  return values;
}

std::vector<TargetCpu> targets() {
  std::vector<TargetCpu> result{TargetCpu::host()};
  for (const char* name : {"x86-64-v3", "x86-64-v2"})
    if (const TargetCpu target = TargetCpu::named(name); target.runs_here()) result.push_back(target);
  return result;
}

}  // namespace

TEST_CASE("f32 functions meet their documented accuracy over all magnitudes") {
  const std::vector<test::FunctionAccuracy> functions = test::f32_accuracies();
  for (const ScalarOpTraits& known : all_scalar_ops()) {
    if (known.arity != 1 || !known.transcendental) continue;
    INFO(known.name << " has no row in tests/support/kernels/function_accuracy.h");
    CHECK(std::ranges::any_of(functions, [&](const auto& row) { return row.op == known.op; }));
  }
  const std::vector<float> x = all_patterns(4099);
  std::vector<Kernel> kernels;
  for (const test::FunctionAccuracy& function : functions) kernels.push_back(unary_kernel(function.op));
  for (const TargetCpu& target : targets()) {
    const codegen::CompiledKernels code = codegen::Jit({.target = target}).compile(kernels);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      std::vector<float> y(x.size());
      const void* buffers[] = {x.data(), y.data()};
      const auto n = static_cast<std::int64_t>(x.size());
      std::int64_t status = 0;
      code[k].run(const_cast<void**>(buffers), &n, 0, code[k].extent(&n), &status);
      double worst = 0;
      float where = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (const double e = error(y[i], functions[k].exact(x[i])); e > worst) worst = e, where = x[i];
      INFO(target.cpu << " " << name(functions[k].op) << " " << worst << " at " << fmt::format("{}", where));
      CHECK(worst <= functions[k].most);
    }
  }
}

TEST_CASE("f32 pow follows the C standard") {
  std::vector<float> x, z;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const float cases[] = {0.0f,        -0.0f,      1.0f,       -1.0f,  inf,     -inf,        nan,
                         2.0f,        -2.0f,      3.0f,       -3.0f,  0.5f,    -0.5f,       1.5f,
                         -2.5f,       1e-40f,     -1e-40f,    3e38f,  -3e38f,  16777215.0f, -16777215.0f,
                         16777216.0f, 0.9999999f, 1.0000001f, 127.5f, -149.0f, -150.5f};
  for (const float a : cases)
    for (const float b : cases) x.push_back(a), z.push_back(b);
  const std::vector<float> patterns = all_patterns(86028157);
  for (const float a : patterns)
    for (const float b : patterns) x.push_back(a), z.push_back(b);
  for (int i = 0; i < 200000; ++i) {
    x.push_back(std::exp(static_cast<float>(i % 1777) / 100 - 9));
    z.push_back(static_cast<float>(i % 3313) / 300 - 5);
  }
  while (x.size() % 16) x.push_back(1), z.push_back(1);
  const Kernel kernel = pow_kernel();
  for (const TargetCpu& target : targets()) {
    const codegen::CompiledKernels code = codegen::Jit({.target = target}).compile({&kernel, 1});
    std::vector<float> y(x.size());
    const void* buffers[] = {x.data(), z.data(), y.data()};
    const auto n = static_cast<std::int64_t>(x.size());
    std::int64_t status = 0;
    code[0].run(const_cast<void**>(buffers), &n, 0, code[0].extent(&n), &status);
    double worst = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::pow(static_cast<double>(x[i]), static_cast<double>(z[i]));
      if (const double e = error(y[i], exact); e > worst) worst = e, where = i;
    }
    INFO(target.cpu << " pow at " << fmt::format("{}, {} gives {}", x[where], z[where], y[where]));
    CHECK(worst <= 0.51);
  }
}

TEST_CASE("exp gives the same bits on every vector width with fma") {
  const std::vector<float> x = all_patterns(1000003);
  const Kernel kernel = unary_kernel(ScalarOp::exp);
  std::vector<std::vector<float>> results;
  for (const TargetCpu& target : targets()) {
    if (!target.has("fma")) continue;
    const codegen::CompiledKernels code = codegen::Jit({.target = target}).compile({&kernel, 1});
    std::vector<float> y(x.size());
    const void* buffers[] = {x.data(), y.data()};
    const auto n = static_cast<std::int64_t>(x.size());
    std::int64_t status = 0;
    code[0].run(const_cast<void**>(buffers), &n, 0, code[0].extent(&n), &status);
    for (float& v : y)
      if (std::isnan(v)) v = 0;
    results.push_back(y);
  }
  for (const auto& other : results) CHECK(other == results[0]);
}

TEST_CASE("throughput of f32 functions", "[.bench]") {
  alignas(64) static float x[4096], y[4096];
  for (int i = 0; i < 4096; ++i) x[i] = static_cast<float>(i % 800) / 100 - 4;
  void* buffers[] = {x, y};
  const std::int64_t n = 4096;
  std::int64_t status = 0;
  for (const ScalarOp op :
       {ScalarOp::neg, ScalarOp::exp, ScalarOp::log, ScalarOp::tanh, ScalarOp::erf, ScalarOp::sin}) {
    const std::vector<Kernel> kernels{unary_kernel(op)};
    const codegen::CompiledKernels code = codegen::Jit().compile(kernels);
    double best = 1e9;
    for (int i = 0; i < 2000; ++i) {
      const auto start = std::chrono::steady_clock::now();
      code[0].run(buffers, &n, 0, n / 16, &status);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::printf("%s: %.2f G/s\n", std::string(name(op)).c_str(), 4096 / best / 1e9);
  }
}

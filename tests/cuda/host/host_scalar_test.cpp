#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/fast_math.h"
#include "ir/kernel/intrinsics/split_bf16.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/kernels/function_accuracy.h"

/// The arithmetic of lathe.cuh, compiled by the host's compiler.
using namespace lathe;
using namespace lathe::kernel;
using test::HostCuda;

namespace {

constexpr std::int64_t count = 256;
using Bytes = std::vector<std::byte>;

/// Returns edge cases, followed by random bits.
Bytes samples(DType dtype, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const double inf = std::numeric_limits<double>::infinity();
  const double reals[] = {0.0, -0.0, 1, -1, 0.5, -1.5, 2.5, 3, inf, -inf, std::nan(""), 1e30, 1e-3, 1e-40, -1e-42,
                          65504, 7e4, 0x1p31, -0x1p31, 0x1p63, -0x1p63, 2147483520.0,
                          // close to ties of bf16 and f16, to which f32 rounds them
                          1.0039062500009095, 4.5917748124e-41, 3.3961775e38, -1.0004882812509095, 2.9802322417e-08,
                          65519.999999999};
  const std::int64_t whole[] = {0,
                                1,
                                -1,
                                2,
                                31,
                                32,
                                63,
                                64,
                                INT32_MIN,
                                INT32_MAX,
                                INT64_MIN,
                                INT64_MAX,
                                -7,
                                1 << 20,
                                0x1010001,
                                (1LL << 60) + (1LL << 52) + 1,
                                -(1LL << 60) - (1LL << 49) - 1,
                                65519};
  Bytes bytes(static_cast<std::size_t>(count) * size_in_bytes(dtype));
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* at = bytes.data() + static_cast<std::size_t>(i) * size_in_bytes(dtype);
    const std::uint64_t bits = random();
    const double real = i % 3 == 0 ? reals[bits % std::size(reals)]
                                   : std::ldexp(static_cast<double>(bits >> 11), static_cast<int>(bits % 80) - 90) *
                                         (bits & 1 ? -1 : 1);
    const std::int64_t integer =
        i % 3 == 0 ? whole[bits % std::size(whole)] : std::bit_cast<std::int64_t>(bits) >> (bits % 60);
    const auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
    switch (dtype) {
      case DType::f64: put(real); break;
      case DType::f32: put(static_cast<float>(real)); break;
      case DType::bf16: put(static_cast<std::uint16_t>(bits)); break;
      case DType::f16: put(static_cast<std::uint16_t>(bits)); break;
      case DType::i64: put(integer); break;
      case DType::i32: put(static_cast<std::int32_t>(integer)); break;
      case DType::i8:
      case DType::u8: put(static_cast<std::uint8_t>(bits)); break;
      case DType::boolean: put(static_cast<std::uint8_t>(bits & 1)); break;
      case DType::c64:
      case DType::c128: FAIL("complex");
    }
  }
  return bytes;
}

/// A kernel from inputs `in` to one output per vector width.
struct Case {
  Kernel kernel;
  std::vector<DType> in;
  DType out = f32;
  double ulps = 0;
};

constexpr int widths[] = {1, 4};

Case make_case(std::string name, const std::vector<DType>& in, DType out,
               const std::function<Value(Builder&, const std::vector<Value>&)>& body) {
  Builder b(std::move(name));
  std::vector<Buffer> inputs, outputs;
  for (std::size_t i = 0; i < in.size(); ++i) inputs.push_back(b.buffer(fmt::format("in{}", i), in[i], Access::read));
  for (const int width : widths) outputs.push_back(b.buffer(fmt::format("out{}", width), out, Access::write));
  for (std::size_t w = 0; w < std::size(widths); ++w) {
    const auto thread = [&](Value i) {
      std::vector<Value> args;
      for (const Buffer buffer : inputs) args.push_back(b.load(buffer, i, widths[w]));
      b.store(outputs[w], i, body(b, args));
    };
    b.for_loop(0, count, widths[w], thread, LoopKind::thread_x);
  }
  return {b.finish(), in, out, 0};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int i = 0; i < static_cast<int>(ScalarOp::cast); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    for (const DType dtype : all_dtypes) {
      if (!is_defined(op, dtype)) continue;
      std::vector<DType> in(static_cast<std::size_t>(arity(op)), dtype);
      if (op == ScalarOp::select) in[0] = boolean;
      cases.push_back(make_case(fmt::format("{}_{}", name(op), name(dtype)), in, result_dtype(op, dtype),
                                [&](Builder& b, const std::vector<Value>& args) { return b.apply(op, args); }));
      if (traits(op).transcendental) cases.back().ulps = dtype == f32 ? 3 : 1;
    }
  }
  for (const DType from : all_dtypes)
    for (const DType to : all_dtypes)
      if (from != to && !is_complex(from) && !is_complex(to))
        cases.push_back(make_case(fmt::format("cast_{}_{}", name(from), name(to)), {from}, to,
                                  [&](Builder& b, const std::vector<Value>& args) { return b.cast(args[0], to); }));
  for (const DType dtype : {f32, f64})
    cases.push_back(make_case(fmt::format("fma_{}", name(dtype)), {dtype, dtype, dtype}, dtype,
                              [&](Builder& b, const std::vector<Value>& a) { return b.fma(a[0], a[1], a[2]); }));
  cases.push_back(
      make_case("dot_pairs", {bf16, bf16, bf16, bf16, f32}, f32, [](Builder& b, const std::vector<Value>& a) {
        std::vector<int> in_turn;
        for (int i = 0; i < a[0].type.lanes; ++i) in_turn.insert(in_turn.end(), {i, a[0].type.lanes + i});
        return dot_pairs(b, b.shuffle(a[0], a[1], in_turn), b.shuffle(a[2], a[3], in_turn), a[4]);
      }));
  cases.push_back(
      make_case("fast_exp", {f32}, f32, [](Builder& b, const std::vector<Value>& a) { return fast_exp(b, a[0]); }));
  cases.back().ulps = 3;
  cases.push_back(make_case("fast_div", {f32, f32}, f32,
                            [](Builder& b, const std::vector<Value>& a) { return fast_div(b, a[0], a[1]); }));
  return cases;
}

/// Whether two elements have the same bits, are both NaN, or differ by at most `ulps` units in the last place.
bool close(DType dtype, const std::byte* a, const std::byte* b, double ulps) {
  if (std::memcmp(a, b, size_in_bytes(dtype)) == 0) return true;
  const auto distance = [&]<class Real, class Bits>(Real, Bits) {
    Real x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (std::signbit(x) != std::signbit(y)) return false;
    return std::abs(static_cast<double>(std::bit_cast<Bits>(x) - std::bit_cast<Bits>(y))) <= ulps;
  };
  if (dtype == bf16 || dtype == f16) {
    std::uint16_t x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    const int infinity = dtype == bf16 ? 0x7f80 : 0x7c00;
    return (x & 0x7fff) > infinity && (y & 0x7fff) > infinity;
  }
  if (dtype == f32) return distance(0.0f, std::int32_t{});
  return dtype == f64 && distance(0.0, std::int64_t{});
}

std::vector<Bytes> run(const Case& c, const HostCuda* host) {
  std::vector<Bytes> memory;
  for (std::size_t i = 0; i < c.in.size(); ++i) memory.push_back(samples(c.in[i], i + 1));
  for (std::size_t w = 0; w < std::size(widths); ++w)
    memory.emplace_back(static_cast<std::size_t>(count) * size_in_bytes(c.out));
  std::vector<BoundBuffer> buffers;
  for (Bytes& bytes : memory) buffers.push_back({bytes.data(), count});
  if (host)
    host->run(c.kernel, buffers, {});
  else
    interpret(c.kernel, buffers, {});
  return {memory.begin() + static_cast<std::ptrdiff_t>(c.in.size()), memory.end()};
}

/// Returns |got - exact| in f32 ulps of `exact`; infinite for wrong special values.
double error(float got, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : INFINITY;
  if (got == rounded) return got == 0 && std::signbit(got) != std::signbit(exact) ? INFINITY : 0.5;
  if (std::isinf(got) || std::isinf(rounded)) {
    const double largest = std::numeric_limits<float>::max(), size = std::abs(exact);
    return size > 0.9999999 * largest && size < 1.0000002 * largest ? 1 : INFINITY;
  }
  return std::abs(got - exact) / std::max(std::ldexp(1.0, std::ilogb(exact) - 23), 0x1p-149);
}

}  // namespace

TEST_CASE("CUDA text on the host: every scalar op and cast matches the bits of the interpreter") {
  const std::vector<Case> cases = all_cases();
  CHECK(cases.size() > 130);
  std::vector<Kernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (const Case& c : cases) {
    const auto expected = run(c, nullptr), found = run(c, &*host);
    const std::size_t size = size_in_bytes(c.out);
    for (std::size_t w = 0; w < expected.size(); ++w)
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        if (!close(c.out, &found[w][i * size], &expected[w][i * size], c.ulps))
          FAIL_CHECK(c.kernel.name << ", " << widths[w] << " lanes, element " << i);
  }
}

TEST_CASE("CUDA text on the host: f32 functions meet their documented accuracy over all magnitudes") {
  const std::vector<test::FunctionAccuracy> table = test::f32_accuracies();
  std::vector<Kernel> kernels;
  for (const test::FunctionAccuracy& row : table) {
    Builder b(fmt::format("math_{}", name(row.op)));
    Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
    Value n = b.dim("n");
    b.for_loop(
        0, n, 1024,
        [&](Value first) {
          const auto thread = [&](Value t) { b.store(y, first + t, b.apply(row.op, {b.load(x, first + t, 16)})); };
          b.for_loop(0, 1024, 16, thread, LoopKind::thread_x);
        },
        LoopKind::block_x);
    kernels.push_back(b.finish());
  }
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  std::vector<float> x, y;
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += 16411)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (const float v : {0.0f, -0.0f, INFINITY, -INFINITY, 88.72283f, 88.722839f, -87.33655f, -103.97207f, -103.9721f,
                        0x1p-126f, -0x1p-149f, 0.625f, 0.9375f, 4.0f})
    x.push_back(v);
  while (x.size() % 1024) x.push_back(1);
  y.resize(x.size());
  const auto n = static_cast<std::int64_t>(x.size());
  const BoundBuffer buffers[] = {{x.data(), n}, {y.data(), n}};
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    host->run(kernels[k], buffers, {&n, 1});
    double worst = 0;
    float where = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const double e = error(y[i], table[k].exact(x[i])); e > worst) worst = e, where = x[i];
    INFO(name(table[k].op) << " " << worst << " at " << where);
    CHECK(worst <= table[k].most);
  }
}

#include <catch2/catch.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/split_bf16.h"
#include "tests/codegen/harness.h"

using namespace lathe;
using namespace lathe::kernel;
using namespace lathe::testing;
using codegen::TargetCpu;

namespace {

constexpr int widths[] = {1, 4, 8, 16};
constexpr std::int64_t count = 512;

struct Case {
  Kernel kernel;
  std::vector<Data> buffers;
  double ulps = 0;
};

/// out_w[i] = op(in0[i], ...) with every vector width w.
Case scalar_case(ScalarOp op, DType dtype) {
  Builder b(fmt::format("{}_{}", name(op), name(dtype)));
  Case result;
  std::vector<Buffer> in, out;
  for (int i = 0; i < arity(op); ++i) {
    const DType type = op == ScalarOp::select && i == 0 ? boolean : dtype;
    in.push_back(b.buffer(fmt::format("in{}", i), type, Access::read));
    result.buffers.push_back(samples(type, count, static_cast<std::uint64_t>(i) + 1));
  }
  const DType to = result_dtype(op, dtype);
  for (const int lanes : widths) {
    out.push_back(b.buffer(fmt::format("out{}", lanes), to, Access::write));
    result.buffers.emplace_back(to, count);
  }
  Value n = b.dim("n");
  for (std::size_t w = 0; w < std::size(widths); ++w)
    b.for_loop(0, n, widths[w], [&](Value i) {
      std::vector<Value> args;
      for (const Buffer buffer : in) args.push_back(b.load(buffer, i, widths[w]));
      b.store(out[w], i, b.apply(op, args));
    });
  result.kernel = b.finish();
  // f64 uses the same C library; f32 functions have their own accuracy.
  if (traits(op).transcendental) result.ulps = dtype == f32 ? 3 : 1;
  return result;
}

Case cast_case(DType from, DType to) {
  Builder b(fmt::format("cast_{}_{}", name(from), name(to)));
  Case result;
  Buffer in = b.buffer("in", from, Access::read);
  result.buffers.push_back(samples(from, count, 5));
  std::vector<Buffer> out;
  for (const int lanes : widths) {
    out.push_back(b.buffer(fmt::format("out{}", lanes), to, Access::write));
    result.buffers.emplace_back(to, count);
  }
  for (std::size_t w = 0; w < std::size(widths); ++w)
    b.for_loop(0, count, widths[w], [&](Value i) { b.store(out[w], i, b.cast(b.load(in, i, widths[w]), to)); });
  result.kernel = b.finish();
  return result;
}

void run_all(const std::vector<Case>& cases, const TargetCpu& target) {
  std::vector<Kernel> kernels;
  for (const Case& c : cases) kernels.push_back(c.kernel);
  const codegen::CompiledKernels code = codegen::Jit({.target = target}).compile(kernels);
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const std::vector<std::int64_t> dims(cases[k].kernel.dims.size(), count);
    const Outcome expected = run_interpreter(cases[k].kernel, cases[k].buffers, dims);
    const Outcome actual = run_compiled(code[k], cases[k].buffers, dims);
    for (std::size_t i = 0; i < actual.buffers.size(); ++i)
      require_close(actual.buffers[i], expected.buffers[i], cases[k].ulps,
                    fmt::format("{} on {}, buffer {}", cases[k].kernel.name, target.cpu, i));
  }
}

std::vector<TargetCpu> targets() {
  std::vector<TargetCpu> result{TargetCpu::host()};
  for (const char* name : {"x86-64-v2", "x86-64-v3"})
    if (const TargetCpu target = TargetCpu::named(name); target.runs_here()) result.push_back(target);
  return result;
}

}  // namespace

TEST_CASE("every scalar op matches the interpreter on every dtype and width") {
  std::vector<Case> cases;
  for (int op = 0; op < static_cast<int>(ScalarOp::cast); ++op)
    for (const DType dtype : all_dtypes)
      if (is_defined(static_cast<ScalarOp>(op), dtype))
        cases.push_back(scalar_case(static_cast<ScalarOp>(op), dtype));
  CHECK(cases.size() > 90);
  for (const TargetCpu& target : targets()) run_all(cases, target);
}

namespace {

/// Operands x, y of dot_pairs and sums, all of whose results are close to the smallest normal number.
std::vector<Data> tiny_pairs() {
  std::mt19937 random(7);
  const auto number = [&](int exponent, int bits) {
    const double significand = 1 + static_cast<double>(random() % (1U << bits)) / (1U << bits);
    return static_cast<float>(std::ldexp(random() % 2 == 0 ? significand : -significand, exponent));
  };
  std::vector<std::uint16_t> x, y;
  std::vector<float> sums;
  for (int i = 0; i < count; ++i) {
    sums.push_back(random() % 2 == 0 ? 0x1p-126f : number(-128 + static_cast<int>(random() % 4), 23));
    for (int half = 0; half < 2; ++half) {
      const int exponent = -80 + static_cast<int>(random() % 20), product = -152 + static_cast<int>(random() % 28);
      x.push_back(kernel::bf16_bits(number(exponent, 7)));
      y.push_back(kernel::bf16_bits(number(product - exponent, 7)));
    }
  }
  return {Data::of(bf16, x), Data::of(bf16, y), Data::of(f32, sums)};
}

}  // namespace

TEST_CASE("dot_pairs matches the bits of the interpreter with and without the instruction, on every width") {
  Builder b("dot_pairs");
  Case pairs;
  const Buffer x = b.buffer("x", bf16, Access::read), y = b.buffer("y", bf16, Access::read);
  const Buffer sums = b.buffer("sums", f32, Access::read);
  pairs.buffers = {samples(bf16, 2 * count, 11), samples(bf16, 2 * count, 12), samples(f32, count, 13)};
  std::vector<Buffer> out;
  for (const int lanes : widths) {
    out.push_back(b.buffer(fmt::format("out{}", lanes), f32, Access::write));
    pairs.buffers.emplace_back(f32, count);
  }
  Value n = b.dim("n");
  for (std::size_t w = 0; w < std::size(widths); ++w)
    b.for_loop(0, n, widths[w], [&](Value i) {
      b.store(
          out[w], i,
          dot_pairs(b, b.load(x, 2 * i, 2 * widths[w]), b.load(y, 2 * i, 2 * widths[w]), b.load(sums, i, widths[w])));
    });
  pairs.kernel = b.finish();
  Case tiny = pairs;
  std::vector<Data> operands = tiny_pairs();
  std::move(operands.begin(), operands.end(), tiny.buffers.begin());
  for (const TargetCpu& target : targets()) run_all({pairs, tiny}, target);
}

TEST_CASE("every cast matches the interpreter on every width") {
  std::vector<Case> cases;
  for (const DType from : all_dtypes)
    for (const DType to : all_dtypes)
      if (from != to && !is_complex(from) && !is_complex(to)) cases.push_back(cast_case(from, to));
  CHECK(cases.size() == 72);
  for (const TargetCpu& target : targets()) run_all(cases, target);
}

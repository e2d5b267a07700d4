#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "ir/kernel/printer.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/compile.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"

/// Softmax weights that are computed without a division per element are rounded like quotients.
using namespace lathe;

namespace {

std::string softmax(const std::string& dtype) {
  return "graph @g(input %x: " + dtype + R"([n, 1003]) {
  %1 = max %x {dims=[1], keepdim=true}
  %2 = sub %x, %1
  %3 = exp %2
  %4 = sum %3 {dims=[1], keepdim=true}
  %5 = div %3, %4
  output "exponentials" %3
  output "sums" %4
  output "weights" %5
})";
}

/// Returns rows of random numbers between 0 and a maximum from 0.01 to 90.
HostTensor spread_rows(std::int64_t rows, std::int64_t columns, DType dtype) {
  std::mt19937 random(7);
  HostTensor x(dtype, {rows, columns});
  for (std::int64_t r = 0; r < rows; ++r) {
    const double width = 0.01 * std::pow(9000, static_cast<double>(r) / static_cast<double>(rows - 1));
    for (std::int64_t c = 0; c < columns; ++c)
      x.set(r * columns + c, std::uniform_real_distribution<>(0, width)(random));
  }
  return x;
}

/// Whether weights are correctly rounded quotients; for dividends below 2^-100, within one ulp.
bool are_quotients(const Tensors& results) {
  const HostTensor &weights = results.at("weights"), &dividends = results.at("exponentials"),
                   &sums = results.at("sums");
  HostTensor quotients(weights.dtype(), weights.shape());
  for (std::int64_t i = 0; i < weights.numel(); ++i) {
    const auto dividend = static_cast<float>(dividends.get(i)), weight = static_cast<float>(weights.get(i));
    const float quotient = dividend / static_cast<float>(sums.get(i / weights.shape()[1]));
    const bool is_near = std::nextafter(quotient, weight) == weight;
    quotients.set(i, dividend < 0x1p-100F && is_near ? weight : quotient);
  }
  return weights.same_bits(quotients);
}

/// Whether the kernels have vector divisions.
bool divides(const std::string& text, int bits) {
  const ir::Graph graph = ir::run_pipeline(lathe::test::parse(text), ir::default_pipeline()).graph;
  bool found = false;
  for (const kernel::Kernel& code : lower_cpu(graph, test::cpu_with(bits)).kernels)
    for (const kernel::Instruction& i : code.values)
      found = found || (i.op == kernel::Opcode::scalar && i.scalar_op == ScalarOp::div && i.type.lanes > 1);
  return found;
}

}  // namespace

TEST_CASE("softmax weights are rounded like divisions on every target") {
  for (const DType dtype : {f32, bf16})
    for (const char* target : {"host", "x86-64-v3", "x86-64-v2"}) {
      INFO(name(dtype) << " " << target);
      Executable softmax_of = compile(lathe::test::parse(softmax(std::string(name(dtype)))),
                                      {.target = Target::named(target), .threads = 2});
      CHECK(are_quotients(softmax_of.run({{"x", spread_rows(500, 1003, dtype)}})));
    }
}

TEST_CASE("weights of rows with infinities and NaN match the interpreter") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t columns = 1003;
  HostTensor x = spread_rows(5, columns, f32);
  x.set(3, -inf);
  x.set(columns + 3, inf);
  x.set(2 * columns + 3, nan);
  for (std::int64_t c = 0; c < columns; ++c) x.set(3 * columns + c, c == 900 ? -1e30 : -inf);
  for (std::int64_t c = 0; c < columns; ++c) x.set(4 * columns + c, -inf);
  const HostTensor weights = compile(lathe::test::parse(softmax("f32"))).run({{"x", x}}).at("weights");
  CHECK(weights.get(3) == 0);
  CHECK(weights.get(0) > 0);
  for (const std::int64_t row : {1, 2, 4})
    for (const std::int64_t c : {0, 3, 1002}) CHECK(std::isnan(weights.get(row * columns + c)));
  CHECK(weights.get(3 * columns + 900) == 1);
  CHECK(std::bit_cast<std::uint32_t>(weights.as<float>()[3 * columns]) == 0);
}

TEST_CASE("only f32 and bf16 weights on targets with fma avoid divisions") {
  CHECK_FALSE(divides(softmax("f32"), 512));
  CHECK_FALSE(divides(softmax("f32"), 256));
  CHECK_FALSE(divides(softmax("bf16"), 512));
  CHECK(divides(softmax("f32"), 128));
  CHECK(divides(softmax("f16"), 512));
  CHECK(divides(softmax("f64"), 512));
  CHECK(
      divides("graph @g(input %x: f32[n, 1003]) {\n  %1 = sum %x {dims=[1], keepdim=true}\n"
              "  %2 = div %x, %1\n  output \"y\" %2\n}",
              512));
}

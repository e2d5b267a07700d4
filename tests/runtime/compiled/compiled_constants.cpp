#include <catch2/catch.hpp>

#include "ir/tensor/interpret/interpreter.h"
#include "passes/autodiff/autodiff.h"
#include "passes/transforms/dtypes/convert_dtype.h"
#include "runtime/compile.h"
#include "tests/runtime/compiled/check_compiled.h"

using namespace lathe;
using namespace lathe::test;

namespace {

constexpr std::int64_t lowest = INT64_MIN, highest = INT64_MAX, odd = (std::int64_t{1} << 53) + 1;

/// Returns the results of compiled code, and checks that the interpreter gives the same bits.
Tensors compiled(const ir::Graph& graph, const Tensors& arguments) {
  Tensors found = compile(graph, {.threads = 1}).run(arguments);
  for (const auto& [name, expected] : ir::interpret(graph, arguments)) {
    INFO(name << ": " << found.at(name).to_string() << " instead of " << expected.to_string());
    CHECK(found.at(name).same_bits(expected));
  }
  return found;
}

std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) list.push_back(tensor.get(i));
  return list;
}

/// Every op that compares with, adds or selects 0.1; x is 0.1 in its dtype, and 3.
std::string uses_of_a_constant(const std::string& dtype) {
  return "graph @g(input %x: " + dtype + "[n]) {\n  %c = constant {dtype=" + dtype + R"(, shape=[], values=[0.1]}
  %1 = eq %x, %c
  %2 = lt %x, %c
  %3 = le %x, %c
  %4 = sub %x, %c
  %5 = add %x, %c
  %6 = where %1, %c, %x
  %7 = ne %x, %x
  %8 = masked_fill %x, %7 {value=0.1}
  %9 = masked_fill %x, %1 {value=0.1}
  %10 = sub %9, %x
  %11 = clamp %x {low=0.2, high=0.3}
  %12 = maximum %x, %c
  %13 = mul %x, %c
  %14 = neg %c
  %15 = add %14, %x
  output "eq" %1
  output "lt" %2
  output "le" %3
  output "sub" %4
  output "add" %5
  output "where" %6
  output "kept" %8
  output "filled" %10
  output "clamp" %11
  output "maximum" %12
  output "mul" %13
  output "neg" %15
})";
}

}  // namespace

TEST_CASE("a scalar constant of a 16-bit float is the rounded number in every op") {
  for (const DType dtype : {bf16, f16}) {
    const ir::Graph graph = parse(uses_of_a_constant(std::string(name(dtype))));
    const Tensors arguments{{"x", HostTensor::from({2}, {0.1, 3}, f32).cast(dtype)}};
    const Tensors found = compiled(graph, arguments);
    CHECK(numbers(found.at("eq")) == std::vector<double>{1, 0});
    CHECK(numbers(found.at("lt")) == std::vector<double>{0, 0});
    CHECK(numbers(found.at("le")) == std::vector<double>{1, 0});
    CHECK(found.at("sub").get(0) == 0);
    CHECK(found.at("filled").get(0) == 0);
    CHECK(found.at("neg").get(0) == 0);
    check_compiled(graph, {.sizes = n_sizes, .tolerance = 0});
  }
}

TEST_CASE("the same when an f32 graph runs in 16 bits") {
  for (const DType dtype : {bf16, f16}) {
    const ir::Graph graph = ir::convert_dtype(parse(uses_of_a_constant("f32")), f32, dtype);
    const Tensors arguments{{"x", HostTensor::from({2}, {0.1, 3}, f32).cast(dtype)}};
    CHECK(numbers(compiled(graph, arguments).at("eq")) == std::vector<double>{1, 0});
  }
}

TEST_CASE("integer attributes are exact in compiled code over the i64 range") {
  const ir::Graph graph = parse(R"(graph @g(input %x: i64[n]) {
  %1 = constant {dtype=i64, shape=[4], values=[9007199254740993, -9007199254740995, 9223372036854775807, -9223372036854775808]}
  %2 = constant {dtype=i64, shape=[], values=[9007199254740993]}
  %3 = eq %x, %2
  %4 = masked_fill %x, %3 {value=9223372036854775807}
  %5 = clamp %x {low=-9223372036854775807, high=9223372036854775806}
  %6 = sub %x, %2
  %7 = lt %x, %2
  %8 = constant {dtype=i64, shape=[], values=[9223372036854775807]}
  %9 = add %x, %8
  output "list" %1
  output "eq" %3
  output "filled" %4
  output "clamped" %5
  output "sub" %6
  output "lt" %7
  output "add" %9
})");
  const Tensors found = compiled(graph, {{"x", HostTensor::from_ints({4}, {lowest, odd, odd - 1, highest})}});
  CHECK(found.at("list").same_bits(HostTensor::from_ints({4}, {odd, -odd - 2, highest, lowest})));
  CHECK(numbers(found.at("eq")) == std::vector<double>{0, 1, 0, 0});
  CHECK(found.at("filled").same_bits(HostTensor::from_ints({4}, {lowest, highest, odd - 1, highest})));
  CHECK(found.at("clamped").same_bits(HostTensor::from_ints({4}, {lowest + 1, odd, odd - 1, highest - 1})));
  check_compiled(graph, {.sizes = n_sizes, .tolerance = 0});
}

TEST_CASE("the limits of i32, i8 and u8 are exact in compiled code") {
  const ir::Graph graph = parse(R"(graph @g(input %x: i32[n]) {
  %1 = constant {dtype=i32, shape=[2], values=[-2147483648, 2147483647]}
  %2 = constant {dtype=i32, shape=[], values=[-2147483648]}
  %3 = clamp %x {low=-2147483648, high=2147483647}
  %4 = eq %x, %2
  %5 = constant {dtype=i8, shape=[], values=[-128]}
  %6 = constant {dtype=u8, shape=[], values=[255]}
  %7 = cast %x {dtype=i8}
  %8 = cast %x {dtype=u8}
  %9 = eq %7, %5
  %10 = eq %8, %6
  output "list" %1
  output "clamped" %3
  output "eq" %4
  output "i8" %9
  output "u8" %10
})");
  const Tensors found = compiled(graph, {{"x", HostTensor::from_ints({4}, {INT32_MIN, INT32_MAX, -128, 255}, i32)}});
  CHECK(numbers(found.at("eq")) == std::vector<double>{1, 0, 0, 0});
  CHECK(numbers(found.at("i8")) == std::vector<double>{0, 0, 1, 0});
  CHECK(numbers(found.at("u8")) == std::vector<double>{0, 1, 0, 1});
}

TEST_CASE("casts of f64 and integers to floats round once") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n], input %i: i64[m], input %j: i32[m]) {
  %1 = cast %x {dtype=bf16}
  %2 = cast %x {dtype=f16}
  %3 = cast %i {dtype=bf16}
  %4 = cast %i {dtype=f16}
  %5 = cast %i {dtype=f32}
  %6 = cast %j {dtype=bf16}
  %7 = cast %1 {dtype=f64}
  %8 = add %3, %6
  output "f64 bf16" %1
  output "f64 f16" %2
  output "i64 bf16" %3
  output "i64 f16" %4
  output "i64 f32" %5
  output "i32 bf16" %6
  output "back" %7
  output "sum" %8
})");
  const std::int64_t above = (std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1;
  const std::int64_t f32_tie = (std::int64_t{1} << 54) + (std::int64_t{1} << 30) + 1;
  const Tensors arguments{
      {"x", HostTensor::from({6},
                             {1.0039062500009095, 4.5917748124e-41, 3.3961775e38, 1.0004882812509095,
                              2.9802322417e-08, 65519.999999999},
                             f64)},
      {"i", HostTensor::from_ints({5}, {above, -above, f32_tie, highest, 65519})},
      {"j", HostTensor::from_ints({5}, {0x1010001, -0x1010001, INT32_MAX, INT32_MIN, 0x1010000}, i32)}};
  const Tensors found = compiled(graph, arguments);
  const HostTensor &to_bf16 = found.at("f64 bf16"), &to_f16 = found.at("f64 f16"), &whole = found.at("i64 bf16");
  CHECK(to_bf16.get(0) == 1.0078125);
  CHECK(to_bf16.get(1) == 0x1p-133);
  CHECK(to_bf16.get(2) == 0x1.fep127);
  CHECK(to_f16.get(3) == 1.0009765625);
  CHECK(to_f16.get(4) == 0x1p-24);
  CHECK(to_f16.get(5) == 65504);
  CHECK(whole.get(0) == 0x1.02p60);
  CHECK(whole.get(1) == -0x1.02p60);
  CHECK(found.at("i64 f32").get(2) == 0x1.000002p54);
  CHECK(found.at("i64 f16").get(4) == 65504);
  CHECK(found.at("i32 bf16").get(0) == 0x1.02p24);
  CHECK(found.at("i32 bf16").get(4) == 0x1p24);
}

TEST_CASE("the gradient of a maximum counts more ties than a 16-bit float can represent") {
  for (const char* dtype : {"f16", "bf16"}) {
    const ir::Graph graph = ir::differentiate(parse("graph @g(input %x: " + std::string(dtype) + R"([n]) {
  %1 = max %x {dims=[0]}
  output "y" %1
})"),
                                              {.outputs = {{"y", ""}}, .wrt = {"x"}});
    const Tensors arguments{{"x", HostTensor(*parse_dtype(dtype), {70000})}};
    const Tensors found = compiled(graph, arguments);
    const double share = HostTensor::scalar(1.0 / 70000).cast(*parse_dtype(dtype)).get(0);
    CHECK(share > 0);
    CHECK(found.at("grad.x").get(0) == share);
    CHECK(found.at("grad.x").get(69999) == share);
  }
}

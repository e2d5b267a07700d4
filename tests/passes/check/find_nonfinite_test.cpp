#include "passes/check/find_nonfinite.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "passes/autodiff/autodiff.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;
using Catch::StartsWith;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Returns what find_nonfinite says about a graph's interpretation; "finite" if it finds nothing.
std::string found(const ir::Graph& graph, const Tensors& arguments) {
  const auto result =
      find_nonfinite(graph, [&](const ir::Graph& other) { return interpret(other, arguments, {.round = true}); });
  return result ? to_string(*result, graph) : "finite";
}

std::string found(std::string_view text, const Tensors& arguments) { return found(parse(text), arguments); }

}  // namespace

TEST_CASE("find_nonfinite: names the first op, its line and its operands' ranges", "[nonfinite]") {
  const std::string_view text = R"(graph @g(input %x: f32[3], input %y: f32[3]) {
  %1 = sub %x, %y
  %2 = log %1
  %3 = mul %2, %y
  %4 = sum %3 {dims=[0]}
  output "loss" %4
})";
  CHECK(found(text, {{"x", HostTensor::from({3}, {2, 1, 5})}, {"y", HostTensor::from({3}, {1, 2, 1})}}) ==
        "not finite: loss (1 NaN)\n"
        "  the first op whose result is not finite although its operands are, at test:3:\n"
        "    %2 = log %1                               : f32[3]\n"
        "    result: 1 NaN of 3 elements, the others 0 .. 1.38629; the first is nan at [1]\n"
        "    operand %1: -1 .. 4");
  CHECK(found(text, {{"x", HostTensor::from({3}, {2, 3, 5})}, {"y", HostTensor::from({3}, {1, 2, 1})}}) == "finite");
}

TEST_CASE("find_nonfinite: masks and other infinities made on purpose are not reported", "[nonfinite]") {
  const Tensors arguments{{"x", HostTensor::from({2, 2}, {1, 2, 3, 4})},
                          {"mask", HostTensor::from({2, 2}, {0, 1, 0, 0}, boolean)},
                          {"add", HostTensor::from({2, 2}, {0, -infinity, 0, 0})}};
  const std::string_view masked = R"(graph @g(input %x: f32[2, 2], input %mask: bool[2, 2], input %add: f32[2, 2]) {
  %1 = masked_fill %x, %mask {value=-inf}
  %2 = add %1, %add
  %3 = softmax %2 {dim=-1}
  %4 = constant {dtype=f32, shape=[], values=[-inf]}
  %5 = where %mask, %4, %x
  %6 = exp %5
  output "weights" %3
  output "other" %6
})";
  CHECK(found(masked, arguments) == "finite");
  // A result that is infinite on purpose is reported as such.
  const std::string_view scores = R"(graph @g(input %x: f32[2, 2], input %mask: bool[2, 2]) {
  %1 = masked_fill %x, %mask {value=-inf}
  %2 = add %1, %x
  output "scores" %2
})";
  CHECK_THAT(
      found(scores, {{"x", arguments.at("x")}, {"mask", arguments.at("mask")}}),
      StartsWith("not finite: scores (1 infinite)\n  the infinities are made on purpose at test:2:\n    %1 = ") &&
          !Contains("first op"));
}

TEST_CASE("find_nonfinite: a row that is masked as a whole is reported at its softmax", "[nonfinite]") {
  const Tensors arguments{{"x", HostTensor::from({2, 2}, {1, 2, 3, 4})},
                          {"mask", HostTensor::from({2, 2}, {0, 1, 1, 1}, boolean)}};
  const std::string text = found(R"(graph @g(input %x: f32[2, 2], input %mask: bool[2, 2]) {
  %1 = masked_fill %x, %mask {value=-inf}
  %2 = softmax %1 {dim=-1}
  output "weights" %2
})",
                                 arguments);
  CHECK_THAT(text, Contains("from infinities that are made on purpose, at test:3:\n    %2 = softmax") &&
                       Contains("operand %1: 3 infinite of 4 elements"));
}

TEST_CASE("find_nonfinite: an overflow before a mask with infinities is not taken for one on purpose",
          "[nonfinite]") {
  const Tensors arguments{{"x", HostTensor::from({2, 2}, {1e30, 2, 3, 4})},
                          {"mask", HostTensor::from({2, 2}, {0, 1, 0, 0}, boolean)}};
  const std::string text = found(R"(graph @g(input %x: f32[2, 2], input %mask: bool[2, 2]) {
  %1 = mul %x, %x
  %2 = masked_fill %1, %mask {value=-inf}
  %3 = softmax %2 {dim=-1}
  output "weights" %3
})",
                                 arguments);
  CHECK_THAT(text, Contains("although its operands are, at test:2:\n    %1 = mul"));
}

TEST_CASE("find_nonfinite: an overflow counts only if a result depends on it", "[nonfinite]") {
  const std::string_view harmless = R"(graph @g(input %x: f32[2]) {
  %1 = exp %x
  %2 = constant {dtype=f32, shape=[], values=[1.0]}
  %3 = div %2, %1
  output "y" %3
})";
  const Tensors large{{"x", HostTensor::from({2}, {1, 200})}};
  CHECK(found(harmless, large) == "finite");
  const std::string text = found(R"(graph @g(input %x: f32[2]) {
  %1 = exp %x
  %2 = sub %1, %1
  output "y" %2
})",
                                 large);
  CHECK_THAT(text, Contains("at test:2:\n    %1 = exp") && Contains("the first is inf at [1]"));
}

TEST_CASE("find_nonfinite: gradients, updates, and arguments that are NaN", "[nonfinite]") {
  const ir::Graph graph = differentiate(parse(R"(graph @g(parameter %w: f32[2]) {
  %1 = sqrt %w
  %2 = sum %1 {dims=[0]}
  output "loss" %2
})"),
                                        {});
  CHECK_THAT(found(graph, {{"w", HostTensor::from({2}, {0, 4})}}),
             StartsWith("not finite: grad.w (1 infinite)\n") && Contains("at gradient of test:2:"));
  const std::string_view update = R"(graph @g(input %x: f32[2], state %s: f32[2]) {
  %1 = div %x, %s
  update %s <- %1
})";
  CHECK_THAT(found(update, {{"x", HostTensor::from({2}, {1, 1})}, {"s", HostTensor::from({2}, {1, 0})}}),
             StartsWith("not finite: s (1 infinite)\n") && Contains("%1 = div"));
  CHECK(found(update, {{"x", HostTensor::from({2}, {1, not_a_number})}, {"s", HostTensor::from({2}, {1, 1})}}) ==
        "not finite: s (1 NaN)\n"
        "  the input %x holds them before the run: 1 NaN of 2 elements, the others 1 .. 1; the first is nan at [1]");
}

TEST_CASE("find_nonfinite: a cast that overflows, and complex values", "[nonfinite]") {
  CHECK_THAT(found("graph @g(input %x: f32[2]) { %1 = cast %x {dtype=f16} output \"y\" %1 }",
                   {{"x", HostTensor::from({2}, {1, 1e6})}}),
             Contains("%1 = cast") && Contains("operand %x: 1 .. 1e+06"));
  CHECK_THAT(found(R"(graph @g(input %x: f32[1, 2]) {
  %1 = view_as_complex %x
  %2 = mul %1, %1
  %3 = mul %2, %2
  %4 = view_as_real %3
  output "y" %4
})",
                   {{"x", HostTensor::from({1, 2}, {1e15, 1e15})}}),
             Contains("%3 = mul"));
}

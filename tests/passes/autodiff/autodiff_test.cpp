#include "passes/autodiff/autodiff.h"
#include "ir/support/tensors/complex_elements.h"

#include <catch2/catch.hpp>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/verifier.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/expand.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

namespace {

/// Returns the names of all float arguments of a graph.
std::vector<std::string> float_arguments(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.arguments())
    if (is_float(graph[id].type.dtype) || is_complex(graph[id].type.dtype)) names.push_back(graph[id].name);
  return names;
}

int count(const ir::Graph& graph, const Op& op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.op == &op; }));
}

}  // namespace

TEST_CASE("gradient nodes are ordinary nodes with the location of their forward op", "[autodiff]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[n], parameter %w: f64[n]) {
  %1 = mul %x, %w  loc("model.cpp":7)
  %2 = exp %1  loc("model.cpp":8)
  %3 = sum %2 {dims=[0]}  loc("model.cpp":9)
  output "loss" %3
})");
  const ir::Graph both = dce(differentiate(graph, {}));
  CHECK(text(both) == R"(graph @g(input %x: f64[n], parameter %w: f64[n]) {
  %1 = mul %x, %w : f64[n]
  %2 = exp %1 : f64[n]
  %3 = sum %2 {dims=[0]} : f64[]
  %4 = constant {dtype=f64, shape=[], values=[1.0]} : f64[]
  %5 = unsqueeze %4 {dim=0} : f64[1]
  %6 = expand %5 {shape=[n]} : f64[n] strided
  %7 = mul %6, %2 : f64[n]
  %8 = mul %7, %x : f64[n]
  output "loss" %3
  output "grad.w" %8
}
)");
  CHECK(both[both.outputs[1].value].loc.to_string() == "gradient of model.cpp:7");
}

TEST_CASE("gradients agree with finite differences on whole graphs", "[autodiff]") {
  for (const Specimen& specimen : specimens()) {
    INFO(specimen.name);
    const ir::Graph graph = parse(specimen.text);
    const ir::Graph both = differentiate(graph, {.outputs = {{"loss", ""}}, .wrt = float_arguments(graph)});
    const Tensors arguments = random_arguments(graph, specimen.dims, 3);
    check_gradients(graph, both, arguments, "loss");
    // Expanding before or after differentiation is equivalent.
    check_same_meaning(both, expand(both), arguments);
  }
}

TEST_CASE("gradients of several outputs take a cotangent for each non-scalar output", "[autodiff]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[2, n]) {
  %1 = sin %x
  %2 = sum %1 {dims=[0]}
  output "a" %2
})");
  const ir::Graph both = differentiate(graph, {.wrt = {"x"}});
  CHECK_THAT(text(both), Contains("input %cot.a: f64[n]") && Contains("output \"grad.x\""));
  check_gradients(graph, both, random_arguments(both, {{"n", 3}}), "a");
  const ir::Graph named = differentiate(graph, {.outputs = {{"a", "v"}}, .wrt = {"x"}, .keep_outputs = false});
  CHECK_THAT(text(named), Contains("input %v: f64[n]") && !Contains("output \"a\""));
}

TEST_CASE("gradients of several uses add up, and broadcast dims are summed", "[autodiff]") {
  const ir::Graph graph =
      parse(R"(graph @g(input %x: f64[n, 3], input %b: f64[3], input %c: f64[n, 1], input %s: f64[]) {
  %1 = mul %x, %x
  %2 = add %1, %b
  %3 = mul %2, %c
  %4 = add %3, %s
  %5 = mul %4, %x
  %6 = sub %5, %b
  %7 = sum %6 {dims=[0, 1]}
  output "loss" %7
})");
  const ir::Graph both = differentiate(graph, {.wrt = {"x", "b", "c", "s"}});
  check_gradients(graph, both, random_arguments(graph, {{"n", 4}}), "loss");
}

TEST_CASE("stop_gradient, integers and comparisons have no gradient", "[autodiff]") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f64, {3});
  const Value stopped = stop_gradient(mul(x, x));
  const Value loss = sum(where(gt(x, 0.0), mul(stopped, x), add(x, cast(cast(x, i64), f64))));
  const auto found = gradients(b, loss, std::nullopt, {{x}});
  b.output("grad", found[0]);
  Tensors arguments;
  arguments.emplace("x", HostTensor::from({3}, {1.5, -2, 3}, f64));
  CHECK(interpret(b.finish(), arguments).at("grad").to_string() == "f64[3] [2.25, 1, 9]");
}

TEST_CASE("straight_through has the value of one operand and the gradient of the other, to second order",
          "[autodiff]") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f64, {2}), v = b.argument(ops::input, "v", f64, {});
  const Value y = straight_through(expand(mul(v, v), {2}), mul(mul(x, x), x));
  b.output("y", y);
  const Gradients first = gradients(b, add(sum(mul(y, y)), v), std::nullopt, {{x, v}});
  const Gradients second = gradients(b, sum(first[0]), std::nullopt, {{x}});
  b.output("dx", first[0]);
  b.output("dv", first[1]);
  b.output("dxx", second[0]);
  const ir::Graph graph = b.finish();
  Tensors arguments;
  arguments.emplace("x", HostTensor::from({2}, {1, -2}, f64));
  arguments.emplace("v", HostTensor::from({}, {3}, f64));
  for (const ir::Graph& form : {graph, expand(graph)}) {
    const Tensors found = interpret(form, arguments);
    CHECK(found.at("y").to_string() == "f64[2] [9, 9]");
    CHECK(found.at("dx").to_string() == "f64[2] [54, 216]");   // 2 y 3 x^2
    CHECK(found.at("dv").to_string() == "f64[] 1");            // none through the value
    CHECK(found.at("dxx").to_string() == "f64[2] [126, 72]");  // 2 (3 x^2)^2 + 2 y 6 x
  }
}

TEST_CASE("second order: a Hessian-vector product matches differences of the gradient", "[autodiff]") {
  for (const Specimen& specimen : specimens()) {
    if (specimen.name == "split") continue;  // its maximum has a kink
    INFO(specimen.name);
    const ir::Graph forward = parse(specimen.text);
    const std::string wrt = float_arguments(forward)[0];
    const ir::Graph first = differentiate(forward, {.outputs = {{"loss", ""}}, .wrt = {wrt}, .keep_outputs = false});
    // Differentiates <grad, v> again.
    const ir::Graph second =
        differentiate(first, {.outputs = {{"grad." + wrt, "v"}}, .wrt = {wrt}, .keep_outputs = false});
    Tensors arguments = random_arguments(second, specimen.dims, 5);
    verify(second);
    const HostTensor product = interpret(second, arguments).at("grad." + wrt);
    const HostTensor weights = arguments.at("v");
    arguments.erase("v");
    CHECK(distance(finite_difference(first, arguments, "grad." + wrt, wrt, &weights), product) < 1e-5);
  }
}

TEST_CASE("only ops between wrt and the outputs are differentiated", "[autodiff]") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f64, {2, 3});
  const Value w1 = b.argument(ops::parameter, "w1", f64, {3, 3}), w2 = b.argument(ops::parameter, "w2", f64, {3, 3});
  const Value h = tanh(contract(x, w1, "ik,kj->ij"));
  const Value loss = sum(contract(h, w2, "ik,kj->ij"));
  const auto found = gradients(b, loss, std::nullopt, {{w2}});
  b.output("grad", found[0]);
  const ir::Graph graph = dce(b.finish());
  CHECK(count(graph, ops::contract) == 2);  // the first layer forward, and its only gradient
  CHECK(count(graph, ops::tanh) == 1);
}

TEST_CASE("gradients with respect to an intermediate value", "[autodiff]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f64[3]) {
  %h = exp %x
  %1 = mul %h, %h
  %2 = sum %1 {dims=[0]}
  output "loss" %2
})");
  const ir::Graph both = differentiate(graph, {.wrt = {"h", "x"}});
  const Tensors arguments = random_arguments(graph);
  const Tensors results = interpret(both, arguments);
  for (int i = 0; i < 3; ++i) {
    const double h = std::exp(arguments.at("x").get(i));
    CHECK(results.at("grad.h").get(i) == Approx(2 * h));
    CHECK(results.at("grad.x").get(i) == Approx(2 * h * h));
  }
}

TEST_CASE("complex values: the gradient of |z|^2 is 2z", "[autodiff]") {
  GraphBuilder b("g");
  const Value z = b.argument(ops::input, "z", c128, {2});
  const Value parts = view_as_real(mul(z, conj(z)));
  const Value loss = sum(slice(parts, -1, 0, 1));
  b.output("grad", gradients(b, loss, std::nullopt, {{z}})[0]);
  HostTensor at(c128, {2});
  set_complex(at, 0, {3, -1});
  set_complex(at, 1, {0.5, 2});
  const HostTensor found = interpret(b.finish(), {{"z", at}}).at("grad");
  CHECK(std::abs(get_complex(found, 0) - std::complex<double>(6, -2)) < 1e-12);
  CHECK(std::abs(get_complex(found, 1) - std::complex<double>(1, 4)) < 1e-12);
}

TEST_CASE("values that do not affect the loss get zero gradients, and are reported", "[autodiff]") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f64, {2}), y = b.argument(ops::input, "y", f64, {2});
  const Value loss = sum(mul(x, x));
  const auto found = gradients(b, loss, std::nullopt, {{x, y}}, Unused::zeros);
  CHECK(found.reached == std::vector<bool>{true, false});
  b.output("grad", found[1]);
  CHECK(interpret(b.finish(), {{"x", HostTensor(f64, {2})}, {"y", HostTensor(f64, {2})}}).at("grad").to_string() ==
        "f64[2] [0, 0]");
}

TEST_CASE("autodiff errors name the value, the rule and the remedy", "[autodiff]") {
  GraphBuilder b("g");
  const auto at = [&](int line) { return GraphBuilder::At(b, Location("model.cpp", line)); };
  const auto x = [&] {
    const auto a = at(1);
    return b.argument(ops::input, "x", f32, {2, 3});
  }();
  const auto y = [&] {
    const auto a = at(2);
    return b.argument(ops::input, "y", f32, {3});
  }();
  const auto ids = [&] {
    const auto a = at(3);
    return b.argument(ops::input, "ids", i64, {2});
  }();
  const auto square = [&] {
    const auto a = at(4);
    return mul(x, x);
  }();
  const auto loss = [&] {
    const auto a = at(5);
    return sum(square);
  }();
  const auto best = [&] {
    const auto a = at(6);
    return argmax(x, 1);
  }();
  const auto hard = [&] {
    const auto a = at(7);
    return sum(cast(best, f32));
  }();
  const auto error = [&](const Value& output, std::optional<Value> cotangent, const Value& wrt) {
    return error_text([&] { gradients(b, output, cotangent, {{wrt}}); });
  };
  CHECK(error(square, {}, x) ==
        "model.cpp:4: grad: the output %3 (f32[2, 3]) is not a real scalar, so it needs a cotangent  [grad_scalar]\n"
        "  give a cotangent of the same type, or take the sum or mean of the output first");
  CHECK_THAT(error(square, y, x),
             Contains("model.cpp:4: grad: the cotangent of %3 (f32[2, 3]) has the type f32[3]") &&
                 Contains("[grad_cotangent]"));
  CHECK_THAT(error(best, {}, x), Contains("model.cpp:6") && Contains("[grad_output_dtype]"));
  CHECK_THAT(error(loss, {}, ids),
             Contains("model.cpp:3") && Contains("ids (i64[2])") && Contains("[grad_wrt_dtype]"));
  CHECK_THAT(error(loss, {}, y),
             Contains("model.cpp:2: grad: there is no gradient with respect to y (f32[3]): no output "
                      "depends on it  [grad_wrt_unused]"));
  CHECK_THAT(error(hard, {}, x), Contains("only through values without a gradient: argmax at model.cpp:6 stops it") &&
                                     Contains("[grad_wrt_unused]"));
}

TEST_CASE("differentiate rejects names that are not in the graph", "[autodiff]") {
  const ir::Graph graph = parse("graph @g(input %x: f64[2]) {\n  %1 = sum %x {dims=[0]}\n  output \"loss\" %1\n}");
  CHECK(error_text([&] { differentiate(graph, {.outputs = {{"lost", ""}}}); }) ==
        "grad: there is no output named lost  [grad_unknown_name]\n  there are: loss");
  CHECK_THAT(error_text([&] { differentiate(graph, {.wrt = {"y"}}); }), Contains("[grad_unknown_name]"));
  CHECK_THAT(error_text([&] { differentiate(graph, {.outputs = {{"loss", "x"}}}); }), Contains("[argument_name]"));
}

#include <catch2/catch.hpp>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/printer.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/graphs/convolution_cases.h"
#include "tests/support/graphs/error_of_graph.h"
#include "tests/support/texts/test_data.h"

/// Convolutions, pooling and resizing against PyTorch (make_cases.py), and their errors.
using namespace lathe;
using Catch::Contains;
using lathe::test::ConvolutionCase;
using lathe::test::error_of_graph;

namespace {

double distance(const HostTensor& found, const HostTensor& wanted) {
  REQUIRE(found.shape() == wanted.shape());
  double most = 0;
  for (std::int64_t i = 0; i < found.numel(); ++i) most = std::max(most, std::abs(found.get(i) - wanted.get(i)));
  return most;
}

/// Running statistics start at 1.
Tensors with_states(const ir::Graph& graph, Tensors arguments) {
  for (const ir::Node& node : graph.nodes) {
    if (node.op != &ir::ops::state) continue;
    HostTensor ones(node.type.dtype, node.type.shape.evaluate({}));
    for (std::int64_t i = 0; i < ones.numel(); ++i) ones.set(i, 1);
    arguments.set(node.name, std::move(ones));
  }
  return arguments;
}

}  // namespace

TEST_CASE("convolutions, pooling and resizing equal PyTorch, with gradients", "[convolution]") {
  const auto file = SafetensorsFile::open(test::test_data("frontend/convolution/convolution_cases.safetensors"));
  for (const ConvolutionCase& each : test::convolution_cases()) {
    CAPTURE(each.name);
    const ir::Graph graph = each.graph(f64);
    const Tensors results = ir::interpret(graph, with_states(graph, each.arguments(f64)));
    CHECK(distance(results.at("y"), file.tensor(each.name + ".y")) < 1e-12);
    for (std::size_t k = 0; k < each.operands.size(); ++k)
      CHECK(distance(results.at(std::to_string(k) + ".grad"), file.tensor(each.name + "." + std::to_string(k))) <
            1e-12);
  }
}

TEST_CASE("convolutions of late-bound sizes have shapes in their terms", "[convolution]") {
  Graph g{"sizes"};
  const Dim B{"B"}, n{"n"}, h{"h"};
  const Tensor x = g.input("x", f32, {B, 3, n, Dim(2) * h}), w = g.input("w", f32, {Dim("O", 8), 3, 3, 3});
  CHECK(conv2d(x, w).shape().to_string() == "[B, O=8, n - 2, 2*h - 2]");
  CHECK(conv2d(x, w, {.padding = 1}).shape().to_string() == "[B, O=8, n, 2*h]");
  CHECK(conv2d(x, w, {.stride = {1, 2}, .padding = 1}).shape().to_string() == "[B, O=8, n, h]");
  CHECK(max_pool2d(x, {.size = {1, 2}}).shape().to_string() == "[B, 3, n, h]");
  CHECK(unfold(x, -1, {.size = 4, .step = 2, .dilation = 1}).shape().to_string() == "[B, 3, n, h - 1, 4]");
  CHECK_THAT(error_of_graph([&](Graph& wrong) {
               conv2d(wrong.input("x", f32, {B, 3, n, n}), wrong.input("w", f32, {8, 3, 3, 3}), {.stride = 2});
             }),
             Contains("the number of outputs along dim 2 of x: f32[B, 3, n, n] at a stride of 2 is not known to be "
                      "whole  [conv_size]") &&
                 Contains("such as 2 * n"));
}

TEST_CASE("batch_norm updates its running statistics, and evaluates with them", "[convolution]") {
  Graph g{"norm"};
  const nn::Module root;
  const nn::BatchNorm layer(root, "norm", 1);
  const Tensor x = g.input("x", f32, {4, 1});
  g.output("y", layer(x));
  g.output("evaluated", layer.evaluate(x));
  const ir::Graph graph = g.finish();
  Tensors arguments = with_states(graph, {{"x", HostTensor::from({4, 1}, {0, 2, 4, 6})}});
  arguments.set("norm.weight", HostTensor::from({1}, {1}));
  arguments.set("norm.bias", HostTensor::from({1}, {0}));
  const Tensors results = ir::interpret(graph, arguments);
  CHECK(results.at("norm.running_mean").get(0) == Approx(0.9 + 0.1 * 3));
  CHECK(results.at("norm.running_var").get(0) == Approx(0.9 + 0.1 * 20.0 / 3));
  CHECK(results.at("evaluated").get(3) == Approx(5 / std::sqrt(1 + 1e-5)));
  CHECK(results.at("y").get(3) == Approx(3 / std::sqrt(5.0)).epsilon(1e-4));
}

TEST_CASE("convolution layers declare their parameters, with PyTorch's initial values", "[convolution]") {
  const nn::Module root;
  const nn::Conv2d layer(root, "stem", Dim("in", 4), 6,
                         {.size = {3, 2}, .stride = 2, .padding = {1, 0}, .groups = 2});
  CHECK(root.parameter("stem.weight").shape() == Shape{6, 2, 3, 2});
  CHECK(root.parameter("stem.bias").shape() == Shape{6});
  const Tensors initial = root.initial_values(3);
  double most = 0;
  for (std::int64_t i = 0; i < initial.at("stem.weight").numel(); ++i)
    most = std::max(most, std::abs(initial.at("stem.weight").get(i)));
  CHECK(most <= 1 / std::sqrt(12.0));
  CHECK(most > 0.2);
  Graph g{"layers"};
  const Tensor y = layer(g.input("x", f32, {Dim("B"), Dim("in", 4), 9, 6}));
  CHECK(y.shape().to_string() == "[B, 6, 5, 3]");
  const nn::Conv1d plain(root, "plain", 6, 2, {.size = 3, .bias = false});
  CHECK(plain(y.view({Dim("B"), 6, 15})).shape().to_string() == "[B, 2, 13]");
  CHECK(root.parameters().size() == 3);
  CHECK_THAT(error_of_graph([&](Graph&) { nn::Conv1d(root, "odd", 3, 4, {.size = 3, .groups = 2}); }),
             Contains("3 and 4 channels do not divide into 2 groups  [conv_options]"));
}

TEST_CASE("errors of convolutions name the operands", "[convolution]") {
  const auto x = [](Graph& g) { return g.input("x", f32, {1, 4, 8}); };
  const auto w = [](Graph& g, const Shape& shape) { return g.input("w", f32, shape); };
  CHECK_THAT(error_of_graph([&](Graph& g) { conv2d(x(g), w(g, {2, 4, 3, 3})); }),
             Contains("conv2d: x has 3 dims, not 4  [conv_rank]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { conv1d(x(g), w(g, {2, 3, 3})); }),
             Contains("has 4 channels") && Contains("with 1 groups takes 3  [conv_channels]"));
  CHECK_THAT(
      error_of_graph([&](Graph& g) { conv1d(x(g), w(g, {2, 4, 9})); }),
      Contains("the kernel spans 9 elements of dim 2 of x: f32[1, 4, 8], which has 8") && Contains("[conv_size]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { conv1d(x(g), w(g, {2, 4, Dim("k")})); }), Contains("[conv_weight]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { conv1d(x(g), w(g, {2, 4, 3}), {.stride = {1, 2}}); }),
             Contains("stride has 2 numbers for 1 spatial dims  [conv_options]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { conv1d(x(g), w(g, {2, 4, 3}), g.input("b", f32, {3})); }),
             Contains("[conv_bias]") && Contains("it must be [2]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { conv1d(x(g), w(g, {3, 2, 3}), {.groups = 2}); }),
             Contains("[conv_channels]"));
  CHECK_THAT(
      error_of_graph([&](Graph& g) { conv_transpose1d(x(g), w(g, {4, 2, 3}), {.stride = 2, .output_padding = 2}); }),
      Contains("output_padding is 2, with stride 2") && Contains("[conv_options]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { conv_transpose1d(x(g), w(g, {Dim("C"), 2, 3}), {.groups = 2}); }),
             Contains("the C channels of the weight do not divide into 2 groups  [conv_options]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { conv_transpose1d(x(g), w(g, {6, 2, 3})); }), Contains("[conv_channels]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { max_pool1d(x(g), {.size = 2, .padding = 2}); }),
             Contains("give at most half the size of a window"));
  CHECK_THAT(error_of_graph([&](Graph& g) { interpolate(g.input("x", f32, {1, 1, Dim("n")}), {.size = 4}); }),
             Contains("dim 2 of x, n, is unknown  [interpolate_size]"));
  CHECK_THAT(error_of_graph([&](Graph& g) { group_norm(x(g), 3, g.input("s", f32, {4}), g.input("b", f32, {4})); }),
             Contains("the 4 channels do not divide into 3 groups  [group_norm]"));
}

TEST_CASE("the gradient of a convolution of an empty image is empty", "[convolution]") {
  Graph g{"empty"};
  const Tensor x = g.input("x", f64, {1, 2, 0, 3}), w = g.input("w", f64, {3, 2, 1, 1});
  const std::vector<Tensor> gradients = grad(conv2d(x, w, {.stride = 2, .padding = 1}).sum(), {x, w});
  g.output("x.grad", gradients[0]);
  g.output("w.grad", gradients[1]);
  const Tensors results =
      ir::interpret(g.finish(), {{"x", HostTensor(f64, {1, 2, 0, 3})}, {"w", HostTensor(f64, {3, 2, 1, 1})}});
  CHECK(results.at("x.grad").shape() == std::vector<std::int64_t>{1, 2, 0, 3});
  CHECK(results.at("w.grad").get(0) == 0);
}

TEST_CASE("the gradients of a convolution whose only window sees padding are zero", "[convolution]") {
  Graph g{"padding"};
  const Tensor x = g.input("x", f64, {1, 1, 1, 2}), w = g.input("w", f64, {1, 1, 1, 1});
  const Tensor y = conv2d(x, w, {.stride = {6, 1}, .padding = {2, 0}});  // of five padded rows, it reads the first
  const std::vector<Tensor> gradients = grad(y.sum(), {x, w});
  g.output("y", y);
  g.output("x.grad", gradients[0]);
  g.output("w.grad", gradients[1]);
  const Tensors results = ir::interpret(g.finish(), {{"x", HostTensor::from({1, 1, 1, 2}, {5, 6}, f64)},
                                                     {"w", HostTensor::from({1, 1, 1, 1}, {7}, f64)}});
  CHECK(results.at("y").same_bits(HostTensor(f64, {1, 1, 1, 2})));
  CHECK(results.at("x.grad").same_bits(HostTensor(f64, {1, 1, 1, 2})));
  CHECK(results.at("w.grad").same_bits(HostTensor(f64, {1, 1, 1, 1})));
}

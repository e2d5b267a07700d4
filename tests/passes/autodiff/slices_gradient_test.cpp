#include <catch2/catch.hpp>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/autodiff/autodiff.h"
#include "passes/autodiff/join_pads.h"
#include "passes/transforms/dce.h"
#include "tests/passes/support.h"

/// Gradients of many slices of one value.
using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

struct Range {
  int dim, start, stop, step = 1;
};

/// The sum of sin(i * slice i of %x). `complex`: %x holds the real and imaginary parts of the complex tensor that is
/// sliced.
ir::Graph loss_of(const Shape& shape, const std::vector<Range>& ranges, bool complex = false) {
  GraphBuilder b("g");
  const Value x = b.argument(ops::parameter, "x", f64, shape), whole = complex ? view_as_complex(x) : x;
  std::optional<Value> loss;
  double factor = 0;
  for (const Range& r : ranges) {
    const Value part = slice(whole, r.dim, r.start, r.stop, r.step);
    const Value term = sum(sin(mul(complex ? view_as_real(part) : part, ++factor)));
    loss = loss ? add(*loss, term) : term;
  }
  b.output("loss", *loss);
  return b.finish();
}

ir::Graph with_gradient(const ir::Graph& loss) { return dce(differentiate(loss, {})); }

/// Returns a range for each index of dim 1 of [2, count, 4].
std::vector<Range> steps_of_time(int count) {
  std::vector<Range> ranges;
  for (int t = 0; t < count; ++t) ranges.push_back({1, t, t + 1});
  return ranges;
}

/// Returns the number of elements that all nodes compute.
std::int64_t computed_elements(const ir::Graph& graph) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes)
    if (!node.operands.empty()) total += *node.type.shape.numel().value();
  return total;
}

int count(const ir::Graph& graph, const Op& op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.op == &op; }));
}

}  // namespace

TEST_CASE("slices: the gradient of time steps is linear in their number", "[autodiff]") {
  const auto elements = [](int steps) {
    return computed_elements(with_gradient(loss_of(Shape({Dim(2), Dim(steps), Dim(4)}), steps_of_time(steps))));
  };
  const std::int64_t some = elements(50), many = elements(400);
  CHECK(many <= 8 * some + some / 10);
}

TEST_CASE("slices: up to 8 gradients are padded and added, more are concatenated", "[autodiff]") {
  const auto gradient = [](int steps) {
    return with_gradient(loss_of(Shape({Dim(2), Dim(steps), Dim(4)}), steps_of_time(steps)));
  };
  CHECK(count(gradient(8), ops::concat) == 0);
  CHECK(count(gradient(8), ops::pad) == 8);
  for (const int steps : {9, 100}) {
    CHECK(count(gradient(steps), ops::concat) == 1);
    CHECK(count(gradient(steps), ops::pad) <= 1);  // empty
  }
}

TEST_CASE("slices: other uses of the value are added to the concatenated gradient", "[autodiff]") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::parameter, "x", f64, {20, 2});
  Value loss = sum(mul(x, x));
  for (int i = 0; i < 20; ++i) {
    loss = add(loss, mul(sum(exp(slice(x, 0, i, i + 1))), 1.0 + i));
    if (i % 4 == 0) loss = add(loss, sum(mul(x, sin(x))));
  }
  b.output("loss", loss);
  const ir::Graph graph = b.finish();
  check_gradients(graph, with_gradient(graph), random_arguments(graph), "loss");
}

TEST_CASE("slices: the concatenated gradient has one concat per layer of overlaps", "[autodiff]") {
  GraphBuilder b("g");
  std::vector<Value> pads;
  const auto add_pad = [&](const char* name, int first, int size) {
    pads.push_back(pad(b.argument(ops::input, name, f32, {size}), 0, first, 12 - first - size));
    CHECK(is_known_pad(pads.back()));
  };
  add_pad("last", 9, 2);
  add_pad("first", 1, 2);
  add_pad("also_first", 1, 2);
  add_pad("next", 3, 3);
  add_pad("over", 2, 4);
  b.output("sum", sum_of_known_pads(pads));
  CHECK(text(dce(b.finish())) == R"(graph @g(
  input %last: f32[2],
  input %first: f32[2],
  input %also_first: f32[2],
  input %next: f32[3],
  input %over: f32[4]
) {
  %1 = add %first, %also_first : f32[2]
  %2 = concat %1, %next {dim=0} : f32[5]
  %3 = pad %2 {dim=0, low=1, high=6} : f32[12]
  %4 = constant {dtype=f32, shape=[], values=[0.0]} : f32[]
  %5 = expand %4 {shape=[3]} : f32[3] strided
  %6 = concat %over, %5, %last {dim=0} : f32[9]
  %7 = pad %6 {dim=0, low=2, high=1} : f32[12]
  %8 = add %3, %7 : f32[12]
  output "sum" %8
}
)");
}

TEST_CASE("slices: a pad at an unknown index or of unknown size is not concatenated", "[autodiff]") {
  GraphBuilder b("g");
  const Dim n("n");
  const Value some = b.argument(ops::input, "some", f32, {3}), unknown = b.argument(ops::input, "unknown", f32, {n});
  CHECK(is_known_pad(pad(some, 0, 2, n)));
  CHECK_FALSE(is_known_pad(pad(some, 0, n, 2)));
  CHECK_FALSE(is_known_pad(pad(unknown, 0, 2, 2)));
  CHECK_FALSE(is_known_pad(pad(slice(some, 0, 1, 1), 0, 1, 2)));
  CHECK_FALSE(is_known_pad(some));
}

TEST_CASE("slices: gradients match finite differences, with any overlap", "[autodiff]") {
  std::vector<Range> ranges = steps_of_time(12);                                     // all indices
  for (int i = 0; i < 9; ++i) ranges.push_back({1, i, i + 4});                       // a sliding window
  for (int i = 0; i < 9; ++i) ranges.push_back({1, 5, 8});                           // the same place
  for (int i = 0; i < 9; ++i) ranges.push_back({1, i % 3, 12, 2 + i % 3});           // strided
  for (int i = 0; i < 9; ++i) ranges.push_back({i % 3, 1, 2});                       // several dims
  for (int i = 0; i < 9; ++i) ranges.push_back({-2, 3 * (i % 4), 3 * (i % 4) + 2});  // gaps
  ranges.push_back({1, 0, 12});
  ranges.push_back({1, 4, 4});
  for (const Dim& rows : {Dim(2), Dim("n")})
    for (const Dim& columns : {Dim(12), Dim("m")}) {
      const ir::Graph graph = loss_of(Shape({rows, columns, Dim(3)}), ranges);
      INFO(text(graph));
      check_gradients(graph, with_gradient(graph), random_arguments(graph, {{"n", 3}, {"m", 13}}), "loss");
    }
}

TEST_CASE("slices: gradients of complex values are concatenated too", "[autodiff]") {
  const ir::Graph graph = loss_of(Shape({Dim(2), Dim(30), Dim(2)}), steps_of_time(30), true);
  const ir::Graph both = with_gradient(graph);
  CHECK(count(both, ops::concat) == 1);
  check_gradients(graph, both, random_arguments(graph), "loss");
}

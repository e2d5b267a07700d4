#include <catch2/catch.hpp>

#include "ir/support/tensors/complex_elements.h"
#include "ir/tensor/builder.h"
#include "passes/autodiff/autodiff.h"
#include "passes/compile/compilation.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/expand.h"
#include "passes/transforms/rebuild.h"
#include "tests/ops/own_op.h"
#include "tests/passes/support.h"
#include "tests/support/tensors/diagonal.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

/// Returns a complex tensor as the pairs that decompose_complex binds instead.
HostTensor as_pairs(const HostTensor& tensor) {
  if (!is_complex(tensor.dtype())) return tensor;
  auto sizes = tensor.shape();
  sizes.push_back(2);
  HostTensor pairs(real_part(tensor.dtype()), sizes);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    pairs.set(2 * i, get_complex(tensor, i).real());
    pairs.set(2 * i + 1, get_complex(tensor, i).imag());
  }
  return pairs;
}

Tensors as_pairs(const Tensors& tensors) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) result.emplace(name, as_pairs(tensor));
  return result;
}

/// Returns a graph of one op, from one of its samples.
ir::Graph sample_graph(const Op& op, const Sample& sample) {
  GraphBuilder b("sample");
  std::vector<Value> operands;
  for (const SampleOperand& operand : sample.operands) {
    const Shape shape(std::vector<Dim>(operand.sizes.begin(), operand.sizes.end()));
    const std::string name = "x" + std::to_string(operands.size());
    operands.push_back(b.argument(*find_op("input"), name, operand.dtype, shape));
  }
  b.output("y", b.add(op, operands, sample.attrs));
  return b.finish();
}

Tensors sample_arguments(const Sample& sample, unsigned seed) {
  Tensors result;
  std::uint64_t bits = seed;
  for (const SampleOperand& operand : sample.operands) {
    HostTensor tensor(operand.dtype, operand.sizes);
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      const double value =
          operand.low + (operand.high - operand.low) * static_cast<double>(bits >> 40) / double(1 << 24);
      tensor.set(i, is_float(operand.dtype) || is_complex(operand.dtype) ? value : std::round(value));
    }
    ir::test::add_to_diagonal(tensor, operand.diagonal);
    result.emplace("x" + std::to_string(result.size()), std::move(tensor));
  }
  return result;
}

/// Runs a pass and compares results with the interpreter; complex ones are compared as pairs.
void check_pass(const Pass& pass, const ir::Graph& graph, const Tensors& arguments) {
  INFO(pass.name << " of\n" << text(graph));
  const ir::Graph after = pass.run(graph);
  INFO("gives\n" << text(after));
  if (pass.name != "decompose-complex") {
    check_same_meaning(graph, after, arguments);
    return;
  }
  InterpretOptions options;
  options.round = false;
  const Tensors expected = as_pairs(interpret(graph, arguments, options));
  const Tensors found = interpret(after, as_pairs(arguments), options);
  for (const auto& [name, value] : expected) CHECK(distance(value, found.at(name)) <= 1e-12);
  for (const Node& node : after.nodes) CHECK_FALSE(is_complex(node.type.dtype));
}

}  // namespace

TEST_CASE("every pass preserves the semantics of every graph, and of its gradient", "[passes]") {
  for (const Specimen& specimen : specimens()) {
    const ir::Graph forward = parse(specimen.text);
    const ir::Graph both = differentiate(forward, {.outputs = {{"loss", ""}}, .unused = Unused::zeros});
    for (const ir::Graph& graph : {forward, both, expand(both)})
      for (const Pass& pass : all_passes()) check_pass(pass, graph, random_arguments(graph, specimen.dims, 11));
  }
}

TEST_CASE("the default pipeline preserves semantics and leaves only real primitives", "[passes]") {
  for (const Specimen& specimen : specimens()) {
    INFO(specimen.name);
    const ir::Graph graph = differentiate(parse(specimen.text), {.outputs = {{"loss", ""}}, .unused = Unused::zeros});
    const Tensors arguments = random_arguments(graph, specimen.dims, 12);
    const ir::Graph after = run_pipeline(graph, default_pipeline()).graph;
    for (const Node& node : after.nodes) {
      CHECK_FALSE(node.op->as<Composite>());
      CHECK_FALSE(is_complex(node.type.dtype));
    }
    const Tensors expected = as_pairs(interpret(graph, arguments)), found = interpret(after, as_pairs(arguments));
    for (const auto& [name, value] : expected) CHECK(distance(value, found.at(name)) <= 1e-12);
    CHECK(run_pipeline(after, default_pipeline()).graph.size() == after.size());
  }
}

TEST_CASE("every pass preserves the semantics of every sample of every op", "[passes]") {
  for (const Op* op : sampled_ops()) {
    for (const Sample& sample : samples_of(*op)) {
      const ir::Graph graph = sample_graph(*op, sample);
      const Tensors arguments = sample_arguments(sample, 7);
      for (const Pass& pass : all_passes()) check_pass(pass, graph, arguments);
    }
  }
}

TEST_CASE("passes keep the arguments, in order", "[passes]") {
  const ir::Graph graph = parse(R"(graph @g(input %unused: f32[n], parameter %w: f32[2], state %s: i64[2]) {
  %1 = add %w, %w
  output "y" %1
})");
  for (const Pass& pass : all_passes()) {
    const ir::Graph after = pass.run(graph);
    REQUIRE(after.arguments().size() == 3);
    CHECK(after[after.arguments()[0]].name == "unused");
    CHECK(after[after.arguments()[2]].name == "s");
  }
}

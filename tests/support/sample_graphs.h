#pragma once

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "passes/autodiff/autodiff.h"
#include "tests/ops/samples.h"

/// The samples of every op as graphs with their gradients, for tests of whatever runs graphs.
namespace lathe::ir::test {

inline bool differentiable(DType dtype) { return is_float(dtype) || is_complex(dtype); }

/// The sample as a graph with the output "y" and, where it has gradients, "grad.0" ... of sum(w * (y + y * y / 2)).
inline Graph graph_with_gradients(const Op& op, const Sample& sample, const SampleOptions& options) {
  GraphBuilder builder("sample");
  const GraphBuilder::At at(builder, Location("sample.cpp", 1));
  const auto operands = sample_operands(builder, sample, options);
  const Value y = builder.add(op, operands, sample.attrs);
  builder.output("y", y);
  std::vector<Value> wrt;
  for (const Value& operand : operands)
    if (differentiable(operand.dtype())) wrt.push_back(operand);
  if (std::holds_alternative<NotDifferentiable>(op.gradient) || !differentiable(y.dtype()) || wrt.empty())
    return builder.finish();
  const Value real = is_complex(y.dtype()) ? view_as_real(y) : y;
  const Value w = builder.argument(ops::input, "w", real.dtype(), real.shape());
  const Value weighed = mul(w, add(real, mul(mul(real, real), 0.5)));
  const Value loss = weighed.rank() == 0 ? weighed : sum(weighed);
  const auto found = gradients(builder, loss, std::nullopt, wrt, Unused::zeros).values;
  for (std::size_t i = 0; i < found.size(); ++i) builder.output(fmt::format("grad.{}", i), found[i]);
  return builder.finish();
}

/// The sample with its f64 operands in another float dtype; nothing where it has none.
inline std::optional<Sample> in_dtype(const Sample& sample, DType dtype) {
  Sample narrow = sample;
  bool floats = dtype == f64;
  for (SampleOperand& operand : narrow.operands) {
    if (is_complex(operand.dtype) && dtype != f64) return std::nullopt;
    if (operand.dtype != f64) continue;
    operand.dtype = dtype;
    floats = true;
  }
  return floats ? std::optional(narrow) : std::nullopt;
}

/// The sample with its operands in sizes that `sizes` gives for those above 1.
inline Sample resized(Sample sample, const std::function<std::int64_t(std::int64_t)>& sizes) {
  for (SampleOperand& operand : sample.operands) {
    const bool random_state = operand.dtype == i64 && operand.sizes == std::vector<std::int64_t>{2};
    for (std::int64_t& size : operand.sizes)
      if (size > 1 && !random_state) size = sizes(size);
  }
  return sample;
}

/// Values for the arguments of a sample's graph whose unknown dims n2, n3, ... are those of `sizes`.
inline Tensors sample_arguments(const Graph& graph, const Sample& sample, Layout layout, const DimBindings& sizes) {
  Tensors arguments = arguments_of(random_operands(sample), layout);
  if (const ValueId w = graph.find_argument("w"); w.valid()) {
    std::mt19937 generator(7);
    const TensorType& type = graph[w].type;
    arguments.emplace("w", random_tensor({type.shape.evaluate(sizes), type.dtype, 0.5, 1.5}, generator));
  }
  return arguments;
}

/// The graph of every sample in this dtype, with its gradients, where it can be built at all (tests/ops says which
/// may be refused).
template <class F>
int for_each_graph(DType dtype, const SampleOptions& options, F f) {
  int seen = 0;
  for_each_sample([&](const Op& op, const Sample& given, const std::string& what) {
    const auto sample = in_dtype(given, dtype);
    if (!sample) return;
    CAPTURE(what, name(dtype), options.layout, options.sizes);
    Graph graph;
    try {
      graph = graph_with_gradients(op, *sample, options);
    } catch (const UserError&) {
      return;
    }
    ++seen;
    f(graph, *sample);
  });
  return seen;
}

/// The sizes of unknown dims that were a sample's sizes: a few more than a vector, one, none, what they were.
inline std::int64_t more(std::int64_t size) { return size == 2 ? 5 : size == 3 ? 17 : size + 16; }
inline std::int64_t one(std::int64_t) { return 1; }
inline std::int64_t none(std::int64_t) { return 0; }
inline std::int64_t same(std::int64_t size) { return size; }

}  // namespace lathe::ir::test

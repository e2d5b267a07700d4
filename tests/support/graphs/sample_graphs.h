#pragma once

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "passes/autodiff/autodiff.h"
#include "tests/ops/samples.h"

/// The samples of every op as graphs with gradients, for tests of everything that runs graphs.
namespace lathe::ir::test {

inline bool differentiable(DType dtype) { return is_float(dtype) || is_complex(dtype); }

/// Returns the sample as a graph with the output "y" and, if it has gradients, "grad.0" ... of sum(w * (y + y * y /
/// 2)).
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

/// Returns the sample with its f64 operands in another float dtype; nothing if it has none.
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

/// Returns the sample with sizes above 1 replaced by `sizes`.
inline Sample resized(Sample sample, const std::function<std::int64_t(std::int64_t)>& sizes) {
  for (SampleOperand& operand : sample.operands) {
    const bool random_state = operand.dtype == i64 && operand.sizes == std::vector<std::int64_t>{2};
    for (std::int64_t& size : operand.sizes)
      if (size > 1 && !random_state) size = sizes(size);
  }
  return sample;
}

/// Returns values for the arguments of a sample's graph whose symbolic dims n2, n3, ... have these `sizes`.
inline Tensors sample_arguments(const Graph& graph, const Sample& sample, Layout layout, const DimBindings& sizes) {
  Tensors arguments = arguments_of(random_operands(sample), layout);
  if (const ValueId w = graph.find_argument("w"); w.valid()) {
    std::mt19937 generator(7);
    const TensorType& type = graph[w].type;
    arguments.emplace("w", random_tensor({type.shape.evaluate(sizes), type.dtype, 0.5, 1.5}, generator));
  }
  return arguments;
}

/// Calls f with the graph of every sample in this dtype, with its gradients, if it can be built (tests/ops decides
/// which ones may be rejected).
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

/// Sizes of symbolic dims, by the sample's sizes: more than a vector, one, none, unchanged.
inline std::int64_t more(std::int64_t size) { return size == 2 ? 5 : size == 3 ? 17 : size + 16; }
inline std::int64_t one(std::int64_t) { return 1; }
inline std::int64_t none(std::int64_t) { return 0; }
inline std::int64_t same(std::int64_t size) { return size; }

}  // namespace lathe::ir::test

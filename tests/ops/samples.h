#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/printer.h"
#include "tests/ops/own_op.h"
#include "tests/support/tensors/diagonal.h"
#include "tests/support/tensors/distance.h"

/// Graphs and tensors for the samples in every op's record.
namespace lathe::ir::test {

/// Memory layout of a sample's operands. `strided`: each one is a view of an input with other strides, with the last
/// two dims swapped, or every second element of a vector.
enum class Layout { contiguous, strided };
/// Whether sizes above 1 are numbers or symbolic dims, one per size: 3 becomes n3.
enum class Sizes { numbers, unknowns };

struct SampleOptions {
  Layout layout = Layout::contiguous;
  Sizes sizes = Sizes::numbers;
};

/// "cross_entropy, sample 2: f64[2, 8, 3], i64[2, 8] {ignore_index=1}"
inline std::string describe(const Op& op, std::size_t index, const Sample& sample) {
  std::string text = fmt::format("{}, sample {}:", op.name.value, index);
  for (const SampleOperand& operand : sample.operands)
    text += fmt::format(" {}{}", name(operand.dtype), shape_to_string(operand.sizes));
  for (const auto& [key, value] : sample.attrs.entries()) text += fmt::format(" {}={}", key, print_attribute(value));
  return text;
}

inline HostTensor random_tensor(const SampleOperand& operand, std::mt19937& generator) {
  HostTensor result(operand.dtype, operand.sizes);
  std::uniform_real_distribution<double> real(operand.low, operand.high);
  std::uniform_int_distribution<std::int64_t> whole(static_cast<std::int64_t>(std::ceil(operand.low)),
                                                    static_cast<std::int64_t>(std::floor(operand.high)));
  std::bernoulli_distribution coin;
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    if (is_complex(operand.dtype))
      set_complex(result, i, {real(generator), real(generator)});
    else if (operand.dtype == boolean)
      result.set(i, coin(generator));
    else if (is_integer(operand.dtype) || is_byte(operand.dtype))
      result.set_int(i, whole(generator));
    else
      result.set(i, real(generator));
  }
  add_to_diagonal(result, operand.diagonal);
  return result;
}

/// Returns values for the operands of a sample, deterministic by seed.
inline std::vector<HostTensor> random_operands(const Sample& sample, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::vector<HostTensor> tensors;
  for (const SampleOperand& operand : sample.operands) tensors.push_back(random_tensor(operand, generator));
  return tensors;
}

inline void copy_element(const HostTensor& from, std::int64_t i, HostTensor& to, std::int64_t j) {
  if (is_complex(from.dtype()))
    set_complex(to, j, get_complex(from, i));
  else if (is_float(from.dtype()))
    to.set(j, from.get(i));
  else
    to.set_int(j, from.get_int(i));
}

/// Returns the values to store in the input of a strided operand.
inline HostTensor stored(const HostTensor& values, Layout layout) {
  std::vector<std::int64_t> sizes = values.shape();
  const std::size_t rank = sizes.size();
  if (layout == Layout::contiguous || rank == 0) return values;
  if (rank == 1) {
    HostTensor result(values.dtype(), {2 * sizes[0]});
    for (std::int64_t i = 0; i < values.numel(); ++i) copy_element(values, i, result, 2 * i);
    return result;
  }
  const std::int64_t rows = sizes[rank - 2], columns = sizes[rank - 1], matrix = rows * columns;
  std::swap(sizes[rank - 2], sizes[rank - 1]);
  HostTensor result(values.dtype(), sizes);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const std::int64_t row = i % matrix / columns, column = i % columns;
    copy_element(values, i, result, i / matrix * matrix + column * rows + row);
  }
  return result;
}

inline Shape sample_shape(const SampleOperand& operand, const SampleOptions& options) {
  Shape shape;
  const bool random_state = operand.dtype == i64 && operand.sizes == std::vector<std::int64_t>{2};
  for (const std::int64_t size : operand.sizes)
    shape.push_back(options.sizes == Sizes::unknowns && size > 1 && !random_state ? Dim(fmt::format("n{}", size))
                                                                                  : Dim(size));
  return shape;
}

/// Returns the sizes of the symbolic dims that a sample's operands may have.
inline DimBindings unknown_sizes(const Sample& sample) {
  DimBindings sizes;
  for (const SampleOperand& operand : sample.operands)
    for (const std::int64_t size : operand.sizes) sizes[fmt::format("n{}", size)] = size;
  return sizes;
}

/// Declares input x<i> for an operand, and returns the operand.
inline Value sample_operand(GraphBuilder& builder, const SampleOperand& operand, std::size_t i,
                            const SampleOptions& options) {
  Shape shape = sample_shape(operand, options);
  const int rank = shape.rank();
  const std::string name = fmt::format("x{}", i);
  if (options.layout == Layout::contiguous || rank == 0)
    return builder.argument(ops::input, name, operand.dtype, shape);
  if (rank == 1) {
    const Value wide = builder.argument(ops::input, name, operand.dtype, {shape[0] * 2});
    return slice(wide, 0, 0, shape[0] * 2, 2);
  }
  const Dim rows = shape[rank - 2];
  shape.set(rank - 2, shape[rank - 1]);
  shape.set(rank - 1, rows);
  return transpose(builder.argument(ops::input, name, operand.dtype, shape), -2, -1);
}

inline std::vector<Value> sample_operands(GraphBuilder& builder, const Sample& sample,
                                          const SampleOptions& options = {}) {
  std::vector<Value> operands;
  for (std::size_t i = 0; i < sample.operands.size(); ++i)
    operands.push_back(sample_operand(builder, sample.operands[i], i, options));
  return operands;
}

/// Returns the sample as a graph with the output "y".
inline Graph sample_graph(const Op& op, const Sample& sample, const SampleOptions& options = {}) {
  GraphBuilder builder("sample");
  const GraphBuilder::At at(builder, Location("sample.cpp", 1));
  const auto operands = sample_operands(builder, sample, options);
  builder.output("y", builder.add(op, operands, sample.attrs));
  return builder.finish();
}

inline Tensors arguments_of(const std::vector<HostTensor>& operands, Layout layout = Layout::contiguous) {
  Tensors tensors;
  for (std::size_t i = 0; i < operands.size(); ++i)
    tensors.emplace(fmt::format("x{}", i), stored(operands[i], layout));
  return tensors;
}

/// Calls f(op, sample, description) for every sample of every sampled op.
template <class F>
void for_each_sample(F f) {
  for (const Op* op : sampled_ops()) {
    const auto samples = samples_of(*op);
    for (std::size_t i = 0; i < samples.size(); ++i) f(*op, samples[i], describe(*op, i, samples[i]));
  }
}

}  // namespace lathe::ir::test

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/support/texts/error_label.h"

namespace lathe::test {

/// Builds a graph along with the tensors of its inputs, and interprets any of its values.
class Interpreted {
 public:
  Interpreted() : builder("test") {}

  /// Declares an input with these values.
  ir::Value input(std::vector<std::int64_t> sizes, const std::vector<double>& values, DType dtype = f64) {
    return input(HostTensor::from(std::move(sizes), values, dtype));
  }
  ir::Value input(const HostTensor& tensor) {
    Shape shape;
    for (const std::int64_t size : tensor.shape()) shape.push_back(Dim(size));
    return input(tensor, shape);
  }
  /// Declares an input with named dims.
  ir::Value input(const HostTensor& tensor, const Shape& shape) {
    const std::string name = "x" + std::to_string(tensors.size());
    tensors.emplace(name, tensor);
    return builder.argument(ir::ops::input, name, tensor.dtype(), shape);
  }

  HostTensor run(const ir::Value& value, const ir::InterpretOptions& options = {}) const {
    const ir::ValueId id = value.id();
    return ir::interpret_values(builder.graph(), tensors, std::span(&id, 1), options).front();
  }
  /// Returns the elements of a value in row-major order.
  std::vector<double> numbers(const ir::Value& value) const {
    const HostTensor tensor = run(value);
    std::vector<double> result;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) result.push_back(tensor.get(i));
    return result;
  }
  std::vector<std::complex<double>> complexes(const ir::Value& value) const {
    const HostTensor tensor = run(value);
    std::vector<std::complex<double>> result;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) result.push_back(get_complex(tensor, i));
    return result;
  }

  ir::GraphBuilder builder;
  Tensors tensors;
};

}  // namespace lathe::test

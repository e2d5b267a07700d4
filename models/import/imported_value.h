#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "models/import/dim_tensor.h"
#include "models/import/size_multiple.h"

namespace lathe::importing {

/// A value of a source graph: a tensor of the Lathe graph, numbers or dims that are known at import, or both. A known
/// value becomes a tensor of the graph when an op first needs one, so shape computations leave no ops. Copies share
/// their state.
class Value {
 public:
  /// An optional operand that is not given.
  Value() = default;
  /// A tensor that is computed at run time.
  Value(const Tensor& tensor);  // NOLINT(google-explicit-constructor)
  /// Sizes that are computed at import.
  Value(DimTensor dims);  // NOLINT(google-explicit-constructor)
  static Value constant(HostTensor numbers);
  /// A parameter or state, which `declare` adds to the graph at its first use.
  static Value stored(HostTensor numbers, std::function<Tensor()> declare);

  bool is_absent() const { return !state_; }
  DType dtype() const;
  Shape shape() const;
  int rank() const { return shape().rank(); }

  /// Returns the tensor of a value that is computed at run time; null for other values.
  const Tensor* computed() const;
  /// Returns the numbers of a constant; null for other values.
  const HostTensor* constant() const;
  /// Returns the numbers of a constant, or the initial numbers of a parameter or state; null for other values.
  const HostTensor* numbers() const;
  /// Returns the elements of integers and bools that are known at import.
  std::optional<DimTensor> dims() const;
  /// Returns the value as a tensor of the graph, which it joins at the first call. In the body of a loop, a value
  /// from around the loop is returned as it is, and a constant joins the body.
  Tensor in(const Graph& graph) const;

  /// A multiple that a dim must be so that a value that is computed at run time is known at import instead.
  std::optional<NeededMultiple> needed_multiple() const;
  void set_needed_multiple(const NeededMultiple& needed);

 private:
  struct State;
  explicit Value(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// The results of a node, in order.
using Results = std::vector<Value>;

/// Returns numbers as a constant of the graph.
Tensor literal(const Graph& graph, const HostTensor& numbers);

}  // namespace lathe::importing

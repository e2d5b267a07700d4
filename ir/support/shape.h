#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "ir/support/containers/shared_list.h"
#include "ir/support/dim.h"
#include "ir/support/dtype.h"

namespace lathe {

/// The sizes of a tensor, outermost first. Copies share storage.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  const Dim& operator[](int i) const { return dims_[i]; }
  void set(int i, Dim dim) { dims_.set(static_cast<std::size_t>(i), std::move(dim)); }
  const std::vector<Dim>& dims() const { return dims_.items(); }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void push_back(Dim dim) { dims_.push_back(std::move(dim)); }

  /// Returns the product of the dims; 1 for a scalar.
  Dim numel() const;
  std::vector<std::int64_t> evaluate(const DimBindings& bindings) const;
  bool operator==(const Shape&) const = default;
  /// Returns whether both share one list in memory; then they are equal, including names.
  bool is_same(const Shape& other) const { return dims_.is_same(other.dims_); }
  /// Returns whether sizes and display names are equal.
  bool looks_like(const Shape& other) const;
  /// Returns "[nbatches, n_seq, d_model=512]".
  std::string to_string() const;

 private:
  SharedList<Dim> dims_;
};

namespace ir {

/// The type of a value: dtype, shape and element strides. transpose, expand and slice change strides without copying;
/// every op that computes returns a contiguous (row-major) result.
struct TensorType {
  DType dtype = f32;
  Shape shape;
  SharedList<Dim> strides;  ///< in elements, one per dim; 0 for an expanded dim

  /// Returns the type with row-major strides for `shape`.
  static TensorType contiguous(DType dtype, Shape shape);

  int rank() const { return shape.rank(); }
  /// Returns whether the layout is row-major, ignoring dims of size 1. A stride that cannot be decided is not
  /// contiguous.
  bool is_contiguous() const;
  /// Returns whether the strides equal row_major_strides(), including dims of size 1.
  bool is_row_major() const;
  /// Returns "f32[nbatches, n_seq, d_model=512]".
  std::string to_string() const;
  bool operator==(const TensorType&) const = default;
  /// Returns whether the types and display names are equal.
  bool looks_like(const TensorType& other) const {
    return dtype == other.dtype && shape.looks_like(other.shape) && strides == other.strides;
  }
};

std::vector<Dim> row_major_strides(const Shape& shape);

}  // namespace ir
}  // namespace lathe

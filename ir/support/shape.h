#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "ir/support/containers/shared_list.h"
#include "ir/support/dim.h"
#include "ir/support/dtype.h"

namespace lathe {

/// The sizes of a tensor, outermost first. Copies share them.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  const Dim& operator[](int i) const { return dims_[static_cast<std::size_t>(i)]; }
  void set(int i, Dim dim) { dims_.set(static_cast<std::size_t>(i), std::move(dim)); }
  const std::vector<Dim>& dims() const { return dims_.items(); }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void push_back(Dim dim) { dims_.push_back(std::move(dim)); }

  /// The product of the dims; 1 for a scalar.
  Dim numel() const;
  std::vector<std::int64_t> evaluate(const DimBindings& bindings) const;
  bool operator==(const Shape&) const = default;
  /// Whether both are one list in memory: equal then, names included.
  bool is_same(const Shape& other) const { return dims_.is_same(other.dims_); }
  /// Equal, names of dims included.
  bool looks_like(const Shape& other) const;
  /// "[nbatches, n_seq, d_model=512]".
  std::string to_string() const;

 private:
  SharedList<Dim> dims_;
};

namespace ir {

/// The type of a value: dtype, shape and element strides. transpose, expand and slice change strides and copy
/// nothing; every op that computes gives a contiguous (row-major) result.
struct TensorType {
  DType dtype = f32;
  Shape shape;
  SharedList<Dim> strides;  ///< in elements, one a dim; 0 where a dim is expanded

  /// Row-major strides for `shape`.
  static TensorType contiguous(DType dtype, Shape shape);

  int rank() const { return shape.rank(); }
  /// Row-major, dims of size 1 aside. A stride that cannot be decided counts as not contiguous.
  bool is_contiguous() const;
  /// Whether the strides are those of row_major_strides(), of dims of size 1 too.
  bool is_row_major() const;
  /// "f32[nbatches, n_seq, d_model=512]".
  std::string to_string() const;
  bool operator==(const TensorType&) const = default;
  /// Equal, names of dims included.
  bool looks_like(const TensorType& other) const {
    return dtype == other.dtype && shape.looks_like(other.shape) && strides == other.strides;
  }
};

std::vector<Dim> row_major_strides(const Shape& shape);

}  // namespace ir
}  // namespace lathe

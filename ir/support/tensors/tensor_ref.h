#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// A read-only, non-owning view of an array in the caller's memory.
struct ConstTensorRef {
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;  ///< address of element [0, .., 0]
  /// Strides in elements; may be negative or 0. Empty: row-major.
  std::vector<std::int64_t> strides = {};

  ConstTensorRef() = default;
  ConstTensorRef(DType element, std::vector<std::int64_t> sizes, const void* first,
                 std::vector<std::int64_t> steps = {})
      : dtype(element),
        shape(std::move(sizes)),
        data(static_cast<const std::byte*>(first)),
        strides(std::move(steps)) {}
  ConstTensorRef(const HostTensor& t)  // NOLINT(google-explicit-constructor)
      : ConstTensorRef(t.dtype(), t.shape(), t.data()) {}
  ConstTensorRef(const HostTensor&&) = delete;  ///< a temporary's memory would be freed before use
};

/// Same, writable.
struct TensorRef {
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  std::byte* data = nullptr;
  std::vector<std::int64_t> strides = {};

  TensorRef() = default;
  TensorRef(DType element, std::vector<std::int64_t> sizes, void* first, std::vector<std::int64_t> steps = {})
      : dtype(element), shape(std::move(sizes)), data(static_cast<std::byte*>(first)), strides(std::move(steps)) {}
  TensorRef(HostTensor& t)  // NOLINT(google-explicit-constructor)
      : TensorRef(t.dtype(), t.shape(), t.data()) {}
};

/// Arguments and results of a run, by name.
using InputRefs = std::map<std::string, ConstTensorRef, std::less<>>;
using OutputRefs = std::map<std::string, TensorRef, std::less<>>;

/// Returns whether the elements are dense and row-major, ignoring strides of dims of size 1.
bool is_row_major(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides);

/// Copy elements from a strided array to a dense row-major one of the same shape, and back.
void gather(const ConstTensorRef& from, std::byte* to);
void scatter(const std::byte* from, const TensorRef& to);

}  // namespace lathe

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "frontend/graph.h"
#include "ir/support/tensors/host_tensor.h"

namespace lathe::importing {

/// A tensor of integers or bools that is computed at import: its elements are polynomials of dims. Graphs compute
/// shapes with such tensors: Shape, Gather, Concat, Reshape.
struct DimTensor {
  DType dtype = i64;
  std::vector<std::int64_t> shape;
  std::vector<Dim> elements;  ///< row-major

  /// Returns the numbers, if all elements are numbers.
  std::optional<HostTensor> numbers() const;
  /// Returns a tensor of the graph that has the sizes of the run.
  Tensor in(const Graph& graph) const;
};

/// More elements than this are computed at run time.
inline constexpr std::int64_t most_elements = 4096;

/// Returns the elements of integers or bools; nothing for floats, for more than `most_elements`, and for the smallest
/// i64, which is no size.
std::optional<DimTensor> dim_tensor(const HostTensor& numbers);

/// The sign of a polynomial for all sizes of 0 or more, if it is the same for all of them.
enum class Sign : std::uint8_t { negative, zero, positive, not_negative, not_positive, unknown };
Sign sign_of(const Dim& dim);

/// Computes one element of a result; nothing if it depends on the sizes.
using CombineDims = std::function<std::optional<Dim>(const Dim& a, const Dim& b)>;

/// Applies a function to each pair of elements, broadcast by NumPy's rule. Returns nothing if the shapes do not
/// broadcast, or if one of the elements depends on the sizes.
std::optional<DimTensor> combine(const DimTensor& a, const DimTensor& b, DType dtype, const CombineDims& function);

}  // namespace lathe::importing

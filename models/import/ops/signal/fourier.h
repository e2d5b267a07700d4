#pragma once

#include "models/import/ops/tensor_functions.h"

/// Fourier transforms along the last dim, as products with matrices of cosines and sines.
namespace lathe::importing {

/// A signal along the last dim. The imaginary part is empty for real numbers.
struct Signal {
  Tensor real, imaginary;
};

/// How a transform is divided: by nothing, the root of its length, or its length.
enum class FourierScale : std::uint8_t { none, root, length };

struct FourierOptions {
  Dim length = 1;
  bool is_inverse = false;
  FourierScale scale = FourierScale::none;
};

/// Returns the first `kept` elements of the transform of a signal of the length in the options.
Signal transformed(const Signal& x, const Dim& kept, const FourierOptions& options);

/// Returns the real signal of a length whose transform begins with x, length / 2 + 1 elements; the rest of the
/// transform follows from its symmetry.
Tensor real_inverse(const Signal& x, const Dim& length, FourierScale scale);

/// Cuts the last dim of a known size to a length, or adds zeros.
Tensor with_length(const Tensor& x, std::int64_t size, std::int64_t length);

}  // namespace lathe::importing

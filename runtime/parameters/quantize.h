#pragma once

#include <cstdint>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// An 8-bit matrix: numbers q i8 [rows, n] and scales f32 [rows, n / block], one per block of adjacent elements, as
/// ops::dequantize expects them. The quantization is symmetric: a scale is the largest magnitude of its block / 127,
/// and q = x / scale rounded to nearest, ties to even. So |x - q * scale| <= scale / 2, up to f32 rounding; a block
/// of zeros is exact. It needs 8 + 32 / block bits per element: 8.5 for blocks of 64.
struct QuantizedMatrix {
  HostTensor numbers, scales;
};

/// Quantizes a float matrix [rows, n], or its transpose if `transposed`: then its rows are the columns of `matrix`.
/// Only a few rows at a time are held in f32. Throws UserErrors [quantize_block] unless it is a float matrix whose
/// rows are whole blocks, [quantize_value] for NaN and infinity.
QuantizedMatrix quantize(const HostTensor& matrix, std::int64_t block, bool transposed = false);

}  // namespace lathe

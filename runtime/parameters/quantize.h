#pragma once

#include <cstdint>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// A matrix in 8 bits: numbers q i8 [rows, n] and scales f32 [rows, n / block], one for each block of neighbours, as
/// ops::dequantize takes them. Symmetric: a scale is the largest magnitude of its block / 127, and q = x / scale
/// rounded to nearest, ties to even. So |x - q * scale| <= scale / 2, up to the roundings of f32; a block of zeros is
/// kept exactly. It takes 8 + 32 / block bits an element: 8.5 for blocks of 64.
struct QuantizedMatrix {
  HostTensor numbers, scales;
};

/// Quantizes a float matrix [rows, n], or where `transposed` its transpose, whose rows are columns of `matrix`. A few
/// rows at a time are held in f32. UserErrors [quantize_block] for what is no float matrix whose rows are blocks,
/// [quantize_value] for NaN and infinity.
QuantizedMatrix quantize(const HostTensor& matrix, std::int64_t block, bool transposed = false);

}  // namespace lathe

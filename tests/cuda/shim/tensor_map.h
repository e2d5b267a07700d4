#pragma once

/// The 128 bytes of a CUtensorMap under the shim: a tensor of 2-byte elements, innermost dim first, with the strides
/// in bytes of all dims except that one.
struct ShimTensorMap {
  static constexpr unsigned long long is_made = 0x6c61746865206d61;
  unsigned long long made, address, sizes[5], strides[4];
  unsigned short box[5], rank;
};
static_assert(sizeof(ShimTensorMap) <= 128);

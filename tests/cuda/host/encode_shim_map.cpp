#include "tests/cuda/host/shim_maps.h"

#include <algorithm>
#include <cstring>

#include "tests/cuda/shim/tensor_map.h"

namespace lathe::test {

namespace {

constexpr std::size_t most_dims = 5;

/// Checks the rules of the driver's documentation for 2-byte elements, no interleaving and the 128-byte swizzle.
bool is_valid(const cuda::Driver::Tensor& t) {
  constexpr std::uint64_t size = 2, swizzle = 128;
  const std::size_t rank = t.sizes.size();
  if (rank < 1 || rank > most_dims || t.strides.size() != rank - 1 || t.box.size() != rank) return false;
  bool valid = t.address != 0 && t.address % 16 == 0 && size_in_bytes(t.dtype) == size;
  for (const std::uint64_t n : t.sizes) valid = valid && n > 0 && n <= std::uint64_t{1} << 32;
  for (const std::uint32_t n : t.box) valid = valid && n > 0 && n <= 256;
  valid = valid && t.box[0] * size % 16 == 0 && t.box[0] * size <= swizzle;
  // Each stride covers the previous dim and is a multiple of the previous stride.
  for (std::size_t i = 0; i + 1 < rank; ++i) {
    const std::uint64_t stride = t.strides[i], before = i == 0 ? size : t.strides[i - 1];
    valid = valid && stride % 16 == 0 && stride < std::uint64_t{1} << 40 && stride % before == 0 &&
            stride >= before * t.sizes[i];
  }
  return valid;
}

}  // namespace

cuda::Driver::TensorMap encode_shim_map(const cuda::Driver::Tensor& t) {
  if (!is_valid(t)) cuda::throw_driver_error("cuTensorMapEncodeTiled", 1, "CUDA_ERROR_INVALID_VALUE");
  ShimTensorMap map{};
  map.made = ShimTensorMap::is_made, map.address = t.address;
  map.rank = static_cast<unsigned short>(t.sizes.size());
  std::copy(t.sizes.begin(), t.sizes.end(), map.sizes);
  std::copy(t.strides.begin(), t.strides.end(), map.strides);
  std::copy(t.box.begin(), t.box.end(), map.box);
  cuda::Driver::TensorMap result;
  std::memcpy(result.words.data(), &map, sizeof map);
  return result;
}

}  // namespace lathe::test

#pragma once

#include <cstdint>

#include "ir/support/tensors/host_tensor.h"
#include "ir/support/tensors/tensor_ref.h"

/// Arrays shared with other libraries in one process (NumPy, PyTorch, JAX, CuPy), by DLPack's stable C structures.
/// Those here have the layout of DLTensor and DLManagedTensor of <dlpack/dlpack.h>, for which a pointer may be cast:
///
///   HostTensor weights = from_dlpack(reinterpret_cast<dlpack::ManagedTensor*>(capsule));
///   auto* given = reinterpret_cast<DLManagedTensor*>(to_dlpack(std::move(result)));
namespace lathe::dlpack {

/// DLDevice.
struct Device {
  static constexpr std::int32_t cpu = 1, cuda = 2, cuda_host = 3;
  std::int32_t type = cpu;
  std::int32_t id = 0;
};

/// DLDataType: elements of `lanes` numbers of `bits` bits.
struct DataType {
  static constexpr std::uint8_t integer = 0, unsigned_integer = 1, real = 2, bfloat = 4, complex = 5, boolean = 6;
  std::uint8_t code = real;
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;
};

/// DLTensor. It owns nothing.
struct Array {
  void* data = nullptr;
  Device device = {};
  std::int32_t ndim = 0;
  DataType dtype = {};
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< in elements; null: row-major
  std::uint64_t byte_offset = 0;    ///< of element [0, .., 0] from `data`
};

/// DLManagedTensor: an array with its owner. Who takes it calls the deleter once, when it is done.
struct ManagedTensor {
  Array array;
  void* context = nullptr;
  void (*deleter)(ManagedTensor* self) = nullptr;  ///< may be null
};

}  // namespace lathe::dlpack

namespace lathe {

/// The memory of an array, as an argument or a result of a run, without a copy. UserError [dlpack_device] for memory
/// that the CPU cannot address, [dlpack_dtype] for elements that Lathe does not have, [dlpack_shape] for sizes below
/// 0 or missing, or elements without memory.
ConstTensorRef view_of(const dlpack::Array& array);
TensorRef writable_view_of(const dlpack::Array& array);

/// Takes an array over: where it lies, if it is dense and row-major there, else as a copy. Its deleter is called when
/// the tensor goes, or at once after a copy or an error. UserErrors of view_of(), and [host_tensor_alignment].
HostTensor from_dlpack(dlpack::ManagedTensor* taken);

/// Gives a tensor away, row-major with strides: whoever takes it calls its deleter. The memory is the tensor's; it
/// is copied where a copy is given (`to_dlpack(weights.get("w"))`), and not where a value is moved.
[[nodiscard]] dlpack::ManagedTensor* to_dlpack(HostTensor given);

}  // namespace lathe

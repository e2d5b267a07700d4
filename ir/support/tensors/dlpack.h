#pragma once

#include <cstdint>

#include "ir/support/tensors/host_tensor.h"
#include "ir/support/tensors/tensor_ref.h"

/// Shares arrays with other libraries in one process (NumPy, PyTorch, JAX, CuPy) through DLPack's stable C
/// structures. The structures below have the layout of DLTensor and DLManagedTensor of <dlpack/dlpack.h>, so pointers
/// may be cast:
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

/// DLDataType: elements of `lanes` numbers with `bits` bits each.
struct DataType {
  static constexpr std::uint8_t integer = 0, unsigned_integer = 1, real = 2, bfloat = 4, complex = 5, boolean = 6;
  std::uint8_t code = real;
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;
};

/// DLTensor, non-owning.
struct Array {
  void* data = nullptr;
  Device device = {};
  std::int32_t ndim = 0;
  DataType dtype = {};
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< in elements; null: row-major
  std::uint64_t byte_offset = 0;    ///< of element [0, .., 0] from `data`
};

/// DLManagedTensor: an array with its owner. The consumer calls the deleter once, when it is done.
struct ManagedTensor {
  Array array;
  void* context = nullptr;
  void (*deleter)(ManagedTensor* self) = nullptr;  ///< may be null
};

}  // namespace lathe::dlpack

namespace lathe {

/// Returns a view of an array, without a copy, as an argument or a result of a run. Throws UserError [dlpack_device]
/// for memory that the CPU cannot address, [dlpack_dtype] for unsupported elements, and [dlpack_shape] for negative
/// or missing sizes, or elements without memory.
ConstTensorRef view_of(const dlpack::Array& array);
TensorRef writable_view_of(const dlpack::Array& array);

/// Takes ownership of an array. Uses its memory in place if it is dense and row-major, and copies it otherwise. Calls
/// its deleter when the tensor is destroyed, or immediately after a copy or an error. Throws the UserErrors of
/// view_of(), and [host_tensor_alignment].
HostTensor from_dlpack(dlpack::ManagedTensor* taken);

/// Transfers a tensor to DLPack, row-major with strides; the consumer calls the deleter. Uses the tensor's memory
/// without a copy. Passing an lvalue copies it (`to_dlpack(weights.get("w"))`); passing an rvalue does not.
[[nodiscard]] dlpack::ManagedTensor* to_dlpack(HostTensor given);

}  // namespace lathe

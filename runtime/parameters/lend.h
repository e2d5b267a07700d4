#pragma once

#include <memory>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// Returns a tensor that borrows the memory of `value`. `owner` keeps the memory alive; if it is null, the caller
/// must.
inline HostTensor lend(const HostTensor& value, std::shared_ptr<const void> owner = nullptr) {
  return HostTensor::borrow(value.dtype(), value.shape(), const_cast<std::byte*>(value.data()), std::move(owner));
}

}  // namespace lathe

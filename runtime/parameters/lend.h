#pragma once

#include <memory>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// A value to be read where it lies, without a copy. `owner` keeps the memory; where it is null, the caller does.
inline HostTensor lend(const HostTensor& value, std::shared_ptr<const void> owner = nullptr) {
  return HostTensor::borrow(value.dtype(), value.shape(), const_cast<std::byte*>(value.data()), std::move(owner));
}

}  // namespace lathe

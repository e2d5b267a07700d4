#pragma once

#include <memory>

#include "ir/support/host_tensor.h"

namespace lathe {

/// What a device holds of a stored tensor.
class DeviceTensor {
 public:
  virtual ~DeviceTensor() = default;
  /// Writes the device's value over the host's, which has its dtype and shape; it is there on return.
  virtual void copy_to(HostTensor& host) = 0;
};

/// One value of a store, on the host and, where a device runs programs on it, there too. At least one of the two is
/// current.
struct StoredTensor {
  HostTensor host;
  std::shared_ptr<DeviceTensor> device = nullptr;
  bool host_is_current = true, device_is_current = false;

  /// Brings the host's value up to date.
  HostTensor& on_host() {
    if (!host_is_current) device->copy_to(host);
    host_is_current = true;
    return host;
  }
};

}  // namespace lathe

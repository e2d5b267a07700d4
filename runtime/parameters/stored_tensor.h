#pragma once

#include <filesystem>
#include <memory>

#include "ir/support/tensors/host_tensor.h"
#include "runtime/parameters/parameter_location.h"

namespace lathe {

/// What a device holds of a stored tensor.
class DeviceTensor {
 public:
  virtual ~DeviceTensor() = default;
  /// Writes the device's value over the host's, which has its dtype and shape; it is there on return.
  virtual void copy_to(HostTensor& host) = 0;
  virtual dlpack::Device device() const = 0;
};

/// One value of a store, on the host and, where a device runs programs on it, there too. At least one of the two is
/// current.
struct StoredTensor {
  HostTensor host;
  std::shared_ptr<DeviceTensor> device = nullptr;
  bool host_is_current = true, device_is_current = false;
  std::filesystem::path file = {};  ///< whose mapped pages the host's value lies in; empty: in none that is known

  /// Brings the host's value up to date.
  HostTensor& on_host() {
    if (!host_is_current) device->copy_to(host);
    host_is_current = true;
    return host;
  }

  ParameterLocation location() const {
    const auto memory = !host.is_borrowed() ? ParameterLocation::Host::own
                        : file.empty()      ? ParameterLocation::Host::lent
                                            : ParameterLocation::Host::file;
    ParameterLocation found{.host = memory, .host_is_newest = host_is_current, .device_is_newest = device_is_current};
    if (memory == ParameterLocation::Host::file) found.file = file;
    if (device) found.device = device->device();
    return found;
  }
};

}  // namespace lathe

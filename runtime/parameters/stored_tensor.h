#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "ir/support/tensors/host_tensor.h"
#include "runtime/parameters/parameter_location.h"

namespace lathe {

/// A device's copy of a stored tensor.
class DeviceTensor {
 public:
  virtual ~DeviceTensor() = default;
  /// Copies the device's value to `host`, which has its dtype and shape. Returns when the copy is complete.
  virtual void copy_to(HostTensor& host) = 0;
  virtual dlpack::Device device() const = 0;
};

/// Counts the changes of a tensor's memory by runs. Tensors that share memory share the counter.
using WriteCount = std::shared_ptr<std::atomic<std::uint64_t>>;

/// Returns the number of writes by runs, in this process, to memory that stored tensors share with other tensors.
std::atomic<std::uint64_t>& writes_of_shared_memory();

/// A value of a store: on the host and, if a device runs programs on it, also there. At least one copy is current.
struct StoredTensor {
  HostTensor host;
  std::shared_ptr<DeviceTensor> device = nullptr;
  bool host_is_current = true, device_is_current = false;
  /// Null if the memory may change without notice, because others have lent it or have a pointer to it.
  WriteCount writes = nullptr;
  std::filesystem::path file = {};  ///< the file whose mapped pages contain the host's value; empty if none is known

  /// Makes the host's value current and returns it.
  HostTensor& on_host() {
    if (!host_is_current) device->copy_to(host);
    host_is_current = true;
    return host;
  }

  /// Records that a run writes the value.
  void note_write() {
    if (writes) ++*writes;
    if (host.is_shared()) ++writes_of_shared_memory();
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

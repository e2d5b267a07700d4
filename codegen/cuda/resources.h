#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::cuda {

/// What ptxas says that one thread or block of a kernel takes.
struct Resources {
  int registers = 0;              ///< a thread
  std::int64_t spill_bytes = 0;   ///< stores and loads of registers that did not fit
  std::int64_t stack_bytes = 0;   ///< a thread
  std::int64_t shared_bytes = 0;  ///< a block; without what is given at launch
  int barriers = 0;
  bool serialized_wgmma = false;  ///< warnings C7508 .. C7510: wgmma waits for itself

  std::string to_string() const;  ///< "31 registers, 256 bytes of shared memory"
};

/// Reads the log that NVRTC gives with --ptxas-options=-v for the function `symbol`. InternalError [resource_report]
/// where it says nothing of it.
Resources parse_resources(std::string_view log, std::string_view symbol);

}  // namespace lathe::cuda

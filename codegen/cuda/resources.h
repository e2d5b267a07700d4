#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::cuda {

/// Resources per thread or block of a kernel, as reported by ptxas.
struct Resources {
  int registers = 0;              ///< per thread
  std::int64_t spill_bytes = 0;   ///< stores and loads of registers that did not fit
  std::int64_t stack_bytes = 0;   ///< per thread
  std::int64_t shared_bytes = 0;  ///< per block; without dynamic shared memory
  int barriers = 0;
  bool serialized_wgmma = false;  ///< warnings C7508 .. C7510, C7518, C7520: wgmma runs synchronously

  std::string to_string() const;  ///< "31 registers, 256 bytes of shared memory"
};

/// Parses the log of NVRTC with --ptxas-options=-v for the function `symbol`. Throws InternalError [resource_report]
/// if the log has no entry for it.
Resources parse_resources(std::string_view log, std::string_view symbol);

}  // namespace lathe::cuda

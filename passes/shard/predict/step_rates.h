#pragma once

#include <cstdint>
#include <string>

#include "ir/machine/machine_info.h"
#include "ir/machine/network_info.h"

namespace lathe::shard {

/// What predictions take for the machine of a process and for what lies between processes.
struct StepRates {
  double flops = 1e12;                                ///< a second of its products; of GPUs by tensor cores
  double plain_flops = 1e12;                          ///< of GPUs, of products without them
  double memory_bandwidth = 0;                        ///< of GPUs, bytes a second of its memory; 0: takes no time
  double launch_seconds = 0;                          ///< of GPUs, that a kernel costs beside its work
  double bandwidth = NetworkInfo{}.bytes_per_second;  ///< bytes a second that it sends
  double latency = NetworkInfo{}.message_seconds;     ///< seconds of a message beside its bytes
  std::int64_t bucket_bytes = NetworkInfo{}.bucket_bytes;
  std::string basis = "given";  ///< what the rates are those of, for people
};

/// Those of the tables for a machine (ir/machine): of a GPU also its memory, and what its kernels cost.
StepRates table_rates(const MachineInfo& machine);

/// "predicted with products at 1.28 TFLOP/s ..., 12.5 GB/s ...", a line.
std::string to_string(const StepRates& rates);

}  // namespace lathe::shard

#pragma once

#include <cstdint>
#include <string>

#include "ir/hardware/hardware_info.h"
#include "ir/hardware/network_info.h"

namespace lathe::shard {

/// The rates of a process's machine and of the network, for predictions.
struct StepRates {
  double flops = 1e12;          ///< FLOP/s of matmuls; for GPUs with tensor cores
  double plain_flops = 1e12;    ///< for GPUs, FLOP/s of matmuls without tensor cores
  double memory_bandwidth = 0;  ///< for GPUs, bytes per second of memory; 0: memory takes no time
  double launch_seconds = 0;    ///< for GPUs, cost of a kernel in addition to its work
  double bandwidth = NetworkInfo{}.bytes_per_second;  ///< bytes per second that it sends
  double latency = NetworkInfo{}.message_seconds;     ///< seconds per message in addition to its bytes
  std::int64_t bucket_bytes = NetworkInfo{}.bucket_bytes;
  std::string basis = "given";  ///< where the rates come from, for people
};

/// Returns the rates of the tables for a machine (ir/hardware); for a GPU including its memory and the cost of
/// kernels.
StepRates table_rates(const HardwareInfo& machine);

/// Returns one line: "predicted, not measured: a process computes 1.28 TFLOP/s, sends 12.5 GB/s, ...".
std::string to_string(const StepRates& rates);

}  // namespace lathe::shard

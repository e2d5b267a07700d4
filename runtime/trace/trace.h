#pragma once

#include <string>
#include <vector>

#include "passes/memory/memory_plan.h"
#include "runtime/backend/backend.h"
#include "runtime/run/launch_time.h"

namespace lathe {

/// A traced run.
struct TracedRun {
  double start = 0;  ///< seconds since the start of the trace
  double seconds = 0;
  std::vector<LaunchTime> launches;
};

/// Several runs of an executable with equal dims.
struct Trace {
  const Program& program;
  MemoryPlan plan;
  DimBindings dims;
  DeviceRates machine;
  std::vector<TracedRun> runs;
};

/// Work of one or several launches, compared with the machine's peak.
struct Reached {
  double seconds = 0, gflop = 0, gigabytes = 0;

  double gflops() const { return seconds > 0 ? gflop / seconds : 0; }
  double gigabytes_per_second() const { return seconds > 0 ? gigabytes / seconds : 0; }
  /// Returns whether arithmetic takes at least as long as memory traffic at the machine's peak rates (roofline
  /// model).
  bool bound_by_arithmetic(const DeviceRates& machine) const;
  /// Returns the minimum time at the machine's peak rates as a fraction of the measured time. It exceeds 1 if data
  /// came from a cache, because `machine.bytes` is the memory's rate.
  double share(const DeviceRates& machine) const;
};

/// Returns the gigabytes that a launch must move with these dims; 0 if the number overflows 64 bits.
double gigabytes_of(const Launch& launch, const DimBindings& dims);

/// Returns the trace as Chrome trace JSON, which chrome://tracing and ui.perfetto.dev load. It has a row of runs, a
/// row of kernels with ops, source lines, rates and shares in their args, a row per thread with its task ranges, and
/// a counter of the arena's live bytes.
std::string chrome_trace_json(const Trace& trace);

/// Returns a table of the runs' time by role, summed over identical layers, longest first, at most `most` lines.
/// Explains its columns.
std::string top_table(const Trace& trace, int most);

}  // namespace lathe

#pragma once

#include <string>
#include <vector>

#include "passes/memory/memory_plan.h"
#include "runtime/executable.h"

namespace lathe {

/// What a machine reaches, per second: multiply-add operations (counted as two) and bytes read from memory.
struct MachineRates {
  double flops = 0, bytes = 0;
};

/// A traced run.
struct TracedRun {
  double start = 0;  ///< seconds since the trace began
  double seconds = 0;
  std::vector<LaunchTime> launches;
};

/// Some runs of one executable, for one binding of its dims.
struct Trace {
  const Program& program;
  MemoryPlan plan;
  DimBindings dims;
  MachineRates machine;
  std::vector<TracedRun> runs;
};

/// Work of one or several launches, against what the machine could do.
struct Reached {
  double seconds = 0, gflop = 0, gigabytes = 0;

  double gflops() const { return seconds > 0 ? gflop / seconds : 0; }
  double gigabytes_per_second() const { return seconds > 0 ? gigabytes / seconds : 0; }
  /// Whether arithmetic takes the machine at least as long as memory (a roofline's two sides).
  bool bound_by_arithmetic(const MachineRates& machine) const;
  /// The least time that the machine needs for the binding one of them, as a share of the seconds taken. Above 1
  /// where data came from a cache, since `machine.bytes` is what memory gives.
  double share(const MachineRates& machine) const;
};

/// The gigabytes that a launch must move with these dims; 0 where the number does not fit 64 bits.
double gigabytes_of(const Launch& launch, const DimBindings& dims);

/// The trace as Chrome trace JSON, which chrome://tracing and ui.perfetto.dev load: a row of runs, one of kernels
/// with ops, source lines, rates and shares in their args, one for each thread with its task ranges, and a counter of
/// the arena's live bytes.
std::string chrome_trace_json(const Trace& trace);

/// The runs' time by role, over identical layers, longest first, at most `most` lines; with what the columns mean.
std::string top_table(const Trace& trace, int most);

}  // namespace lathe

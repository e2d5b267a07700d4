#pragma once

#include <cstdint>
#include <string>

namespace lathe {

/// Measured peak rates per second, with no other load on this machine.
struct Rate {
  double best = 0, median = 0;
};

/// The widest vector unit that this CPU has and the probe supports.
struct VectorUnit {
  std::string name = "scalar";  ///< "AVX-512", "AVX2", "SSE" or "scalar"
  int lanes = 1;                ///< number of f32 per register
  bool fma = false;             ///< otherwise a multiply and an add
};
VectorUnit widest_vector_unit();

/// Returns the f32 floating-point operations per second (a multiply-add counts as two) of `threads` threads that run
/// independent multiply-adds in registers, on the widest vector unit. Takes about `seconds` after a warm-up of the
/// same length.
Rate measure_fma_peak(int threads, double seconds = 0.05);

/// Returns the bytes per second that `threads` threads read from an array of `bytes` in total.
Rate measure_read_bandwidth(int threads, std::int64_t bytes, double seconds = 0.05);

/// Returns the round-trip time in seconds of a cache line between the first and the last CPU that this process may
/// use. It is about 1e-7 if they share a cache and several times that otherwise; virtual machines may change that
/// from minute to minute. Returns the minimum of several bursts, or 0 if this process has one CPU.
double measure_core_round_trip(double seconds = 0.02);

/// Returns an array size that exceeds all caches of this machine but fits into its memory.
std::int64_t bandwidth_probe_bytes();

}  // namespace lathe

#pragma once

#include <cstdint>
#include <string>

namespace lathe {

/// What this machine reaches when nothing but the probed thing is done. Rates are per second.
struct Rate {
  double best = 0, median = 0;
};

/// The widest vector unit that the probe knows and this CPU has.
struct VectorUnit {
  std::string name = "scalar";  ///< "AVX-512", "AVX2", "SSE" or "scalar"
  int lanes = 1;                ///< f32 in a register
  bool fma = false;             ///< otherwise a multiply and an add
};
VectorUnit widest_vector_unit();

/// f32 floating-point operations per second (a multiply-add counts as two) of `threads` threads that run independent
/// multiply-adds in registers, on the widest unit. Takes about `seconds` after a warm-up of the same length.
Rate measure_fma_peak(int threads, double seconds = 0.05);

/// Bytes per second that `threads` threads read from memory, in an array of `bytes` in all.
Rate measure_read_bandwidth(int threads, std::int64_t bytes, double seconds = 0.05);

/// Bytes per second of a[i] = b[i] + s * c[i], counting two reads and one write, in three arrays of `bytes` in all.
Rate measure_triad_bandwidth(int threads, std::int64_t bytes, double seconds = 0.05);

/// Seconds until a cache line that one core wrote is read and answered by another, the first and the last CPU that
/// this process may use: about 1e-7 where they share a cache, several times that where they do not, which virtual
/// machines may change from minute to minute. The least of some bursts; 0 where this process has one CPU.
double measure_core_round_trip(double seconds = 0.02);

/// An array size that no cache of this machine holds, yet within its memory.
std::int64_t bandwidth_probe_bytes();

}  // namespace lathe

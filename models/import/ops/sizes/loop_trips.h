#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/import/imported_value.h"
#include "models/import/op_call.h"

/// Loops that end when a counter passes a size: the number of their iterations follows from sizes and constants.
namespace lathe::importing {

/// A condition of a loop that is true after iteration i if and only if rest - step * i is above 0.
struct Countdown {
  Dim rest = 0;
  std::int64_t step = 1;  ///< 1 or more
};

/// One iteration of a loop, in the graph of its body.
struct LoopIteration {
  Tensor index;                    ///< number of the iteration, i64
  std::span<const Tensor> states;  ///< before the iteration
  std::span<const Value> first;    ///< the states before the first iteration
  std::span<const Value> results;  ///< whether another iteration follows, then the next states
};

/// Returns the condition of a loop if it compares two sums of sizes, constants, and multiples of the iteration's
/// number and of counters, and its difference falls. Counters are states i64 that each iteration changes by a
/// constant, from a number or size. Returns nothing for other conditions.
std::optional<Countdown> countdown_of(const LoopIteration& iteration);

/// Returns whether a condition before the first iteration, in the graph around the loop, is that of the iterations.
bool begins(const Countdown& countdown, const Tensor& condition);

/// The number of iterations of a loop.
struct TripCount {
  Dim trips = 0;
  /// The loop has at least this many iterations, and `trips` is less for some sizes: its number is right in runs
  /// with other sizes only. None: `trips` is the number for all sizes.
  std::optional<std::int64_t> least = {};
};

/// Returns the number of iterations of a loop that runs at least `least` times. Returns nothing if it is no
/// polynomial of sizes.
std::optional<TripCount> trip_count(const Countdown& countdown, std::int64_t least);

/// Records that runs check the number of iterations of a node [import_range]. `count` has a least number.
void require_trips(const OpCall& call, const TripCount& count);

}  // namespace lathe::importing

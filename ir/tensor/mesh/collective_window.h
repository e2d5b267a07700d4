#pragma once

#include <cstdint>
#include <vector>

/// Limits how early collectives start before their readers, and how late they finish after their producers: data in
/// flight or waiting takes memory. Steps are launches of a program or nodes of a graph.
namespace lathe::ir {

/// A collective that may start after the steps before `start`, and must finish before step `done`.
struct CollectiveTimes {
  int start, done;
  std::int64_t bytes;  ///< size of the whole value
  int last = 0;        ///< the last step that reads a gathered value, if after `done`
};

/// Delays the start of all-gathers of sharded parameters, which could all start at once. At any time, the gathers
/// that are not yet read, including the one that starts, take at most the bytes of the largest. So the next ones
/// arrive while one is in use.
///   used at 10, 20, 30, 40, of 2, 2, 4 and 1 bytes:   start at 0, 0, 20, 30
/// Also limits their sum with the gathered values in use. It is at most the maximum bytes in use at any step or, if
/// larger, a value plus the bytes in use when the previous value is first read. So the largest value only overlaps
/// with the values used next to it. A value with less than a hundredth of the next one's bytes, such as a bias vector
/// read together with a matrix, is gathered with it.
///   used from 10 to 60, 20 to 30, 40 to 50, 60 to 70, of 9, 1, 1 and 1 bytes:   start at 0, 10, 10, 31
void limit_prefetch(std::vector<CollectiveTimes>& gathers);

/// Moves the ends of gradients' reduce-scatters to earlier times than their readers need. The ones in flight at any
/// time then have at most as many bytes as the largest one.
void limit_backlog(std::vector<CollectiveTimes>& scatters);

}  // namespace lathe::ir

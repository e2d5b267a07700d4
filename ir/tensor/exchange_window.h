#pragma once

#include <cstdint>
#include <vector>

/// How far exchanges may run ahead of those who read their results, and stay behind those who made their values: all
/// that is on its way, or has come and waits, takes memory. Steps are launches of a program or nodes of a graph.
namespace lathe::ir {

/// An exchange that may start when the steps before `start` are done, and must be over before step `done`.
struct ExchangeTimes {
  int start, done;
  std::int64_t bytes;  ///< of the whole value
};

/// Gathers of parameters in parts could all start at once. Each starts so late that the ones that nobody has read
/// yet, itself included, are as many bytes as the largest of them at most: while one is used, the next ones come.
///   uses at 10, 20, 30, of 4, 2 and 2 bytes:   start at 0, 10, 10
void limit_prefetch(std::vector<ExchangeTimes>& gathers);

/// Scattered gradients could all wait for whoever reads them last. Each is over so early that the ones on their way
/// are as many bytes as the largest of them at most.
void limit_backlog(std::vector<ExchangeTimes>& scatters);

}  // namespace lathe::ir

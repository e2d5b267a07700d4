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
  int last = 0;        ///< the last step that reads a gathered value, if behind `done`
};

/// Gathers of parameters in parts could all start at once. Each starts so late that the ones that nobody has read
/// yet, itself included, are as many bytes as the largest of them at most: while one is used, the next ones come.
///   used at 10, 20, 30, 40, of 2, 2, 4 and 1 bytes:   start at 0, 0, 20, 30
/// And so late that those and the ones in use are together at most the bytes that are in use at any step, or, if
/// more, a value and what is in use when the one before it is first read: beside the largest value comes what is used
/// next to it, not as much again. A value of less than a hundredth of the next one's bytes, such as a vector that a
/// kernel reads beside a matrix, comes with it.
///   used from 10 to 60, 20 to 30, 40 to 50, 60 to 70, of 9, 1, 1 and 1 bytes:   start at 0, 10, 10, 31
void limit_prefetch(std::vector<ExchangeTimes>& gathers);

/// Scattered gradients could all wait for whoever reads them last. Each is over so early that the ones on their way
/// are as many bytes as the largest of them at most.
void limit_backlog(std::vector<ExchangeTimes>& scatters);

}  // namespace lathe::ir

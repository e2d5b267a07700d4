#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/kernel/kernel.h"
#include "passes/program/program.h"

namespace lathe::gpu {

/// A parameter that a phase reads from its first to its last element, and that no phase writes: a weight. Or the rows
/// in use of a cache, whose number is bound late: `elements` is then the number that is assumed.
struct StreamedBuffer {
  int phase = 0;
  kernel::BufferId buffer = kernel::none;
  std::int64_t elements = 0, element_bytes = 0;
  std::optional<RowsRead> rows = {};
};

/// Decides which elements of weights and caches each wait prefetches into L2: those that phases read next, in their
/// order, each once, and at most `window` bytes ahead of the phase that is next. DRAM is then busy while blocks wait,
/// and during phases that read no weights.
class PrefetchPlan {
 public:
  /// `streams` are in the order of their phases.
  PrefetchPlan(std::vector<StreamedBuffer> streams, std::int64_t window)
      : streams_(std::move(streams)), window_(window) {}

  struct Range {
    kernel::BufferId buffer = kernel::none;
    std::int64_t first = 0, count = 0;
    std::optional<RowsRead> rows = {};  ///< all of them at once, at most `count` elements
    bool operator==(const Range&) const = default;
  };
  /// Returns what the wait before a phase prefetches. Called for all waits, in order.
  std::vector<Range> before(int phase);

 private:
  std::int64_t next_count(const StreamedBuffer& stream) const;

  std::vector<StreamedBuffer> streams_;
  std::int64_t window_;
  std::size_t next_ = 0;           ///< the stream that is prefetched next
  std::int64_t next_element_ = 0;  ///< in it
  std::size_t unread_ = 0;         ///< the first stream of a phase that has not run
  std::int64_t ahead_ = 0;         ///< bytes that were prefetched for such phases
};

}  // namespace lathe::gpu

#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "ir/kernel/interpret/decoded_kernel.h"
#include "ir/kernel/interpret/interpreter_memory.h"

namespace lathe::kernel {

/// The asynchronous copies in flight of one thread.
class CopyQueue {
 public:
  /// Starts a copy of 16 bytes. Until it ends, the destination is undefined and must not be accessed.
  void start(std::shared_ptr<Scratch> memory, const Target& to, std::int64_t first, std::vector<Scalar> values,
             const Actor& actor);
  void commit();
  /// Completes all groups except the latest `pending`, as if the thread stored their values now.
  void wait(int pending, const Actor& actor);

 private:
  struct Copy {
    std::shared_ptr<Scratch> memory;  // may outlive its block
    Target to;
    std::int64_t first = 0;
    std::vector<Scalar> values;
  };
  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> groups_;
};

/// The state of one thread.
struct Thread {
  std::vector<Scalar> lanes;                      // of values and variables, by LaneLayout
  std::vector<std::shared_ptr<Scratch>> scratch;  // by buffer
  CopyQueue copies;
  std::int64_t position[3] = {0, 0, 0};

  std::int64_t id() const { return position[0] + 1024 * (position[1] + 1024 * position[2]); }
};

/// The threads of a thread loop. They are reused each time that the loop starts, because blocks are often short.
class BlockThreads {
 public:
  /// Returns thread `i` in the state of `outer` at the start of the loop; `inherited` are the lanes that its body may
  /// read. Shared memory is shared, other scratch is copied.
  Thread& start(std::size_t i, const Thread& outer, const Kernel& kernel, const std::vector<LaneRange>& inherited);
  /// Releases the shared memory of the first `count` threads.
  void end(std::size_t count, const Kernel& kernel);

 private:
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace lathe::kernel

#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "ir/kernel/interpret/interpreter_memory.h"

namespace lathe::kernel {

/// The asynchronous copies that one thread has started.
class CopyQueue {
 public:
  /// 16 bytes on their way: from now on what lies there is undefined, and nobody may touch it.
  void start(std::shared_ptr<Scratch> memory, const Target& to, std::int64_t first, std::vector<Scalar> values,
             const Actor& actor);
  void commit();
  /// Ends all groups but the latest `pending`: the values lie there, as if the thread had stored them now.
  void wait(int pending, const Actor& actor);

 private:
  struct Copy {
    std::shared_ptr<Scratch> memory;  // which may outlive its block
    Target to;
    std::int64_t first = 0;
    std::vector<Scalar> values;
  };
  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> groups_;
};

/// What one thread knows. Lanes of value v stand at [offset(v), offset(v) + lanes).
struct Thread {
  std::vector<Scalar> values, vars;
  std::vector<std::shared_ptr<Scratch>> scratch;  // by buffer
  CopyQueue copies;
  std::int64_t position[3] = {0, 0, 0};

  std::int64_t id() const { return position[0] + 1024 * (position[1] + 1024 * position[2]); }
};

}  // namespace lathe::kernel

#include "runtime/launch_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lathe {

namespace {

/// What a launch touches: a range of the arena, or a buffer outside of it.
struct Touched {
  int buffer = -1;
  std::int64_t begin = 0, end = 0;  ///< bytes of the arena; empty outside of it
  bool writes = false;

  bool meets(const Touched& other) const {
    if (!writes && !other.writes) return false;
    return buffer == other.buffer || (begin < other.end && other.begin < end);
  }
};

class Grouping {
 public:
  Grouping(const Program& program, const MemoryPlan& plan) : program_(program), block_of_(program.buffers.size()) {
    for (const MemoryPlan::Block& block : plan.blocks) block_of_[static_cast<std::size_t>(block.buffer)] = &block;
  }

  std::vector<LaunchGroup> run(int most) {
    std::vector<LaunchGroup> groups;
    std::vector<Touched> together;
    for (std::size_t l = 0; l < program_.launches.size(); ++l) {
      const std::vector<Touched> own = touched(program_.launches[l]);
      if (l > 0 && may_join(groups.back(), l, most) && !meet(own, together, are_parts(l - 1, l))) {
        groups.back().last = static_cast<int>(l);
      } else {
        groups.push_back({static_cast<int>(l), static_cast<int>(l)});
        together.clear();
      }
      together.insert(together.end(), own.begin(), own.end());
    }
    return groups;
  }

 private:
  bool are_parts(std::size_t a, std::size_t b) const {
    const int value = program_.launches[b].part_of;
    return value >= 0 && program_.launches[a].part_of == value;
  }

  /// Whether a launch may run with those of the group before it, as far as memory goes.
  bool may_join(const LaunchGroup& group, std::size_t launch, int most) const {
    if (meets_exchange(static_cast<int>(launch))) return false;
    if (are_parts(launch - 1, launch)) return true;
    const auto is_plain = [&](std::size_t l) {
      return program_.launches[l].part_of < 0 && program_.launches[l].checks.empty();
    };
    return group.last - group.first + 1 < most && is_plain(launch - 1) && is_plain(launch);
  }

  /// Whether an exchange begins, or must be over, just before a launch.
  bool meets_exchange(int launch) const {
    return std::any_of(program_.exchanges.begin(), program_.exchanges.end(),
                       [&](const Exchange& exchange) { return exchange.start == launch || exchange.done == launch; });
  }

  std::vector<Touched> touched(const Launch& launch) const {
    const kernel::Kernel& kernel = program_.kernels[static_cast<std::size_t>(launch.kernel)];
    std::vector<Touched> all;
    for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
      const int buffer = launch.buffers[i];
      Touched& one = all.emplace_back();
      one.buffer = buffer;
      one.writes = kernel.buffers[i].access != kernel::Access::read;
      if (const MemoryPlan::Block* block = block_of_[static_cast<std::size_t>(buffer)])
        one.begin = block->offset, one.end = block->offset + block->bytes;
    }
    return all;
  }

  /// Parts of one value write the buffer of it, and scratch of which each thread has its own.
  static bool meet(const std::vector<Touched>& a, const std::vector<Touched>& b, bool are_parts) {
    return std::any_of(a.begin(), a.end(), [&](const Touched& x) {
      return std::any_of(b.begin(), b.end(),
                         [&](const Touched& y) { return x.meets(y) && !(are_parts && x.buffer == y.buffer); });
    });
  }

  const Program& program_;
  std::vector<const MemoryPlan::Block*> block_of_;  // by buffer
};

}  // namespace

std::vector<LaunchGroup> group_launches(const Program& program, const MemoryPlan& plan, int most) {
  return Grouping(program, plan).run(most);
}

}  // namespace lathe

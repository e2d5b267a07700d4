#include "passes/memory/lifetimes.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "passes/program/program_loops.h"

namespace lathe {

namespace {

/// The accesses to a buffer in a loop, through slices or directly.
struct LoopAccess {
  int first = -1;          ///< the first launch of the loop that accesses it
  bool is_read = false;    ///< that launch reads it, or keeps a part of it
  bool is_sliced = false;  ///< the loop moves a slice of it
};

class Lifetimes {
 public:
  explicit Lifetimes(const Program& program) : program_(program), at_(program.buffers.size(), -1) {}

  std::vector<Lifetime> find() {
    for (int l = 0; l < static_cast<int>(program_.launches.size()); ++l)
      for (const int buffer : program_.launches[l].buffers) touch(storage_of(program_, buffer), l, l);
    // Phases without a barrier between them run at the same time.
    for (const JoinedLaunches& joined : program_.joined)
      for (const int buffer : joined.launch.buffers)
        touch(storage_of(program_, buffer), joined.first, joined.end - 1);
    for (const Collective& collective : program_.collectives) {
      const CollectiveSpan span = span_of(collective, program_);
      for_buffers(collective, [&](int buffer, bool) { touch(buffer, span.first, span.last); });
    }
    // Loops in loops come first: a lifetime that leaves an inner loop covers it before the outer one is considered.
    for (auto loop = program_.loops.rbegin(); loop != program_.loops.rend(); ++loop) extend(*loop);
    return std::move(found_);
  }

 private:
  void touch(int buffer, int first, int last) {
    if (!is_in_arena(program_.buffers[buffer])) return;
    int& at = at_[buffer];
    if (at < 0) {
      at = static_cast<int>(found_.size());
      found_.push_back({buffer, first, last});
    }
    Lifetime& lifetime = found_[at];
    lifetime.first = std::min(lifetime.first, first);
    lifetime.last = std::max(lifetime.last, last);
  }

  /// Extends the lifetimes of values that must survive from one iteration of the loop to the next, or all of it.
  void extend(const ProgramLoop& loop) {
    for (const auto& [buffer, access] : accesses(loop)) {
      if (at_[buffer] < 0 || program_.buffers[buffer].kind == ProgramBuffer::Kind::scratch) continue;
      const Lifetime& lifetime = found_[at_[buffer]];
      const bool is_outside = lifetime.first < loop.first || lifetime.last >= loop.end;
      if (!is_outside && !access.is_sliced && !access.is_read) continue;
      touch(buffer, loop.first, loop.end - 1);
      kept_.insert(buffer);
    }
  }

  std::map<int, LoopAccess> accesses(const ProgramLoop& loop) const {
    std::map<int, LoopAccess> found;
    for (int l = loop.first; l < loop.end; ++l) {
      const Launch& launch = program_.launches[l];
      const ProgramLoop* inner = loop_in(loop, l);
      for (std::size_t p = 0; p < launch.buffers.size(); ++p) {
        const int buffer = storage_of(program_, launch.buffers[p]);
        LoopAccess& access = found[buffer];
        access.is_sliced = access.is_sliced || moves(loop, launch.buffers[p]);
        if (access.first < 0) access.first = l;
        const bool only_writes = program_.kernels[launch.kernel].buffers[p].access == kernel::Access::write &&
                                 !launch.leaves_remainder(static_cast<int>(p));
        if (access.first == l && (!only_writes || (inner && !is_of(*inner, buffer)))) access.is_read = true;
      }
    }
    return found;
  }

  /// Returns the outermost loop in `loop` that contains the launch, or null.
  const ProgramLoop* loop_in(const ProgramLoop& loop, int launch) const {
    const auto others =
        std::span(program_.loops).subspan(static_cast<std::size_t>(&loop - program_.loops.data()) + 1);
    const auto found = std::ranges::find_if(others, [&](const ProgramLoop& other) { return other.contains(launch); });
    return found == others.end() ? nullptr : &*found;
  }

  /// Returns whether only a loop uses the buffer, and each iteration writes it before it reads it.
  bool is_of(const ProgramLoop& loop, int buffer) const {
    if (at_[buffer] < 0 || kept_.contains(buffer)) return false;
    const Lifetime& lifetime = found_[at_[buffer]];
    return loop.contains(lifetime.first) && loop.contains(lifetime.last);
  }

  /// Returns whether the buffer is a slice by the loop, or a part of one.
  bool moves(const ProgramLoop& loop, int buffer) const {
    for (; program_.buffers[buffer].slice; buffer = program_.buffers[buffer].slice->of)
      if (&program_.loops[program_.buffers[buffer].slice->loop] == &loop) return true;
    return false;
  }

  const Program& program_;
  std::vector<int> at_;  // by buffer: index into found_
  std::vector<Lifetime> found_;
  std::set<int> kept_;  // buffers that are live during all of a loop
};

}  // namespace

bool is_in_arena(const ProgramBuffer& buffer) {
  return buffer.kind == ProgramBuffer::Kind::temporary || buffer.kind == ProgramBuffer::Kind::scratch;
}

std::vector<Lifetime> lifetimes(const Program& program) { return Lifetimes(program).find(); }

}  // namespace lathe

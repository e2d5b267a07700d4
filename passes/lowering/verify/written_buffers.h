#pragma once

#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// Tracks the buffers that launches have written, in launch order. The body of a loop is passed once, like its first
/// iteration. A buffer that only a loop writes is unwritten after it, because the loop may run 0 times, except
/// - if the number of its iterations is known and not 0, or
/// - the buffer of which it writes slices, if these are all of it: it then has no elements after 0 iterations.
class WrittenBuffers {
 public:
  /// `program` must outlive it.
  explicit WrittenBuffers(const Program& program);

  /// Must be called before launches are passed that are the first of a loop or the first after one, and at the end.
  /// The loops that end there are left, and those that begin there are entered.
  void reach(int launch);
  void add(int buffer) { written_[buffer] = true; }

  /// Returns whether a launch has written the buffer, or the slice in this iteration. True for empty buffers.
  bool contains(int buffer) const { return written_[buffer]; }
  /// Returns whether the buffer may be read: it, or the buffer that it is a slice of, is written, or is an argument
  /// or a constant.
  bool has_value(int buffer) const;

 private:
  bool is_all_of(const ProgramBuffer& slice) const;
  void leave(int loop);

  const Program& program_;
  std::vector<bool> written_;              // by buffer
  std::vector<std::vector<bool>> before_;  // by loop: written_ when it was entered
};

}  // namespace lathe

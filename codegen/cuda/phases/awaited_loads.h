#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/kernel/phases.h"

namespace lathe::cuda {

/// The awaited loads of a block of statements that wait together. A load is emitted in two parts: the first one loads
/// the elements at its place, and the second one, which waits until they have been written, follows the last load
/// before a statement that uses one of them. So the trips of several loads to L2 overlap. Casts of loads are emitted
/// after the second part too.
class AwaitedLoads {
 public:
  /// The kernel must outlive this object. Nothing is awaited before set_phase.
  explicit AwaitedLoads(const kernel::Kernel& kernel) : kernel_(kernel) {}
  void set_phase(const kernel::KernelPhase& phase) { awaited_ = &phase; }

  /// A load and the expression of its second part, or a deferred cast, without an expression.
  struct Load {
    kernel::ValueId value;
    std::string settled;
  };
  bool is_awaited(const kernel::Instruction& in) const;
  void add(Load load) { loads_.push_back(std::move(load)); }
  /// Whether the statement is a cast that is emitted after the second parts. If so, adds it.
  bool defers(const kernel::Statement& s);
  /// Whether the second parts are before the statement: it uses a load, or is more than a computation.
  bool end_before(const kernel::Statement& s) const;
  /// Returns the loads to emit, in order, and forgets them.
  std::vector<Load> take() { return std::exchange(loads_, {}); }

 private:
  bool is_pending(kernel::ValueId id) const;

  const kernel::Kernel& kernel_;
  const kernel::KernelPhase* awaited_ = nullptr;
  std::vector<Load> loads_;
};

}  // namespace lathe::cuda

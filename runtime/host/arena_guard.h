#pragma once

#include <cstddef>
#include <span>

#include "passes/memory/memory_plan.h"
#include "passes/program/program.h"

namespace lathe {

/// Fills memory with the value of unwritten elements in checked runs: NaN, -1 for integers, true.
void poison(std::span<std::byte> memory, DType dtype);

/// Guards the temporaries of one run. With `poisoned`, temporaries are poisoned before their first launch. Programs
/// built with AddressSanitizer always do that. There, each launch can also access only its own temporaries in the
/// arena, unless the program exchanges data with other processes. The destructor makes the arena accessible again.
/// In a loop, a temporary that is live during all of it is poisoned in the first iteration only.
class ArenaGuard {
 public:
  ArenaGuard(const Program& program, const MemoryPlan& plan, const DimBindings& dims, std::span<std::byte> arena,
             bool poisoned, std::span<const std::int64_t> iterations = {})
      : program_(program), plan_(plan), dims_(dims), arena_(arena), poisoned_(poisoned), iterations_(iterations) {}
  ~ArenaGuard();  // NOLINT(performance-trivially-destructible): not with AddressSanitizer
  ArenaGuard(const ArenaGuard&) = delete;
  ArenaGuard& operator=(const ArenaGuard&) = delete;

  void before_launch(std::size_t launch) const;
  /// Returns whether this program poisons temporaries even without `poisoned`.
  static bool always_poisons();

 private:
  bool is_used(int buffer, int launch) const;
  bool begins(const MemoryPlan::Block& block, int launch) const;

  const Program& program_;
  const MemoryPlan& plan_;
  const DimBindings& dims_;
  std::span<std::byte> arena_;
  bool poisoned_;
  std::span<const std::int64_t> iterations_;  ///< the current one of each loop of the program
};

}  // namespace lathe

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
class ArenaGuard {
 public:
  ArenaGuard(const Program& program, const MemoryPlan& plan, const DimBindings& dims, std::span<std::byte> arena,
             bool poisoned)
      : program_(program), plan_(plan), dims_(dims), arena_(arena), poisoned_(poisoned) {}
  ~ArenaGuard();  // NOLINT(performance-trivially-destructible): not with AddressSanitizer
  ArenaGuard(const ArenaGuard&) = delete;
  ArenaGuard& operator=(const ArenaGuard&) = delete;

  void before_launch(std::size_t launch) const;
  /// Returns whether this program poisons temporaries even without `poisoned`.
  static bool always_poisons();

 private:
  const Program& program_;
  const MemoryPlan& plan_;
  const DimBindings& dims_;
  std::span<std::byte> arena_;
  bool poisoned_;
};

}  // namespace lathe

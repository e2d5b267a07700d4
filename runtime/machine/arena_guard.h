#pragma once

#include <cstddef>
#include <span>

#include "passes/lowering/program.h"
#include "passes/memory/memory_plan.h"

namespace lathe {

/// In a program built with AddressSanitizer, each launch can touch those temporaries that are its own and nothing
/// else in the arena; and a temporary that nothing has written holds NaNs and negative integers. In other programs
/// nothing happens here. The arena is open again when the guard goes.
class ArenaGuard {
 public:
  ArenaGuard(const Program& program, const MemoryPlan& plan, const DimBindings& dims, std::span<std::byte> arena)
      : program_(program), plan_(plan), dims_(dims), arena_(arena) {}
  ~ArenaGuard();  // NOLINT(performance-trivially-destructible): not with AddressSanitizer
  ArenaGuard(const ArenaGuard&) = delete;
  ArenaGuard& operator=(const ArenaGuard&) = delete;

  void before_launch(std::size_t launch) const;

 private:
  const Program& program_;
  const MemoryPlan& plan_;
  const DimBindings& dims_;
  std::span<std::byte> arena_;
};

}  // namespace lathe

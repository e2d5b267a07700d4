#pragma once

#include <cstddef>
#include <span>

#include "passes/memory/memory_plan.h"
#include "passes/program/program.h"

namespace lathe {

/// What memory holds that nothing has written, where runs are checked: NaNs, -1 for integers, true.
void poison(std::span<std::byte> memory, DType dtype);

/// Watches over the temporaries of one run. With `poisoned`, a temporary that nothing has written is poisoned. In a
/// program built with AddressSanitizer it always is, and each launch can touch those temporaries that are its own and
/// nothing else in the arena, unless it exchanges with other processes; the arena is open again when the guard goes.
class ArenaGuard {
 public:
  ArenaGuard(const Program& program, const MemoryPlan& plan, const DimBindings& dims, std::span<std::byte> arena,
             bool poisoned)
      : program_(program), plan_(plan), dims_(dims), arena_(arena), poisoned_(poisoned) {}
  ~ArenaGuard();  // NOLINT(performance-trivially-destructible): not with AddressSanitizer
  ArenaGuard(const ArenaGuard&) = delete;
  ArenaGuard& operator=(const ArenaGuard&) = delete;

  void before_launch(std::size_t launch) const;
  /// Whether this program poisons what nothing has written, asked or not.
  static bool always_poisons();

 private:
  const Program& program_;
  const MemoryPlan& plan_;
  const DimBindings& dims_;
  std::span<std::byte> arena_;
  bool poisoned_;
};

}  // namespace lathe

#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/kernel.h"

/// The verifier's rules for statements that say which threads run what.
namespace lathe::kernel {

/// One parallel loop at most, at top level, last (parallel_last), after set-up that writes no parameter
/// (setup_store); its bounds are known from the dims alone (parallel_bounds).
void verify_parallel_loop(const Kernel& kernel);

/// Steps are positive (loop_step), indices are loop indices (loop_index), unrolled loops have constant bounds
/// (unroll_bounds); the bounds are in scope.
void verify_loop(const Kernel& kernel, const Loop& loop);

/// Runs body(block) for the blocks that are parts of a statement.
void for_each_block(const Statement& statement, const std::function<void(const Block&)>& body);
/// Runs body(statement) for all statements of a block and of the blocks inside.
void for_each_statement(const Block& statements, const std::function<void(const Statement&)>& body);

/// A value and what it is computed of, each once, after what it needs itself. Masks are left out.
std::vector<ValueId> with_needs(const Kernel& kernel, ValueId value);

/// Whether a barrier, or what threads carry out together, stands in the loop.
bool runs_together(const Kernel& kernel, const Loop& loop);

/// Whether products stand there that are done later.
bool multiplies(const Kernel& kernel, const Block& statements);
/// Whether a machine region stands there, or is the statement: one of this record, or any.
bool holds_region(const Statement& statement, const MachineRegionRecord* record = nullptr);
bool holds_region(const Block& statements, const MachineRegionRecord* record = nullptr);

inline const Instruction& value(const Kernel& kernel, ValueId id) {
  return kernel.values[static_cast<std::size_t>(id)];
}

}  // namespace lathe::kernel

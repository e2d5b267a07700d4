#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/kernel.h"

/// The verifier's rules for statements that assign work to threads.
namespace lathe::kernel {

/// Checks that the kernel has at most one parallel loop, at top level, as the last statement (parallel_last). Set-up
/// before it stores to no parameter (setup_store), and its bounds depend on dims only (parallel_bounds).
void verify_parallel_loop(const Kernel& kernel);

/// Checks that steps are positive (loop_step), the index is a loop index (loop_index), and unrolled loops have
/// constant bounds (unroll_bounds). Requires bounds in scope.
void verify_loop(const Kernel& kernel, const Loop& loop);

/// Calls body(block) for each block of a statement.
void for_each_block(const Statement& statement, const std::function<void(const Block&)>& body);
/// Calls body(statement) for all statements of a block and of nested blocks.
void for_each_statement(const Block& statements, const std::function<void(const Statement&)>& body);

/// Returns a value and its transitive operands, each once, operands first. Ignores masks.
std::vector<ValueId> with_needs(const Kernel& kernel, ValueId value);

/// Returns whether the loop contains a barrier or another collective statement.
bool runs_together(const Kernel& kernel, const Loop& loop);

/// Returns whether the statement is, or contains, an intrinsic region: of this record, or of any if null.
bool holds_region(const Statement& statement, const IntrinsicRegionRecord* record = nullptr);
bool holds_region(const Block& statements, const IntrinsicRegionRecord* record = nullptr);

inline const Instruction& value(const Kernel& kernel, ValueId id) { return kernel.values[id]; }
inline bool is_cast(const Instruction& in) { return in.op == Opcode::scalar && in.scalar_op == ScalarOp::cast; }

}  // namespace lathe::kernel

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

/// One pipeline at most, the last statement of its loop of whole warps, with consumers in whole groups
/// (pipeline_threads, pipeline_context), of 2 to 8 stages with one Stage in serial loops (pipeline_stage), whose fill
/// copies to shared memory and does nothing else, and needs nothing of what the consumers load or multiply, nor
/// variables that they set (pipeline_producer).
void verify_pipelines(const Kernel& kernel);

/// Runs body(statement) for all statements of a block and of the blocks inside.
void for_each_statement(const Block& statements, const std::function<void(const Statement&)>& body);

/// A value and what it is computed of, each once, after what it needs itself. Masks are left out.
std::vector<ValueId> with_needs(const Kernel& kernel, ValueId value);

/// Whether all producers take part in it; else the first one starts all copies.
bool copies_by_all(const Kernel& kernel, const StagePipeline& pipeline);

/// Whether a barrier, or what threads carry out together, stands in the loop.
bool runs_together(const Kernel& kernel, const Loop& loop);

/// Whether products stand there that are done later.
bool multiplies(const Kernel& kernel, const Block& statements);
/// Whether producers of a pipeline get its value from the consumers.
bool is_told_to_producers(const Instruction& in);
/// Whether a Stage stands there.
bool leads_to_stage(const Statement& statement);
bool leads_to_stage(const Block& statements);

/// What is computed in a pipeline's body for its fill, or for a loop that leads there: by value, and by variable.
struct ProducerNeeds {
  std::vector<bool> values, vars;
  bool set_elsewhere = false;  ///< such a variable is set elsewhere than beside these loops
};
ProducerNeeds needs_of_producer(const Kernel& kernel, const StagePipeline& pipeline);

inline const Instruction& value(const Kernel& kernel, ValueId id) {
  return kernel.values[static_cast<std::size_t>(id)];
}

}  // namespace lathe::kernel

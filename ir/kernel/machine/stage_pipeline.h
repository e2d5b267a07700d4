#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/machine/region.h"

/// A multistage pipeline in shared memory between the threads of a block that copy (its producers) and those that use
/// what was copied (its consumers).
namespace lathe::kernel {

/// Of a block's threads the first `consumers` use what the others copy to shared memory, which are up to `stages`
/// stages ahead. The loops of the body that lead to its one Stage, and what `produce` needs of what is computed in
/// them, are run by all threads; `produce` by the others alone, everything else by the consumers alone. It begins as
/// with a barrier.
struct StagePipeline {
  int stages = 0, consumers = 0;
  int blocks = 1;  ///< that are to run on a multiprocessor at a time: its registers are shared out among them
  const Block& body;

  static StagePipeline of(const MachineRegion& region);
  /// In the one thread loop, of whole warps, and in no branch (pipeline_context).
  void verify_place(const MachineRegionRules& rules) const;
  /// One pipeline at most, the last statement of its thread loop (pipeline_context), with consumers in whole
  /// warpgroups (pipeline_threads), a block at least on a multiprocessor, of 2 to 8 stages with one Stage in serial
  /// loops (pipeline_stage), whose producers need nothing of what the consumers load or multiply, nor variables that
  /// they set (pipeline_producer).
  void verify_bodies(const MachineRegionRules& rules) const;
  std::string text(const MachineText& text) const;
  int first_threads() const { return consumers; }
  void interpret(MachineRun& run, std::span<Thread* const> threads) const;
};
extern const MachineRegionRecord stage_pipeline_record;

/// One iteration of a pipeline: `produce`, and when its copies have arrived, `consume`. `slot` is the number of
/// iterations before, modulo the pipeline's stages. A producer waits until the consumers, and the products that they
/// started, are through with the iteration that had this slot before. The products of one iteration are, when those
/// of the next one are started or waited for.
struct Stage {
  static constexpr std::size_t producing = 0, consuming = 1;  ///< its bodies

  ValueId slot = none;
  const Block &produce, &consume;

  static Stage of(const MachineRegion& region);
  /// In a pipeline (pipeline_stage).
  void verify_place(const MachineRegionRules& rules) const;
  /// The producer copies to shared memory and does nothing else (pipeline_producer).
  void verify_bodies(const MachineRegionRules& rules) const;
  std::string text(const MachineText& text) const;
  Range index_range(const Kernel& kernel) const;
  void interpret(MachineRun& run, std::span<Thread* const> threads) const;
};
extern const MachineRegionRecord stage_record;

/// Adds a pipeline, whose body has one stage.
void stage_pipeline(Builder& b, int stages, int consumers, const std::function<void()>& body, int blocks = 1);
/// Adds its stage. Both bodies are given the slot.
void pipeline_stage(Builder& b, const Builder::Body& produce, const Builder::Body& consume);

/// Whether a Stage stands there.
bool leads_to_stage(const Statement& statement);

/// Whether all producers take part in the copies; else the first one starts all.
bool copies_by_all(const Kernel& kernel, const StagePipeline& pipeline);
/// Whether producers of a pipeline get its value from the consumers.
bool is_told_to_producers(const Instruction& in);

/// What is computed in a pipeline's body for its producers, or for a loop that leads there: by value, and by
/// variable.
struct ProducerNeeds {
  std::vector<bool> values, vars;
  bool set_elsewhere = false;  ///< such a variable is set elsewhere than beside these loops
};
ProducerNeeds needs_of_producer(const Kernel& kernel, const StagePipeline& pipeline);

/// How many threads of the pipeline that runs are its consumers, the first ones; 0 outside a pipeline.
int consumers_of(const MachineRun& run);

}  // namespace lathe::kernel

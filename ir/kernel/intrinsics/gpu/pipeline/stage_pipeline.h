#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/gpu/pipeline/pipeline_needs.h"
#include "ir/kernel/intrinsics/handed_elements.h"
#include "ir/kernel/intrinsics/region.h"

/// A multistage pipeline in shared memory between the threads of a block that copy data (producers) and those that
/// use it (consumers).
namespace lathe::kernel {

/// The first `consumers` threads of a block use the data that the others copy to shared memory, up to `stages` stages
/// ahead. All threads run the loops that lead to the body's Stages, and the values computed there that `produce`
/// needs. Only the producers run `produce`; only the consumers run everything else. Several Stages run in sequence
/// and share the slots: those before and after a loop peel its first and last iteration. The pipeline starts with a
/// barrier. If a region in the body has a body for the last threads of the block (RunBy::last), these are neither
/// consumers nor producers: they run only that body and the loops that lead to it.
struct StagePipeline {
  int stages = 0, consumers = 0;
  int blocks = 1;  ///< blocks resident per multiprocessor; they share its registers
  const Block& body;

  static StagePipeline of(const IntrinsicRegion& region);
  /// Requires the kernel's only thread loop, of whole warps, and no enclosing branch (pipeline_context).
  void verify_place(const IntrinsicRegionRules& rules) const;
  /// Checks that:
  /// - the kernel has at most one pipeline, the last statement of its thread loop (pipeline_context);
  /// - the consumers are whole warpgroups (pipeline_threads);
  /// - there are 2 to 8 stages, one block or more per multiprocessor, Stages in serial loops (pipeline_stage);
  /// - the producers need no value that the consumers load or multiply, and no variable that they set
  ///   (pipeline_producer);
  /// - at most one region, in serial loops, has a body for the last threads; these are whole warpgroups, whose number
  ///   divides that of the consumers, one more warpgroup remains to produce, by its first thread, and they need
  ///   nothing from the consumers (pipeline_last).
  void verify_bodies(const IntrinsicRegionRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static IntrinsicRegion parse(IntrinsicReader& in);
  int first_threads() const { return consumers; }
  void interpret(IntrinsicRun& run, std::span<Thread* const> threads) const;
};
extern const IntrinsicRegionRecord stage_pipeline_record;

/// One iteration of a pipeline: `produce`, then `consume` after its copies have arrived. `slot` is the iteration
/// number modulo the pipeline's stages. A producer waits until the consumers, and the matmuls that they started, have
/// finished the previous iteration of this slot. Matmuls that an iteration does not wait for count as finished once
/// those of the next one are started or waited for.
struct Stage {
  static constexpr std::size_t producing = 0, consuming = 1;  ///< its bodies

  ValueId slot = none;
  const Block &produce, &consume;

  static Stage of(const IntrinsicRegion& region);
  /// Requires an enclosing pipeline (pipeline_stage).
  void verify_place(const IntrinsicRegionRules& rules) const;
  /// Checks that the producer only copies to shared memory (pipeline_producer).
  void verify_bodies(const IntrinsicRegionRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static IntrinsicRegion parse(IntrinsicReader& in);
  Range index_range(const Kernel& kernel) const;
  void interpret(IntrinsicRun& run, std::span<Thread* const> threads) const;
};
extern const IntrinsicRegionRecord stage_record;

/// Emits a pipeline whose body has stages.
void stage_pipeline(Builder& b, int stages, int consumers, const std::function<void()>& body, int blocks = 1);
/// Emits a stage of the pipeline. Both bodies receive the slot.
void pipeline_stage(Builder& b, const Builder::Body& produce, const Builder::Body& consume);

/// Returns whether the statement is, or contains, a Stage.
bool leads_to_stage(const Statement& statement);

/// Returns whether all producers take part in the copies; otherwise the first one starts all of them.
bool copies_by_all(const Kernel& kernel, const StagePipeline& pipeline);
/// Returns the number of last threads that are neither consumers nor producers.
int last_threads_of(const StagePipeline& pipeline);

/// Returns the number of consumers, the first threads, of the running pipeline; 0 outside a pipeline.
int consumers_of(const IntrinsicRun& run);
/// Returns the number of consumers of the kernel's pipeline; 0 without one.
int consumers_of(const Kernel& kernel);
/// Returns the elements that the running pipeline's consumers give to its last threads.
HandedElements& handed_elements_of(const IntrinsicRun& run);

}  // namespace lathe::kernel

#pragma once

#include "codegen/cuda/intrinsics/hooks.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"

namespace lathe::cuda {

/// The role that a pipeline's body is emitted for: its consumers, its producers, or the last threads of the block.
class PipelineRole : public RegionRole {
 public:
  /// The threads are RunBy::first, others or last.
  PipelineRole(const kernel::Kernel& kernel, const kernel::StagePipeline& pipeline, kernel::RunBy threads);

  bool takes_part(const kernel::Statement& s) const override;
  std::string barrier() const override;
  bool keeps_loops() const override { return is_last() && few_registers_; }
  bool produces() const { return threads_ == kernel::RunBy::others; }
  bool is_last() const { return threads_ == kernel::RunBy::last; }

  bool in_stage = false;     ///< emits the stage's body
  bool in_own_body = false;  ///< emits the body that the threads run: theirs alone, or the stage's
  bool copied_by_all;        ///< otherwise the first producer makes all copies
  int warpgroups() const { return consumers_ / kernel::warpgroup_threads; }  ///< that consume

 private:
  const kernel::Kernel& kernel_;
  kernel::RunBy threads_;
  kernel::PipelineNeeds needs_;
  int consumers_;
  bool few_registers_;  ///< the hand-over states the registers of the last threads
};

/// Returns the role of the enclosing pipeline. Throws InternalError outside a pipeline.
const PipelineRole& pipeline_role(const RegionRole* role);

}  // namespace lathe::cuda

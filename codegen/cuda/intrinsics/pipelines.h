#pragma once

#include "codegen/cuda/intrinsics/hooks.h"
#include "ir/kernel/intrinsics/gpu/stage_pipeline.h"

namespace lathe::cuda {

/// The role that a pipeline's body is emitted for: its producers or its consumers.
class PipelineRole : public RegionRole {
 public:
  PipelineRole(const kernel::Kernel& kernel, const kernel::StagePipeline& pipeline);

  bool takes_part(const kernel::Statement& s) const override;
  std::string barrier() const override;

  bool produces = false;  ///< emits for the producers
  bool in_stage = false;  ///< emits the stage's body
  bool copied_by_all;     ///< otherwise the first producer makes all copies

 private:
  const kernel::Kernel& kernel_;
  kernel::ProducerNeeds needs_;
  int consumers_;
};

/// Returns the role of the enclosing pipeline. Throws InternalError outside a pipeline.
const PipelineRole& pipeline_role(const RegionRole* role);

}  // namespace lathe::cuda

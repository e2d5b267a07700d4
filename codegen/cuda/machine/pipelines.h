#pragma once

#include "codegen/cuda/machine/hooks.h"
#include "ir/kernel/machine/stage_pipeline.h"

namespace lathe::cuda {

/// For whom a pipeline's body is written: once for its producers, once for its consumers.
class PipelineRole : public RegionRole {
 public:
  PipelineRole(const kernel::Kernel& kernel, const kernel::StagePipeline& pipeline);

  bool takes_part(const kernel::Statement& s) const override;
  std::string barrier() const override;

  bool produces = false;  ///< for the producers
  bool in_stage = false;  ///< what the stage's body says
  bool copied_by_all;     ///< else the first producer makes all copies

 private:
  const kernel::Kernel& kernel_;
  kernel::ProducerNeeds needs_;
  int consumers_;
};

/// The role of the pipeline that is written. InternalError outside of one.
const PipelineRole& pipeline_role(const RegionRole* role);

}  // namespace lathe::cuda

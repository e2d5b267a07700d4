#pragma once

#include <cstdint>
#include <string>

#include "runtime/library/c_header.h"

namespace lathe::cuda {

/// The part of headers of libraries for GPUs.
class CudaHeader final : public HeaderMachine {
 public:
  /// `kernels`: the most of a level. `constant_bytes`: those that calls need on the device.
  CudaHeader(const LibraryPlan& plan, std::size_t kernels, std::size_t constant_bytes)
      : plan_(plan), p_(plan.prefix), kernels_(kernels), constant_bytes_(constant_bytes) {}

  std::string rules() const override;
  std::string shared_types() const override;
  std::string instance_members() const override;
  std::string call_members() const override;
  std::string init_parameters() const override;
  std::string init_arguments() const override;
  std::string init_comment() const override;
  std::string workspace_function() const override;
  std::string run_functions(const std::string& name, const std::string& graph) const override;
  std::string other_functions(const std::string& dims) const override;
  int block_alignment() const override { return 256; }

 private:
  const LibraryPlan& plan_;
  const std::string& p_;
  std::size_t kernels_, constant_bytes_;
};

}  // namespace lathe::cuda

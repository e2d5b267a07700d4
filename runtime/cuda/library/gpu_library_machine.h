#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/arch.h"
#include "runtime/library/library_machine.h"

namespace lathe::cuda {

/// The rules of libraries for GPUs. The kernels of a launch are those that CudaRunner would
/// choose for any size of a call: with 64-bit indices if some size needs them, and with accesses to single elements
/// where a slice of a loop starts between multiples of 16 bytes. Joined launches are one launch.
class GpuLibraryMachine final : public LibraryMachine {
 public:
  /// `archs` are those of the levels.
  explicit GpuLibraryMachine(std::vector<Arch> archs) : archs_(std::move(archs)) {}

  std::string no_level_message(const std::string& prefix) const override;
  std::vector<std::string> own_messages() const override;
  /// Kernels rely on it.
  std::int64_t tensor_alignment(std::int64_t element) const override { return element < 16 ? 16 : element; }
  bool stores_constants() const override { return true; }
  bool has_workers() const override { return false; }
  std::vector<codegen::LibraryGroup> groups(const Program& program, const MemoryPlan& plan) const override;
  void choose_kernels(const Program& program, const Launch& launch, std::size_t level, const DimBindings& most,
                      LibraryKernels& kernels, codegen::LibraryLaunch& code) const override;
  void describe_kernels(const LibraryKernels& kernels, std::size_t number_of,
                        codegen::LibraryLevel& level) const override;

 private:
  std::vector<Arch> archs_;
};

}  // namespace lathe::cuda

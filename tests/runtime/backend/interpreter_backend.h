#pragma once

#include "runtime/backend/backend.h"

namespace lathe::test {

/// A third backend next to CPUs and GPUs: it lowers graphs as for a CPU without a name and runs the loop IR of their
/// kernels in the kernel interpreter. Its one target is "interpreter".
class InterpreterBackend : public Backend {
 public:
  std::string_view kind() const override { return "the kernel interpreter"; }
  bool knows(std::string_view target) const override { return target == "interpreter"; }
  std::string names() const override { return "interpreter"; }
  void check(std::string_view) const override {}
  Machine machine(std::string_view target) const override;
  std::unique_ptr<Device> open(std::string_view target, const DeviceOptions& options) const override;
};

}  // namespace lathe::test

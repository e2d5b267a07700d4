#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/kernel.h"

namespace lathe::codegen {

/// Kernel to object, one at a time, on one thread.
class Compiler {
 public:
  explicit Compiler(const TargetCpu& target);
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  std::string object(const kernel::Kernel& kernel, const std::string& symbol);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Names the passes and what checks they add, for cache keys.
std::string pipeline_name();

}  // namespace lathe::codegen

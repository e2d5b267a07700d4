#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/kernel.h"

namespace lathe::codegen {

/// Compiles kernels to objects, one at a time, on one thread.
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

/// Identifies the passes and sanitizer checks in cache keys.
std::string pipeline_name();

}  // namespace lathe::codegen

#pragma once

#include <string>

#include "codegen/llvm/target_cpu.h"

namespace lathe {

/// What a graph is compiled for.
struct Target {
  codegen::TargetCpu cpu;
  /// The CPU that this process runs on.
  static Target host() { return {codegen::TargetCpu::host()}; }
  /// "host", "x86-64-v2", "x86-64-v3" or "x86-64-v4"; UserError [unknown_cpu] otherwise.
  static Target named(std::string_view name) {
    return name == "host" ? host() : Target{codegen::TargetCpu::named(name)};
  }
};

}  // namespace lathe

#pragma once

#include <string>
#include <string_view>

#include "ir/tensor/graph.h"

namespace lathe::tools {

/// The stages behind the passes: "kernels" (the launches and the loop IR), "llvm" (LLVM IR as it goes to code
/// generation) and "asm".
bool is_code_stage(std::string_view stage);

/// What a graph that has gone through the default pipeline becomes at one of them. `cpu` is "host" or a level such as
/// "x86-64-v3", which need not run here.
std::string code_text(const ir::Graph& graph, std::string_view stage, std::string_view cpu);

}  // namespace lathe::tools
